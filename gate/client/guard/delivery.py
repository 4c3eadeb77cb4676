"""Delivers the reports of a store, oldest first: as a flow, and in a background thread.

If a report cannot be delivered now, it stays in the store, and all later reports wait too, because the service must
receive reports in order. If only a proxy refused the report, only later reports about the same decision wait. If the
service permanently refuses a report, the store sets it aside with the reason and keeps it.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from gate.client import operations
from gate.client.errors import AnswerUnusable, ApiError, Conflict, NotFound, Refused
from gate.client.store.intents import EXECUTION, Report, Store
from gate.client.transport.calls import Answer, Call
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Do, Flow, Pause
from gate.client.transport.forks import begin_in_forks
from gate.encoding.strict_json import parse_document
from gate.errors import GateError

if TYPE_CHECKING:
    from multiprocessing.util import Finalize

    from gate.client.api.types import ExecutionReceipt, OutcomeRecord

LAST_SECONDS: Final = 5.0
"""How long closing waits for a delivery that is in progress, in seconds."""

_AT_ONCE: Final = 100
# More than anyone lets pile up; reports that are refused again stay at the head.
_AGAIN: Final = 10_000
# A proxy that refuses this many refuses all of them.
_MOST_STUCK: Final = 20
_TURNS: Final = 20
_TURN_SECONDS: Final = 0.1
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0

log = logging.getLogger("gate.client")


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of delivering the waiting reports.

    Attributes:
        delivered: The number of reports that the service accepted.
        refused: The number of reports that the service permanently refused. The store sets them aside.
        failure: The error that keeps other reports waiting, or None.
        foreign: Whether reports of another scope wait. Only a key of that scope can deliver them.
    """

    delivered: int = 0
    refused: int = 0
    failure: ApiError | None = None
    foreign: bool = False


def deliver(
    store: Store, scope: Callable[[], str | None], *, seconds: float, tries: int, again: bool = False
) -> Flow[Delivery]:
    """Delivers all waiting reports in order, and stops early if the service does not accept reports now.

    Args:
        store: The store of the reports.
        scope: Returns the scope of the key; only its reports are delivered. None for all scopes.
        seconds: The time limit for one report.
        tries: How often to send one report at most.
        again: Whether to start with the reports that were set aside.

    Raises:
        StoreUnavailable: The guard cannot use the store.
    """
    if not (yield from Do(partial(_waits, store, again))):
        return Delivery()
    scope_hash = scope()
    delivered = refused = 0
    failure: ApiError | None = None
    stuck: set[str] = set()
    limit = _AT_ONCE
    found: Sequence[Report] = (yield from Do(partial(store.set_aside, _AGAIN, scope_hash))) if again else ()
    found = found or (yield from Do(partial(store.undelivered, limit, scope_hash)))
    # A stuck report delays those behind it, until enough have been looked at.
    while len(found) == limit or any(report.decision_id not in stuck for report in found):
        for report in found:
            if report.decision_id in stuck:
                continue
            try:
                yield from _hand_over(report, seconds, tries)
            except ApiError as error:
                if _is_final(error):
                    log.error("The service permanently refused the report of %s: %s", report.decision_id, error.code)
                    yield from Do(partial(store.refused, report, str(error)))
                    refused += 1
                    continue
                failure = failure or error
                stuck.add(report.decision_id)
                if not _is_about_one(error) or len(stuck) > _MOST_STUCK:
                    return Delivery(delivered, refused, failure)
            else:
                # After the response: after a crash in between, it is delivered again under the same key, and the
                # service stores it once.
                yield from Do(partial(store.delivered, report))
                delivered += 1
        limit = _AT_ONCE + sum(report.decision_id in stuck for report in found)
        found = yield from Do(partial(store.undelivered, limit, scope_hash))
    left = yield from Do(partial(store.undelivered, 1 + len(found)))
    foreign = scope_hash is not None and any(report.scope_hash != scope_hash for report in left)
    return Delivery(delivered, refused, failure, foreign)


def _waits(store: Store, again: bool) -> bool:
    return bool(store.undelivered(1) or (again and store.set_aside(1)))


def _hand_over(report: Report, seconds: float, tries: int) -> Flow[None]:
    for _ in range(_TURNS):
        try:
            answer = yield from exchange(call_of(report), seconds=seconds, tries=tries)
            _require_taken(report, answer)
        except Conflict as error:
            if not error.code.endswith("_IDEMPOTENCY_IN_PROGRESS"):
                raise
            # Another process is delivering the same report at this moment.
            in_progress = error
            yield from Pause(_TURN_SECONDS)
        else:
            return
    raise in_progress


def _require_taken(report: Report, answer: Answer[ExecutionReceipt | OutcomeRecord]) -> None:
    """Requires that a response is about this report, because a proxy's response does not store it."""
    told = {"decision_id": report.decision_id, "idempotency_key": report.idempotency_key}
    if {name: answer.body.get(name) for name in told} != told:
        raise AnswerUnusable(
            "ANSWER_UNUSABLE",
            f"The response {answer.status} to the report of {report.decision_id} is not about that report; check for "
            "a proxy between this host and the service.",
            status=answer.status,
            request_id=answer.request_id,
        )


def call_of(report: Report) -> Call[ExecutionReceipt | OutcomeRecord]:
    """The call that delivers a report."""
    body, key = parse_document(report.body), report.idempotency_key
    if report.kind == EXECUTION:
        return operations.report_execution(report.decision_id, body, idempotency_key=key)
    return operations.report_outcome(report.decision_id, body, idempotency_key=key)


def _is_about_one(error: ApiError) -> bool:
    """Whether a proxy refused this report and may let others pass."""
    return isinstance(error, NotFound | Refused) and error.code.startswith("HTTP_")


def _is_final(error: ApiError) -> bool:
    """Whether the service itself permanently refused the report; a proxy's refusal does not count."""
    if isinstance(error, NotFound):
        return error.code == "SVC_DECISION_NOT_FOUND"
    if isinstance(error, Conflict):
        return error.code.endswith("_IDEMPOTENCY_CONFLICT")
    return isinstance(error, Refused) and not error.code.startswith("HTTP_")


class Courier:
    """Delivers in a background thread, which starts with the first report and ends with the process.

    Undelivered reports stay in the store for the next process or `gate client flush`.
    """

    def __init__(self, deliver: Callable[[bool], Delivery]) -> None:
        """Takes the function that delivers all waiting reports. Its argument: whether to start with refused ones."""
        self._deliver = deliver
        begin_in_forks(self)

    def begin(self) -> None:
        """Starts without a thread and without a delivery."""
        # Two deliveries at once would overtake each other, and the service must learn things in order.
        self._delivering = threading.Lock()
        self._lock = threading.Lock()
        self._shift: _Shift | None = None

    def wake(self) -> None:
        """Signals that a report waits. Returns immediately."""
        with self._lock:
            if self._shift is None or self._shift.closing.is_set() or self._shift.ended.is_set():
                shift = _Shift()
                thread = threading.Thread(target=self._run, args=(shift,), name="gate-client-courier", daemon=True)
                self._shift = shift
                try:
                    thread.start()
                except RuntimeError as error:
                    # What waits is kept; the next wake tries again.
                    shift.ended.set()
                    log.warning("Reports are waiting, and no thread can be started to deliver them: %s", error)
                    return
                shift.hear_of_the_end(partial(self.close, LAST_SECONDS))
            self._shift.awake.set()

    def deliver(self, *, again: bool = False) -> Delivery:
        """Delivers the waiting reports in the caller's thread, after a delivery that is in progress.

        Args:
            again: Whether to start with the reports that were set aside.

        Raises:
            StoreUnavailable: The guard cannot use the store.
        """
        with self._delivering:
            return self._deliver(again)

    def abandon(self) -> None:
        """Tries to deliver once more and ends the thread, after the last user of the courier is gone.

        The garbage collector calls it, at any moment in any thread. It therefore does not wait and takes no lock.
        """
        shift = self._shift
        if shift is not None:
            shift.closing.set()
            shift.awake.set()

    def close(self, seconds: float) -> None:
        """Tries to deliver once more, for at most the given seconds, and ends the thread. `wake` starts a new one."""
        with self._lock:
            shift, self._shift = self._shift, None
        if shift is not None:
            shift.closing.set()
            shift.awake.set()
            # A client that is collected while its reports are delivered is closed by the very thread.
            if threading.get_ident() != shift.thread:
                shift.ended.wait(seconds)

    def _run(self, shift: _Shift) -> None:
        shift.thread = threading.get_ident()
        pause = _FIRST_PAUSE
        try:
            while True:
                shift.awake.wait()
                shift.awake.clear()
                # Read before the delivery, so that everything reported until then is tried.
                is_last = shift.closing.is_set()
                failure = self._once()
                if failure is not None:
                    log.warning("Reports are waiting, or could not be read: %s", failure)
                if is_last:
                    return
                if failure is None:
                    pause = _FIRST_PAUSE
                    continue
                wished = failure.retry_after if isinstance(failure, ApiError) else None
                shift.closing.wait(min(max(pause, wished or 0.0), _LONGEST_PAUSE))
                pause = min(2 * pause, _LONGEST_PAUSE)
                shift.awake.set()
        finally:
            shift.ended.set()
            shift.forget_the_end()

    def _once(self) -> GateError | None:
        try:
            return self.deliver().failure
        except GateError as error:
            return error
        except Exception as error:
            log.exception("Reports could not be delivered.")
            return GateError("DELIVERY_FAILED", f"Reports could not be delivered: {type(error).__name__}.")


@dataclass(slots=True)
class _Shift:
    """One life of the thread.

    Attributes:
        thread: The thread's number; None before it runs.
        awake: A report waits.
        closing: The thread must end after one more delivery.
        ended: The thread has ended.
    """

    thread: int | None = None
    awake: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    _at_exit: Callable[[], None] | None = None
    _in_child: Finalize | None = None

    def hear_of_the_end(self, close: Callable[[], None]) -> None:
        """Calls a function when the process ends, so that a script delivers its reports before it exits."""
        self._at_exit = close
        atexit.register(close)
        # A child of multiprocessing ends without running atexit. Without that module loaded, this is no such child.
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            self._in_child = multiprocessing.Finalize(None, close, exitpriority=0)

    def forget_the_end(self) -> None:
        """Cancels these calls, and releases what they refer to."""
        if self._at_exit is not None:
            atexit.unregister(self._at_exit)
        if self._in_child is not None:
            self._in_child.cancel()
