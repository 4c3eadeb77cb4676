"""The audit of a ledger: its chains recomputed from its own bytes, and what else is kept held against them.

entries, finding = check_chain(instance, scope_id)          one chain, in this process
check_chains(instance, scope_ids, told=bar)                 many, on all processors
check_checkpoint(instance, scope_id, document)              a chain against a checkpoint that was kept elsewhere

chains           chains divided into stretches, and what has to follow from all of them
stretch          a stretch of a chain, read a page at a time
entry            one entry, held against its link, its decision and the rows that follow from it
registrations    the registered rulebooks, and the ones that records cite
beside           rows of no entry, rows beyond the chain's end, and counts
processes        stretches judged in several processes
checkpoint       a checkpoint that was kept elsewhere
finding          what is found
"""

from gate.instance.audit.chains import Audit, check_chain, check_chains
from gate.instance.audit.checkpoint import check_checkpoint
from gate.instance.audit.finding import Finding

__all__ = ["Audit", "Finding", "check_chain", "check_chains", "check_checkpoint"]
