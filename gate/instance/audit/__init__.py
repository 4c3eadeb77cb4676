"""The audit of a ledger: its chains recomputed from its own bytes, and what else is kept held against them.

    entries, finding = check_chain(instance, scope_id)      one chain, in this process
    check_chains(instance, scope_ids, told=bar)             many, on all processors
    check_checkpoint(instance, scope_id, document)          a chain against a checkpoint that was kept elsewhere

A finding names the table, the row and what an operator does about it; an audit of a chain ends with its first one.

    chains           chains divided into stretches, and what has to follow from all of them
    stretch          a stretch of a chain, read a page at a time
    material         an entry as it is read, and the rows that it is held against
    entry            one entry, held against its link, its key and its rows, by its type:
    decision         a record, its request and its registration
    report           what was reported about a decision, and its erasure
    reviews          resolutions of held decisions, and the rows that tell where their reviews stand
    changes          migrations and routes, and the decisions that were made by a route
    registrations    the registered rulebooks, and the ones that records cite
    beside           rows of no entry, rows beyond the chain's end, and counts
    processes        stretches judged in several processes
    kept             a checkpoint that was kept elsewhere, and every one that a host's log has kept
    finding          a row that is not as it has to be
"""

from gate.instance.audit.chains import Audit, check_chain, check_chains
from gate.instance.audit.finding import Finding
from gate.instance.audit.kept import Comparison, check_checkpoint, compare

__all__ = ["Audit", "Comparison", "Finding", "check_chain", "check_chains", "check_checkpoint", "compare"]
