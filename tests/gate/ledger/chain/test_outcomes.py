"""Latest outcomes and their counts: what the append's transaction keeps equals a recount over the chain."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.chain.outcomes import STATUSES, ReportedOutcome
from gate.ledger.chain.writer import Appended, Decided, NewEntry, _write
from gate.ledger.tables import latest_outcomes, outcome_counts
from gate.policy.confidence import Counts, Coverage, add, decision_confidence
from gate.policy.questions import ConfidenceQuestion
from gate.proof.chain import Entry
from tests.support.processes import forked
from tests.support.samples import NOW, in_threads, ledger_url
from tests.support.torture import size

POLICY = "pricing_exception"
VERDICTS = ("yes", "no", "review")


class Subject(NamedTuple):
    """What a decision is counted under."""

    version: str
    verdict: str
    action: str


@dataclass(frozen=True)
class Report:
    """An outcome of the decision of that number, or, without a status, the decision itself."""

    number: int
    subject: Subject
    status: str | None
    reported_at: str


_serial = itertools.count()


def new_entry(scope_id: str, report: Report, entry_id: str, *, policy_id: str = POLICY) -> NewEntry:
    """The entry of a report; its body tells what is counted, for a recount over the chain."""
    # A decision's own id is that of its entry, and is there once; outcomes of one number are about one decision.
    decision_id = entry_id if report.status is None else f"dec_{report.number:032x}"
    version, verdict, action = report.subject
    link = Entry(
        entry_type="decision" if report.status is None else "outcome",
        decision_id=decision_id,
        record_hash="a" * 64,
        receipt_hash=None,
        policy_id=policy_id,
        policy_version=version,
        created_at=report.reported_at,
    )
    decided = Decided(verdict, action, "A_REASON", "") if report.status is None else None
    outcome = None if report.status is None else ReportedOutcome(report.status, verdict, action)
    body = b"{}" if report.status is None else report.status.encode()
    return NewEntry(scope_id, entry_id, link, body, b"{}", decided=decided, outcome=outcome)


def append(ledger: Ledger, scope: Scope, *reports: Report, policy_id: str = POLICY) -> None:
    for report in reports:
        entry = new_entry(scope.scope_id, report, f"out_{next(_serial):032x}", policy_id=policy_id)
        assert isinstance(ledger.entries.append(entry), Appended)


def write(ledger: Ledger, batch: Sequence[NewEntry], *, tried: bool = False) -> Sequence[Any]:
    """Writes a batch as one transaction."""
    return ledger.store.run(lambda transaction, again: _write(transaction, batch, tried=tried or again))


def latest(reports: Iterable[Report], **only: str | None) -> list[Report]:
    """The last outcome of each decision that `only` chooses, in chain order."""
    found: dict[int, Report] = {}
    for report in reports:
        if report.status is not None and all(getattr(report.subject, n) == v for n, v in only.items() if v is not None):
            # Taken out first, so that the decision reported last stands last.
            found.pop(report.number, None)
            found[report.number] = report
    return list(found.values())


def recount(outcomes: Iterable[Report]) -> dict[str, Counts]:
    """Outcomes by version."""
    found = Counter((report.subject.version, report.status) for report in outcomes)
    return {version: Counts(*(found[version, status] for status in STATUSES)) for version, _ in found}


# A decision's subject never changes: a number has one, chosen from few so that they meet.
subjects = st.builds(
    Subject,
    st.sampled_from(["1", "2026 \u0000 é", "1 "]),
    st.sampled_from(VERDICTS),
    st.sampled_from(["approve", "réfuse \u0000"]),
)
# The clock goes back as well.
events = st.tuples(st.integers(0, 7), st.sampled_from([None, *STATUSES]), st.integers(-3, 3))
histories = st.tuples(
    st.lists(subjects, min_size=8, max_size=8),
    st.lists(st.lists(events, min_size=1, max_size=6), min_size=1, max_size=8),
)


def history(drawn: tuple[list[Subject], list[list[tuple[int, str | None, int]]]]) -> list[list[Report]]:
    of, batches = drawn
    found, now = [], NOW
    for batch in batches:
        reports = []
        for number, status, minutes in batch:
            now += timedelta(minutes=minutes)
            reports.append(Report(number, of[number], status, timestamp(now)))
        found.append(reports)
    return found


LIMITS = (None, 1, 3, 8)


def choices() -> Iterator[dict[str, Any]]:
    for version, verdict, action in itertools.product(
        (None, "1", "2026 \u0000 é", "unknown"), (None, *VERDICTS), (None, "approve", "réfuse \u0000")
    ):
        yield {"policy_version": version, "verdict": verdict, "action": action}


@pytest.mark.heavy
@settings(max_examples=size(12, 100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories)
def test_counts_and_confidence_equal_a_recount_after_any_history(ledger: Ledger, drawn: Any) -> None:
    scope = ledger.directory.create_scope(f"scope-{next(_serial)}", "unlimited", NOW)
    past: list[Report] = []
    for batch in history(drawn):
        # Each batch is one transaction, as where callers report at the same moment.
        ids = [f"id_{next(_serial):032x}" for _ in batch]
        entries = [new_entry(scope.scope_id, report, id_) for report, id_ in zip(batch, ids, strict=True)]
        answers = write(ledger, entries)
        for report, answer in zip(batch, answers, strict=True):
            assert isinstance(answer, Appended)
            if report.status is None:
                assert answer.confidence == expected_confidence(past, report.subject)
            past.append(report)
        # What was committed without this process hearing so counts once.
        again = write(ledger, entries, tried=True)
        assert [answer.confidence for answer in again if isinstance(answer, Appended)] == [
            answer.confidence for answer in answers if isinstance(answer, Appended)
        ]
    for number, only in enumerate(choices()):
        # Of the limits, each question has one in turn, another after a history of another length.
        turn = (number + len(past)) % len(LIMITS)
        for limit in size(LIMITS[turn : turn + 1], LIMITS):
            question = ConfidenceQuestion(POLICY, limit=limit, **only)
            assert ledger.outcomes.cover(scope.scope_id, question) == expected(past, question)
    assert_whole(ledger, scope)


def expected_confidence(past: list[Report], of: Subject) -> Any:
    if not latest(past):
        return None
    similar = recount(latest(past, **of._asdict()))
    policy = recount(latest(past, verdict=of.verdict, action=of.action))
    return decision_confidence(of.verdict, add(similar.values()), add(policy.values()))


def expected(past: list[Report], question: ConfidenceQuestion) -> Coverage:
    of_any_version = {"verdict": question.verdict, "action": question.action}
    found = latest(past, version=question.policy_version, **of_any_version)
    seen = found[-question.limit :] if question.limit else found
    policy = recount(latest(past, **of_any_version))
    numbers = {report.number for report in seen}
    dates = [report.reported_at for report in past if report.status is not None and report.number in numbers]
    first, last = min(dates, default=None), max(dates, default=None)
    return Coverage(recount(seen), add(policy.values()), first, last, len(seen) < len(found))


def assert_whole(ledger: Ledger, scope: Scope) -> None:
    """The latest outcome of each decision is the last in chain order, and every row of the counts follows from them."""
    size = ledger.entries.head(scope.scope_id).size
    last = {
        found.link["decision_id"]: (found.link["chain_position"], found.body.decode())
        for found in ledger.entries.walk(scope.scope_id, up_to=size)
        if found.link["entry_type"] == "outcome"
    }
    with ledger.store.read() as connection:
        kept = connection.execute(select(latest_outcomes).where(latest_outcomes.c.scope_id == scope.scope_id)).all()
        counts = connection.execute(select(outcome_counts).where(outcome_counts.c.scope_id == scope.scope_id)).all()
    assert {row.decision_id: (row.position, row.outcome_status) for row in kept} == last
    cohorts: Counter[tuple[str, ...]] = Counter()
    for row in kept:
        for cohort in ((row.policy_version, row.verdict, row.action), ("", row.verdict, row.action), ("", "", "")):
            cohorts[row.policy_id, *cohort, row.outcome_status] += 1
    counted = {(*row[1:5], status): getattr(row, status) for row in counts for status in STATUSES}
    assert all(number >= 0 for number in counted.values())
    assert {cohort: number for cohort, number in counted.items() if number} == cohorts


def test_a_scope_and_a_policy_have_counts_of_their_own(ledger: Ledger, scope: Scope) -> None:
    other = ledger.directory.create_scope("other", "unlimited", NOW)
    report = Report(1, Subject("1", "yes", "approve"), "succeeded", timestamp(NOW))
    append(ledger, scope, report)
    append(ledger, scope, replace(report, number=2, status="failed"), policy_id="refund_policy")
    cover = ledger.outcomes.cover
    assert cover(scope.scope_id, ConfidenceQuestion(POLICY)).by_version == {"1": Counts(succeeded=1)}
    assert cover(scope.scope_id, ConfidenceQuestion("refund_policy")).by_version == {"1": Counts(failed=1)}
    nothing = Coverage({}, Counts(), None, None, False)
    assert cover(other.scope_id, ConfidenceQuestion(POLICY)) == nothing
    assert cover(scope.scope_id, ConfidenceQuestion("unknown")) == nothing
    assert cover(scope.scope_id, ConfidenceQuestion("pricing\0exception", verdict="yes")) == nothing
    decision = new_entry(other.scope_id, replace(report, status=None), "dec_other")
    answer = ledger.entries.append(decision)
    assert isinstance(answer, Appended)
    assert answer.confidence is None


def test_a_decision_without_likes_still_hears_of_its_policy(ledger: Ledger, scope: Scope) -> None:
    report = Report(1, Subject("1", "yes", "approve"), "succeeded", timestamp(NOW))
    append(ledger, scope, report)
    other = Report(2, Subject("2", "no", "reject"), None, timestamp(NOW))
    answer = ledger.entries.append(new_entry(scope.scope_id, other, "dec_2"))
    assert isinstance(answer, Appended)
    assert answer.confidence == decision_confidence("no", Counts(), Counts())


def test_a_decision_of_a_policy_without_outcomes_says_that_none_is_like_it(ledger: Ledger, scope: Scope) -> None:
    likeness = Subject("1", "yes", "approve")
    before = ledger.entries.append(
        new_entry(scope.scope_id, Report(1, likeness, None, timestamp(NOW)), "dec_1", policy_id="refund_policy")
    )
    assert isinstance(before, Appended)
    assert before.confidence is None
    append(ledger, scope, Report(2, likeness, "succeeded", timestamp(NOW)))
    after = ledger.entries.append(
        new_entry(scope.scope_id, Report(3, likeness, None, timestamp(NOW)), "dec_3", policy_id="refund_policy")
    )
    assert isinstance(after, Appended)
    assert after.confidence == decision_confidence("yes", Counts(), Counts())
    assert (after.confidence["similar_decisions"], after.confidence["level"]) == (0, "insufficient")


def test_threads_that_report_at_once_are_counted_exactly(ledger: Ledger, scope: Scope) -> None:
    def report(part: int) -> None:
        _report_many(ledger, scope.scope_id, part, 30)

    in_threads(12, report)
    assert ledger.entries.head(scope.scope_id).size == 360
    assert_whole(ledger, scope)
    assert add(ledger.outcomes.cover(scope.scope_id, ConfidenceQuestion(POLICY)).by_version.values()).total == 10


@pytest.mark.heavy
def test_processes_that_report_at_once_are_counted_exactly(ledger: Ledger, scope: Scope) -> None:
    url = ledger_url(ledger)
    processes = [forked().Process(target=_report_from_outside, args=(url, scope.scope_id, part)) for part in range(2)]
    for process in processes:
        process.start()
    in_threads(4, lambda part: _report_many(ledger, scope.scope_id, 100 + part, 25))
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert ledger.entries.head(scope.scope_id).size == 300
    assert_whole(ledger, scope)


def _report_from_outside(url: str, scope_id: str, part: int) -> None:
    ledger = open_ledger(url)
    in_threads(4, lambda thread: _report_many(ledger, scope_id, 10 * part + thread, 25))
    ledger.close()


def _report_many(ledger: Ledger, scope_id: str, part: int, count: int) -> None:
    """Outcomes of ten decisions, over and over, each part in another order."""
    for turn in range(count):
        number = (turn * 7 + part) % 10
        subject = Subject(str(number % 2), VERDICTS[number % 3], "act")
        report = Report(number, subject, STATUSES[(turn + part) % 6], timestamp(NOW + timedelta(seconds=turn - part)))
        appended = ledger.entries.append(new_entry(scope_id, report, f"out_{part:016x}{turn:016x}"))
        assert isinstance(appended, Appended)
