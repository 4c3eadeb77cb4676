"""What every store promises: each test runs on a file, on SQLite and on PostgreSQL, some through sessions as well."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.client.store import Intent, Report, State, Store
from gate.client.store.intents import OUTCOME
from tests.gate.client.store.places import KINDS, SESSION_KINDS, Place
from tests.gate.client.store.support import (
    ALWAYS,
    AT,
    BY,
    NEVER,
    Model,
    attempt,
    begun,
    execution,
    finished,
    in_review,
    latest,
    permitted,
)
from tests.support.samples import cases
from tests.support.torture import size

TRANSITIONS: Final = cases("intent_transitions")

through_sessions_too = pytest.mark.parametrize("kind", [*KINDS, *SESSION_KINDS])


def refused(store: Store, name: str) -> None:
    store.resolve(in_review(store, name), b"refused", State.HELD)


def granted(store: Store, name: str) -> None:
    store.resolve(in_review(store, name), b"granted", State.PERMITTED)


def started(store: Store, name: str) -> None:
    store.start(permitted(store, name), AT, BY)


def reported(store: Store, name: str) -> None:
    finished(store, name)
    store.delivered(next(report for report in store.undelivered(100) if report.intent_id == name))


SITUATIONS: Final[dict[str, Callable[[Store, str], Any]]] = {
    "nothing": lambda store, name: None,
    "held": lambda store, name: store.hold(attempt(name)),
    "in review": in_review,
    "review refused": refused,
    "review granted": granted,
    "permitted": permitted,
    "started": started,
    "finished": finished,
    "reported": reported,
}


def deliver(store: Store, of: Intent) -> None:
    about = [report for report in store.undelivered(100) if report.intent_id == of.intent_id]
    store.delivered(about[0] if about else replace(execution(of), report_id=1_000_000))


CALLS: Final[dict[str, Callable[[Store, Intent], object]]] = {
    "hold": lambda store, of: store.hold(attempt(of.intent_id)),
    "hold another": lambda store, of: store.hold(attempt(of.intent_id, 2), instead_of=of),
    "answer yes": lambda store, of: store.answer(of, b"yes", State.PERMITTED),
    "answer review": lambda store, of: store.answer(of, b"review again", State.HELD),
    "grant": lambda store, of: store.resolve(of, b"granted", State.PERMITTED),
    "refuse": lambda store, of: store.resolve(of, b"refused", State.HELD),
    "grant another record": lambda store, of: store.resolve(
        replace(of, answered=b"another"), b"granted", State.PERMITTED
    ),
    "start": lambda store, of: store.start(of, AT, BY),
    "unstart": lambda store, of: store.unstart(of),
    "finish": lambda store, of: store.finish(replace(of, told=None), execution(of)),
    "amend": lambda store, of: store.finish(replace(of, told=of.told or b"x"), replace(execution(of), body=b"{}")),
    "deliver": deliver,
    "forget": lambda store, of: store.forget(ALWAYS) > 0,
}


class TestTransitions:
    @through_sessions_too
    @pytest.mark.parametrize("case", TRANSITIONS, ids=lambda case: case["call"])
    def test_a_call_moves_an_intent_on_from_some_states_and_changes_nothing_in_the_others(
        self, place: Place, case: dict[str, Any]
    ) -> None:
        store, other = place.open(), place.open()
        for situation, prepare in SITUATIONS.items():
            prepare(store, situation)
            before = other.find(situation)
            reports = other.undelivered(100)
            said = CALLS[case["call"]](store, before or attempt(situation))
            assert said in (None, situation in case["allowed"]), situation
            after = other.find(situation)
            if situation in case["allowed"]:
                assert after is not None
                assert after != before
                assert after.state == case["allowed"][situation]
            else:
                assert after == before, situation
                assert other.undelivered(100) == reports, situation

    def test_what_was_superseded_is_never_moved_on(self, store: Store) -> None:
        for situation, prepare in SITUATIONS.items():
            if situation == "nothing":
                continue
            prepare(store, situation)
            old = latest(store, situation)
            assert store.hold(attempt(situation, 2), instead_of=old)
            new = latest(store, situation)
            assert not store.answer(old, b"yes", State.PERMITTED)
            assert not store.start(old, AT, BY)
            store.unstart(old)
            assert not store.start(old, AT, BY)
            assert not store.finish(old, execution(old))
            for state in State:
                assert not store.hold(attempt(situation, 2), instead_of=replace(old, state=state))
            assert latest(store, situation) == new == attempt(situation, 2)

    def test_an_attempt_takes_the_place_only_of_what_its_caller_saw(self, store: Store) -> None:
        store.hold(attempt())
        seen = latest(store, "refund-1")
        store.answer(seen, b"record", State.PERMITTED)
        assert not store.hold(attempt(number=2), instead_of=seen)
        assert latest(store, "refund-1").state is State.PERMITTED
        started = latest(store, "refund-1")
        store.start(started, AT, BY)
        seen = latest(store, "refund-1")
        store.finish(seen, execution(seen))
        assert not store.hold(attempt(number=2), instead_of=seen)
        told = latest(store, "refund-1")
        other = replace(execution(told), body=b'{"execution_status": "failed"}')
        assert store.finish(told, other)
        assert not store.hold(attempt(number=2), instead_of=told)
        assert store.hold(attempt(number=2), instead_of=latest(store, "refund-1"))
        assert [found.attempt for found in store.attempts("refund-1", 10)] == [2, 1]
        assert [found.state for found in store.attempts("refund-1", 1)] == [State.HELD]
        assert store.attempts("refund-2", 10) == []

    @pytest.mark.parametrize("kind", ["file"])
    @pytest.mark.parametrize(("name", "number", "before"), [("refund-1", 2, None), ("refund-1", 3, 1), ("other", 2, 1)])
    def test_attempts_are_counted_without_a_gap(self, store: Store, name: str, number: int, before: int | None) -> None:
        store.hold(attempt())
        with pytest.raises(ValueError, match="does not come after"):
            store.hold(attempt(name, number), instead_of=None if before is None else attempt(number=before))

    @through_sessions_too
    def test_the_whole_way_keeps_what_was_said_at_each_step(self, store: Store) -> None:
        assert store.find("refund-1") is None
        assert store.hold(attempt())
        assert latest(store, "refund-1") == attempt()
        assert store.answer(attempt(), b'{"verdict": "yes\0"}', State.PERMITTED)
        answered = replace(attempt(), state=State.PERMITTED, answered=b'{"verdict": "yes\0"}')
        assert latest(store, "refund-1") == answered
        assert store.start(answered, AT, BY)
        assert latest(store, "refund-1") == begun(answered)
        told = execution(answered)
        assert store.finish(begun(answered), told)
        ended = replace(begun(answered), told=told.body)
        assert latest(store, "refund-1") == ended
        (spooled,) = store.undelivered(10)
        assert spooled == replace(told, report_id=spooled.report_id)
        store.delivered(spooled)
        assert latest(store, "refund-1") == replace(ended, state=State.REPORTED)
        assert store.undelivered(10) == []

    def test_threads_that_share_a_store_start_an_intent_once(self, store: Store) -> None:
        intents = [permitted(store, f"refund-{number}") for number in range(5)]
        together = threading.Barrier(6)
        won: list[str] = []

        def start() -> None:
            together.wait()
            won.extend(intent.intent_id for intent in intents if store.start(intent, AT, BY))

        threads = [threading.Thread(target=start) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == [intent.intent_id for intent in intents]


class TestReports:
    def test_reports_are_delivered_in_the_order_they_were_told(self, store: Store) -> None:
        intent = finished(store)
        for _ in range(3):
            store.tell(execution(intent, OUTCOME))
        found = store.undelivered(10)
        assert [report.kind for report in found] == ["execution", "outcome", "outcome", "outcome"]
        numbers = [report.report_id for report in found]
        assert numbers == sorted(set(numbers))
        assert store.undelivered(2) == found[:2]
        store.delivered(found[1])
        assert latest(store, "refund-1").state is State.STARTED
        assert store.undelivered(10) == [found[0], *found[2:]]

    def test_a_refused_report_stays_with_its_reason_and_holds_up_no_other(self, store: Store) -> None:
        intent = finished(store)
        store.tell(execution(intent, OUTCOME))
        first, second = store.undelivered(10)
        store.refused(first, "The key may not report; use another. \0 é")
        assert store.undelivered(1) == [second]
        assert store.set_aside(10) == [replace(first, refused="The key may not report; use another. \0 é")]
        store.refused(second, "No such decision: \ud800")
        assert [report.refused for report in store.set_aside(10)][1:] == ["No such decision: ?"]
        assert len(store.set_aside(1)) == 1

    def test_the_number_of_a_delivered_report_is_never_another_ones(self, store: Store) -> None:
        """Two processes may deliver the same report, and the second may say so late."""
        intent = finished(store)
        (first,) = store.undelivered(10)
        store.delivered(first)
        store.tell(execution(intent, OUTCOME))
        store.delivered(first)
        assert [report.kind for report in store.undelivered(10)] == ["outcome"]

    def test_a_report_of_a_superseded_attempt_is_still_delivered(self, store: Store) -> None:
        old = finished(store)
        assert store.hold(attempt(number=2), instead_of=old)
        (report,) = store.undelivered(10)
        store.delivered(report)
        assert store.undelivered(10) == []
        assert latest(store, "refund-1") == attempt(number=2)


class TestListing:
    def test_latest_attempts_are_listed_by_state_those_asked_first_at_the_front(self, store: Store) -> None:
        for number, day in enumerate(("14", "12", "13", "11")):
            store.hold(replace(attempt(f"refund-{number}"), asked_at=f"2026-06-{day}T12:30:45.678Z"))
        store.answer(attempt("refund-1"), b"record", State.PERMITTED)
        store.hold(attempt("refund-3", 2), instead_of=latest(store, "refund-3"))

        def names(*states: State, limit: int = 10) -> list[str]:
            return [intent.intent_id for intent in store.listed(states, limit)]

        assert names(*State) == ["refund-3", "refund-1", "refund-2", "refund-0"]
        assert names(State.HELD) == ["refund-3", "refund-2", "refund-0"]
        assert names(State.HELD, limit=2) == ["refund-3", "refund-2"]
        assert names(State.PERMITTED, State.STARTED) == ["refund-1"]
        assert names(State.SUPERSEDED) == names() == []
        assert store.listed([State.PERMITTED], 10) == [latest(store, "refund-1")]


class TestForgetting:
    def test_what_is_forgotten_keeps_that_it_was(self, store: Store) -> None:
        intent = finished(store)
        (report,) = store.undelivered(10)
        store.delivered(report)
        whole = latest(store, "refund-1")
        assert store.forget(NEVER) == 0
        assert latest(store, "refund-1") == whole
        assert store.forget(ALWAYS) == 1
        assert latest(store, "refund-1") == replace(whole, asked=b"", answered=None, told=None)
        assert store.forget(ALWAYS) == 0
        assert not store.hold(attempt())
        assert not store.start(intent, AT, BY)

    def test_nothing_is_forgotten_that_is_not_over_or_has_a_report_left(self, store: Store) -> None:
        for situation, prepare in SITUATIONS.items():
            if situation != "reported":
                prepare(store, situation)
        # Its outcome is still to be delivered, and another's is refused.
        for number, name in enumerate(("told", "refused")):
            intent = finished(store, name)
            store.tell(execution(intent, OUTCOME))
            execution_, outcome = [report for report in store.undelivered(100) if report.intent_id == name]
            store.delivered(execution_)
            if number:
                store.refused(outcome, "No.")
        before = store.listed(list(State), 100)
        assert store.forget(ALWAYS) == 0
        assert store.listed(list(State), 100) == before


class TestSize:
    def test_a_record_of_16_mib_is_kept(self, store: Store) -> None:
        record = b"\0\xff" * (8 * 1024 * 1024)
        store.hold(attempt())
        assert store.answer(attempt(), record, State.PERMITTED)
        assert store.start(attempt(), AT, BY)
        assert latest(store, "refund-1").answered == record


class TestIdentity:
    def test_every_store_of_a_place_has_the_same_identity(self, place: Place) -> None:
        first = place.open()
        assert first.identity.startswith("store_")
        assert first.identity == first.identity == place.open().identity


NAMES: Final = st.sampled_from(["a", "b"])
OPERATIONS: Final = st.lists(
    st.tuples(
        st.sampled_from([*CALLS, *CALLS, "tell", "refuse", "forget nothing"]),
        NAMES,
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    max_size=25,
)


def apply(store: Store, call: str, seen: Intent, which: int) -> object:
    """Does one thing, about an attempt as somebody saw it, or about one of the reports."""
    reports = [*store.undelivered(100), *store.set_aside(100)]
    if call == "hold another":
        return store.hold(attempt(seen.intent_id, seen.attempt + 1), instead_of=seen)
    if call == "tell":
        store.tell(execution(seen, OUTCOME))
        return None
    if call == "forget":
        return store.forget(ALWAYS)
    if call == "forget nothing":
        return store.forget(NEVER)
    if call in ("deliver", "refuse"):
        for report in reports[which : which + 1]:
            store.delivered(report) if call == "deliver" else store.refused(report, "No.")
        return None
    return CALLS[call](store, seen)


@pytest.fixture
def stores(place: Place) -> tuple[Store, Store]:
    """Two stores of a place, as two processes have them."""
    found = (place.open(), place.open())
    assert found[0].identity == found[1].identity
    return found


def unnumbered(reports: Any) -> list[Report]:
    return [replace(report, report_id=0) for report in reports]


@through_sessions_too
@settings(max_examples=size(6, 300), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(operations=OPERATIONS)
def test_two_stores_of_a_place_agree_with_a_dictionary(
    place: Place, stores: tuple[Store, Store], operations: list[tuple[str, str, int, int]]
) -> None:
    place.wipe()
    model = Model()
    for call, name, who, which in operations:
        seen = model.find(name) or attempt(name)
        # What somebody saw a while ago: an earlier attempt, or the same in an earlier state.
        if which == 3:
            seen = replace(attempt(name), state=State.PERMITTED)
        assert apply(stores[who], call, seen, which) == apply(model, call, seen, which), call
        reader = stores[1 - who]
        assert [reader.find(found) for found in ("a", "b")] == [model.find(found) for found in ("a", "b")]
        assert reader.listed(list(State), 9) == model.listed(list(State), 9)
        assert unnumbered(reader.undelivered(9)) == unnumbered(model.undelivered(9))
        assert unnumbered(reader.set_aside(9)) == unnumbered(model.set_aside(9))
