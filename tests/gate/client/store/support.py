"""Intents and reports, and a store that is nothing but a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from gate.client.store import Intent, Report, State, Store
from gate.client.store.intents import EXECUTION

AT: Final = "2026-06-11T12:30:45.678Z"
BY: Final = "entering-1"
SCOPE: Final = "5c" * 32
ALWAYS: Final = "9999-12-31T23:59:59.999Z"
NEVER: Final = "2000-01-01T00:00:00.000Z"


def attempt(intent_id: str = "refund-1", number: int = 1) -> Intent:
    """An attempt that was not yet held."""
    asked = b'{"attempt": %d, "zero": "\0"}' % number
    return Intent(intent_id, number, State.HELD, asked, f"{number:064x}", AT)


def execution(of: Intent, kind: str = EXECUTION) -> Report:
    """A report about an attempt."""
    body = b'{"execution_status": "executed", "zero": "\0"}'
    return Report(of.intent_id, of.attempt, kind, f"dec_{of.attempt:032x}", SCOPE, f"{of.intent_id}:{kind}", body, AT)


def begun(intent: Intent) -> Intent:
    """An attempt as it is once it was started at AT by BY."""
    return replace(intent, state=State.STARTED, started_at=AT, started_by=BY)


def latest(store: Store, intent_id: str) -> Intent:
    """The latest attempt at an intent, which there must be."""
    found = store.find(intent_id)
    assert found is not None
    return found


def in_review(store: Store, intent_id: str = "refund-1") -> Intent:
    """A first attempt that is held for its owner."""
    assert store.hold(attempt(intent_id))
    assert store.answer(attempt(intent_id), b"review", State.HELD)
    return latest(store, intent_id)


def permitted(store: Store, intent_id: str = "refund-1") -> Intent:
    """A first attempt that may start."""
    assert store.hold(attempt(intent_id))
    assert store.answer(attempt(intent_id), b"record", State.PERMITTED)
    return latest(store, intent_id)


def finished(store: Store, intent_id: str = "refund-1") -> Intent:
    """A first attempt whose end is known, with a report that is to be delivered."""
    intent = permitted(store, intent_id)
    assert store.start(intent, AT, BY)
    assert store.finish(begun(intent), execution(intent))
    return latest(store, intent_id)


class Model:
    """The protocol of intents, in memory. `reports` and `kept` are what it keeps."""

    identity = "store_model"
    follows_session = False

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], Intent] = {}
        self.reports: list[Report] = []
        self._told = 0

    def when_kept(self, then: Callable[[], None]) -> None:
        then()

    def find(self, intent_id: str) -> Intent | None:
        found = self.attempts(intent_id, 1)
        return found[0] if found else None

    def attempts(self, intent_id: str, limit: int) -> Sequence[Intent]:
        found = [intent for (name, _), intent in sorted(self.kept.items()) if name == intent_id]
        return found[::-1][:limit]

    def hold(self, intent: Intent, *, instead_of: Intent | None = None) -> bool:
        if instead_of is not None:
            kept = self.kept.get((instead_of.intent_id, instead_of.attempt))
            if kept is None or kept.told != instead_of.told:
                return False
            if not self._move(instead_of, instead_of.state, state=State.SUPERSEDED):
                return False
        key = (intent.intent_id, intent.attempt)
        return self.kept.setdefault(key, intent) is intent

    def answer(self, intent: Intent, record: bytes, state: State) -> bool:
        kept = self.kept.get((intent.intent_id, intent.attempt))
        if kept is None or kept.resolved is not None:
            return False
        return self._move(intent, State.HELD, state=state, answered=record)

    def resolve(self, intent: Intent, resolution: bytes, state: State) -> bool:
        kept = self.kept.get((intent.intent_id, intent.attempt))
        if kept is None or kept.answered is None or kept.answered != intent.answered or kept.resolved:
            return False
        return self._move(intent, State.HELD, state=state, resolved=resolution)

    def start(self, intent: Intent, at: str, by: str) -> bool:
        return self._move(intent, State.PERMITTED, state=State.STARTED, started_at=at, started_by=by)

    def unstart(self, intent: Intent) -> None:
        if self._unknown(intent):
            self._move(intent, State.STARTED, state=State.PERMITTED, started_at=None, started_by=None)

    def finish(self, intent: Intent, report: Report) -> bool:
        kept = self.kept.get((intent.intent_id, intent.attempt))
        if kept is None or kept.told != intent.told or kept.started_by != intent.started_by:
            return False
        begun = (State.STARTED,) if kept.told is None else (State.STARTED, State.REPORTED)
        done = kept.state in begun and self._move(intent, kept.state, told=report.body)
        if done:
            self.tell(report)
        return done

    def settle(self, intent: Intent, report: Report) -> bool:
        return self.finish(intent, report)

    def tell(self, report: Report) -> None:
        self._told += 1
        self.reports.append(replace(report, report_id=self._told))

    def undelivered(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        return [report for report in self._of(scope_hash) if report.refused is None][:limit]

    def delivered(self, report: Report) -> None:
        kept = [other for other in self.reports if other.report_id != report.report_id]
        if len(kept) < len(self.reports) and report.kind == EXECUTION:
            about = self.kept.get((report.intent_id, report.attempt))
            if about is not None:
                self._move(about, State.STARTED, state=State.REPORTED)
        self.reports = kept

    def refused(self, report: Report, why: str) -> None:
        self.reports = [
            replace(other, refused=why) if other.report_id == report.report_id else other for other in self.reports
        ]

    def set_aside(self, limit: int, scope_hash: str | None = None) -> Sequence[Report]:
        return [report for report in self._of(scope_hash) if report.refused is not None][:limit]

    def _of(self, scope_hash: str | None) -> Sequence[Report]:
        return [report for report in self.reports if scope_hash in (None, report.scope_hash)]

    def listed(self, states: Sequence[State], limit: int) -> Sequence[Intent]:
        found = [self.find(name) for name in sorted({name for name, _ in self.kept})]
        return [intent for intent in found if intent is not None and intent.state in states][:limit]

    def forget(self, before: str) -> int:
        told = {(report.intent_id, report.attempt) for report in self.reports}
        ended = [
            key
            for key, intent in self.kept.items()
            if intent.state in (State.REPORTED, State.SUPERSEDED) and intent.asked and key not in told
        ]
        if before == NEVER:
            return 0
        for key in ended:
            self.kept[key] = replace(self.kept[key], asked=b"", answered=None, told=None, resolved=None)
        return len(ended)

    def _unknown(self, intent: Intent) -> bool:
        kept = self.kept.get((intent.intent_id, intent.attempt))
        return kept is not None and kept.told is None and kept.started_by == intent.started_by

    def _move(self, intent: Intent, leaves: State, **changes: object) -> bool:
        key = (intent.intent_id, intent.attempt)
        kept = self.kept.get(key)
        if kept is None or kept.state is not leaves or leaves is State.SUPERSEDED:
            return False
        self.kept[key] = replace(kept, **changes)  # type: ignore[arg-type]
        return True
