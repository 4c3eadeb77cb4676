"""The latest outcome of each decision, and the counts of these, kept by the transaction that appends an outcome.

The counts of a policy have one row for each version, verdict, and action; an empty name means all. Three rows give the
confidence of a new record, however long the policy's past is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, insert, select, update

from gate.ledger.stores.store import Row, Statement, Store, unheard_of
from gate.ledger.tables import chain_heads, latest_outcomes, outcome_counts
from gate.policy.confidence import Counts, Coverage, DecisionConfidence, add, decision_confidence
from gate.policy.questions import ConfidenceQuestion

STATUSES: Final = Counts._fields


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """What an outcome adds to the counts.

    Attributes:
        status: Its outcome_status.
        verdict: The decision's verdict.
        action: The decision's action.
    """

    status: str
    verdict: str
    action: str


class Cohort(NamedTuple):
    """Decisions that are counted together. An empty version, verdict, or action means all."""

    scope_id: str
    policy_id: str
    version: str
    verdict: str
    action: str

    def wider(self) -> tuple[Cohort, Cohort]:
        """The cohorts that hold this one: of all versions, and of the whole policy."""
        return (
            Cohort(self.scope_id, self.policy_id, "", self.verdict, self.action),
            Cohort(self.scope_id, self.policy_id, "", "", ""),
        )


class _Latest(NamedTuple):
    """The status of a decision's latest outcome, and when the first and the last of its outcomes were reported."""

    status: str
    first: str
    last: str


class _Counted(NamedTuple):
    """The counts of a cohort, and when the first and the last outcome of its decisions were reported."""

    counts: Counts
    first: str
    last: str


_Decision = tuple[str, str]
"""A scope's id and a decision's."""


class Tally:
    """Latest outcomes and counts, as one append of a batch sees and changes them."""

    def __init__(self, latest: Sequence[Row], counts: Sequence[Row], reported: Sequence[Row]) -> None:
        """Takes the rows that `queries` found."""
        self._reported = {scope_id for (scope_id,) in reported}
        self._latest = {(row[0], row[1]): _Latest(*row[2:]) for row in latest}
        self._counts = {_cohort(row): _counted(row[5:]) for row in counts}
        self._stored = (frozenset(self._latest), frozenset(self._counts))
        # What is new of each decision that got an outcome: its cohort, and its last outcome's position.
        self._changed: dict[_Decision, tuple[Cohort, int]] = {}

    @staticmethod
    def queries(
        outcomes: Sequence[_Decision], cohorts: Sequence[Cohort]
    ) -> list[tuple[Statement, list[dict[str, object]]]]:
        """What to ask for decisions that get an outcome, and for the cohorts of all that are appended."""
        wanted = dict.fromkeys(found for cohort in dict.fromkeys(cohorts) for found in (cohort, *cohort.wider()))
        return [
            (_LATEST, [{"scope": scope_id, "decision": decision_id} for scope_id, decision_id in outcomes]),
            (_COUNTS, [_parameters(cohort) for cohort in wanted]),
            (_REPORTED, [{"scope": scope_id} for scope_id in dict.fromkeys(cohort.scope_id for cohort in cohorts)]),
        ]

    def confidence(self, cohort: Cohort) -> DecisionConfidence | None:
        """The decision_confidence of a new decision; None where nobody has reported an outcome in its scope."""
        if cohort.scope_id not in self._reported:
            return None
        every_version, _ = cohort.wider()
        return decision_confidence(cohort.verdict, self._of(cohort), self._of(every_version))

    def _of(self, cohort: Cohort) -> Counts:
        found = self._counts.get(cohort)
        return Counts() if found is None else found.counts

    def add(self, decision_id: str, cohort: Cohort, status: str, position: int, reported_at: str) -> None:
        """Takes note of an outcome, which is the latest of its decision: positions only grow, dates need not."""
        self._reported.add(cohort.scope_id)
        decision = cohort.scope_id, decision_id
        before = self._latest.get(decision)
        for counted in (cohort, *cohort.wider()):
            found = self._counts.get(counted)
            counts = Counts() if found is None else found.counts
            if before is not None:
                # A decision counts once, under its latest outcome.
                counts = _more(counts, before.status, -1)
            self._counts[counted] = _Counted(_more(counts, status, 1), *_dates(found, reported_at))
        self._latest[decision] = _Latest(status, *_dates(before, reported_at))
        self._changed[decision] = cohort, position

    def writes(self) -> list[tuple[Statement, list[dict[str, object]]]]:
        """The rows to write; some statements may have no rows."""
        if not self._changed:
            return []
        known, counted = self._stored
        # These rows need no lock of their own: all of them belong to a scope whose head the append has locked.
        latest = {
            decision: _latest_row(decision[1], cohort, position, self._latest[decision])
            for decision, (cohort, position) in self._changed.items()
        }
        changed = {at: None for cohort, _ in self._changed.values() for at in (cohort, *cohort.wider())}
        counts = {at: _count_row(at, self._counts[at]) for at in changed}
        return [
            (_INSERT_LATEST, [row for decision, row in latest.items() if decision not in known]),
            (_UPDATE_LATEST, [_keyed(row) for decision, row in latest.items() if decision in known]),
            (_INSERT_COUNTS, [row for at, row in counts.items() if at not in counted]),
            (_UPDATE_COUNTS, [_keyed(row) for at, row in counts.items() if at in counted]),
        ]


def _more(counts: Counts, status: str, number: int) -> Counts:
    return counts._replace(**{status: getattr(counts, status) + number})


def _dates(before: _Latest | _Counted | None, reported_at: str) -> tuple[str, str]:
    if before is None:
        return reported_at, reported_at
    return min(before.first, reported_at), max(before.last, reported_at)


_LATEST: Final = Statement(
    select(
        latest_outcomes.c.scope_id,
        latest_outcomes.c.decision_id,
        latest_outcomes.c.outcome_status,
        latest_outcomes.c.first_reported_at,
        latest_outcomes.c.last_reported_at,
    ).where(latest_outcomes.c.scope_id == bindparam("scope"), latest_outcomes.c.decision_id == bindparam("decision"))
)
_DATES: Final = ("first_reported_at", "last_reported_at")
_COHORT: Final = ("scope_id", "policy_id", "policy_version", "verdict", "action")
_COUNTS: Final = Statement(
    select(outcome_counts).where(*(outcome_counts.c[name] == bindparam(f"of_{name}") for name in _COHORT))
)
# Of one row, so that it costs the same however many policies a scope has.
_REPORTED: Final = Statement(
    select(chain_heads.c.scope_id).where(
        chain_heads.c.scope_id == bindparam("scope"),
        exists().where(outcome_counts.c.scope_id == chain_heads.c.scope_id),
    )
)
_INSERT_LATEST: Final = Statement(insert(latest_outcomes))
_INSERT_COUNTS: Final = Statement(insert(outcome_counts))
_UPDATE_LATEST: Final = Statement(
    update(latest_outcomes)
    .where(*(latest_outcomes.c[name] == bindparam(f"of_{name}") for name in ("scope_id", "decision_id")))
    .values({name: bindparam(f"of_{name}") for name in ("position", "outcome_status", *_DATES)})
)
_UPDATE_COUNTS: Final = Statement(
    update(outcome_counts)
    .where(*(outcome_counts.c[name] == bindparam(f"of_{name}") for name in _COHORT))
    .values({name: bindparam(f"of_{name}") for name in (*STATUSES, *_DATES)})
)


def _keyed(row: Mapping[str, object]) -> dict[str, object]:
    """A row's values under the names that an UPDATE takes, where a column's own name would be ambiguous."""
    return {f"of_{name}": value for name, value in row.items()}


def _parameters(cohort: Cohort) -> dict[str, object]:
    # Three times for each decision, so `_keyed` is not asked.
    return {
        "of_scope_id": cohort.scope_id,
        "of_policy_id": cohort.policy_id,
        "of_policy_version": cohort.version.encode(),
        "of_verdict": cohort.verdict,
        "of_action": cohort.action.encode(),
    }


def _cohort_row(cohort: Cohort) -> dict[str, object]:
    return {
        "scope_id": cohort.scope_id,
        "policy_id": cohort.policy_id,
        "policy_version": cohort.version.encode(),
        "verdict": cohort.verdict,
        "action": cohort.action.encode(),
    }


def _cohort(row: Row) -> Cohort:
    scope_id, policy_id, version, verdict, action = row[:5]
    return Cohort(scope_id, policy_id, bytes(version).decode(), verdict, bytes(action).decode())


def _counted(values: Row) -> _Counted:
    return _Counted(Counts(*values[:6]), values[6], values[7])


def _count_row(cohort: Cohort, found: _Counted) -> dict[str, object]:
    dates = {"first_reported_at": found.first, "last_reported_at": found.last}
    return {**_cohort_row(cohort), **found.counts._asdict(), **dates}


def _latest_row(decision_id: str, cohort: Cohort, position: int, latest: _Latest) -> dict[str, object]:
    return {
        **_cohort_row(cohort),
        "decision_id": decision_id,
        "position": position,
        "outcome_status": latest.status,
        "first_reported_at": latest.first,
        "last_reported_at": latest.last,
    }


class OutcomeCounts:
    """Reads the counts of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def cover(self, scope_id: str, question: ConfidenceQuestion) -> Coverage:
        """The counts of the decisions that a question chooses.

        Args:
            scope_id: The scope.
            question: The question; its `limit` takes those with the latest outcomes in chain order.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if unheard_of(question.policy_id):
            return Coverage({}, Counts(), None, None, False)
        with self._store.read() as connection:
            chosen = _all_time(connection, scope_id, question, question.policy_version)
            # The rows for all versions together: asking for one must not cost a scan of all.
            every_version = _all_time(connection, scope_id, question, "")
            limit = question.limit
            truncated = limit is not None and add(counted.counts for counted in chosen.values()).total > limit
            if truncated:
                chosen = _last(connection, scope_id, question)
        return Coverage(
            {name: counted.counts for name, counted in chosen.items()},
            add(counted.counts for counted in every_version.values()),
            min((counted.first for counted in chosen.values()), default=None),
            max((counted.last for counted in chosen.values()), default=None),
            truncated,
        )


def _all_time(
    connection: Connection, scope_id: str, question: ConfidenceQuestion, version: str | None
) -> dict[str, _Counted]:
    """The counts by version, whatever the number of outcomes behind them; under "" those of all versions together."""
    counts = outcome_counts.c
    # An empty verdict means the whole policy, which is counted verdict by verdict here.
    chosen = [counts.scope_id == scope_id, counts.policy_id == question.policy_id, counts.verdict != ""]
    chosen.append(counts.policy_version != "" if version is None else counts.policy_version == version)
    named = (("verdict", question.verdict), ("action", question.action))
    chosen += [counts[name] == value for name, value in named if value is not None]
    rows = connection.execute(
        select(
            counts.policy_version,
            *(func.sum(counts[status]) for status in STATUSES),
            func.min(counts.first_reported_at),
            func.max(counts.last_reported_at),
        )
        .where(*chosen)
        .group_by(counts.policy_version)
    )
    # PostgreSQL sums integers of 64 bits as decimals.
    return {row.policy_version: _Counted(Counts(*map(int, row[1:7])), row[7], row[8]) for row in rows}


def _last(connection: Connection, scope_id: str, question: ConfidenceQuestion) -> dict[str, _Counted]:
    """The counts by version of the decisions whose latest outcomes are the last in chain order."""
    outcomes = latest_outcomes.c
    chosen = [outcomes.scope_id == scope_id, outcomes.policy_id == question.policy_id]
    named = (("policy_version", question.policy_version), ("verdict", question.verdict), ("action", question.action))
    chosen += [outcomes[name] == value for name, value in named if value is not None]
    last = select(latest_outcomes).where(*chosen).order_by(outcomes.position.desc()).limit(question.limit).subquery().c
    rows = connection.execute(
        select(
            last.policy_version,
            last.outcome_status,
            func.count(),
            func.min(last.first_reported_at),
            func.max(last.last_reported_at),
        ).group_by(last.policy_version, last.outcome_status)
    )
    found: dict[str, _Counted] = {}
    for name, status, number, first, latest in rows:
        before = found.get(name, _Counted(Counts(), first, latest))
        found[name] = _Counted(_more(before.counts, status, number), min(before.first, first), max(before.last, latest))
    return found
