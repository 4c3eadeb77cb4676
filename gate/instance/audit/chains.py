"""The audit of whole chains. A chain is divided into stretches whose ends must fit, and compared with other tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gate.instance.audit.beside import check_beside
from gate.instance.audit.changes import check_changes
from gate.instance.audit.finding import Finding, tampered
from gate.instance.audit.processes import Task, judge_in_processes
from gate.instance.audit.registrations import check_registrations
from gate.instance.audit.stretch import Auditor, Judged, Rows
from gate.instance.instance import Instance
from gate.instance.processes import calm_collector, processors
from gate.ledger.tables import chain_heads
from gate.proof.chain import Head
from gate.verify import Trust

# Large enough that starting one costs nothing, and small enough that processes end together.
_STRETCH: Final = 2_048
# Below it, starting another process takes longer than it saves.
_WORTH_A_PROCESS: Final = 6_000


@dataclass(slots=True)
class Audit:
    """What an audit of a scope's chain found.

    Attributes:
        scope_id: The scope.
        head: The chain's end when the audit began.
        entries: How many entries were read.
        finding: The first thing that is wrong; None where all is as it was made.
    """

    scope_id: str
    head: Head
    entries: int = 0
    finding: Finding | None = None


def check_chain(instance: Instance, scope_id: str) -> tuple[int, Finding | None]:
    """As `check_chains`, for one scope and in this process: how many entries were read, and the first finding."""
    (audit,) = check_chains(instance, [scope_id], processes=1)
    return audit.entries, audit.finding


def check_chains(
    instance: Instance,
    scope_ids: Sequence[str],
    *,
    processes: int | None = None,
    told: Callable[[int], None] = lambda read: None,
) -> list[Audit]:
    """Recomputes scopes' chains from what is stored, and holds against them whatever has to follow from them.

    An entry must be valid in itself: its hashes, its derived fields, the signatures of a record, and the stored request
    of its input hash. It must have no field that no hash covers, and must match its link and its decision. Missing
    parts of a decision must have been erased, and erased parts must be missing. The state of the key that signed a
    record does not matter to the chain.

    It takes time in proportion to the entries, and memory that does not depend on them. The ledger may be in use.

    Args:
        instance: The instance.
        scope_ids: The scopes.
        processes: In how many processes; by default one for each processor, as far as it is worth that.
        told: Told how many entries were read so far.

    Raises:
        OperatorError: `CHECK_INTERRUPTED`.
        ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
    """
    # The heads first: what is appended from now on is left to the next audit.
    audits = {scope_id: Audit(scope_id, instance.ledger.entries.head(scope_id)) for scope_id in scope_ids}
    trust = instance.trust()
    if processes is None:
        processes = min(processors(), sum(audit.head.size for audit in audits.values()) // _WORTH_A_PROCESS)
    read = 0

    def more(entries: int) -> None:
        nonlocal read
        read += entries
        told(read)

    tasks = _tasks(audits.values())
    if processes > 1:
        judged = _telling(judge_in_processes(instance.settings.ledger_url, trust, tasks, processes), more)
    else:
        judged = _in_this_process(instance, trust, tasks, more)
    ends = {scope_id: Head(audit.head.chain_id) for scope_id, audit in audits.items()}
    rows = dict.fromkeys(audits, Rows())
    for task, found in judged:
        audit = audits[task.scope_id]
        # Another stretch of a chain that is broken already was perhaps on its way.
        if audit.finding is None:
            audit.finding = _fit(task, found, ends[task.scope_id])
            audit.entries += found.read
            ends[task.scope_id] = found.end
            rows[task.scope_id] = rows[task.scope_id].and_those(found.rows)
            if audit.finding is None and task.up_to == audit.head.size:
                audit.finding = _end(instance, trust, audit, found.end, rows[task.scope_id])
    return list(audits.values())


def _tasks(audits: Iterable[Audit]) -> Iterator[Task]:
    for audit in audits:
        size = audit.head.size
        for after in range(0, max(size, 1), _STRETCH):
            if audit.finding is not None:
                break
            yield Task(audit.scope_id, audit.head.chain_id, after, min(after + _STRETCH, size))


def _in_this_process(
    instance: Instance, trust: Trust, tasks: Iterable[Task], more: Callable[[int], None]
) -> Iterator[tuple[Task, Judged]]:
    auditor = Auditor(instance.ledger, trust)
    with calm_collector():
        for task in tasks:
            yield task, auditor.judge(task.scope_id, task.chain_id, task.after, task.up_to, more)


def _telling(judged: Iterable[tuple[Task, Judged]], more: Callable[[int], None]) -> Iterator[tuple[Task, Judged]]:
    for task, found in judged:
        more(found.read)
        yield task, found


def _fit(task: Task, found: Judged, before: Head) -> Finding | None:
    """What is wrong with a stretch, or with where it meets the one before."""
    if found.start == before:
        return found.finding
    what = f"The entry at position {task.after} changed, or disappeared, while the chain was read."
    return tampered(task.after, what, task.after)


def _end(instance: Instance, trust: Trust, audit: Audit, end: Head, rows: Rows) -> Finding | None:
    """What is wrong with the end of a chain whose entries are whole, or with the rows of other tables."""
    scope_id = audit.scope_id
    if end != audit.head:
        what = "The head of the chain does not match its last link."
        return tampered(audit.head.size, what, audit.head.chain_id, table=chain_heads.name)
    ledger = instance.ledger.audited
    return (
        check_registrations(ledger, scope_id, trust)
        or check_changes(ledger, scope_id, audit.head.size)
        or check_beside(ledger, scope_id, audit.head.size, rows)
    )
