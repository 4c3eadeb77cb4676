"""Delivering the reports of a store, oldest first: as a flow, and by a thread in the background.

A report that cannot be delivered now stays, and so does everything that comes after it: the service learns things in
the order in which they were told. Where it is refused by something in between and not by the service, only what else is
told of its decision waits for it. A report that the service will never take is set aside with the reason, and stays.
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
"""How long closing waits for what is being delivered, in seconds."""

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
    """What became of the reports that waited.

    Attributes:
        delivered: How many the service took.
        refused: How many it will never take; they are set aside.
        failure: Why the rest still waits; None where none does.
        foreign: Whether reports of another scope than the key's wait, which a key of theirs has to deliver.
    """

    delivered: int = 0
    refused: int = 0
    failure: ApiError | None = None
    foreign: bool = False


def deliver(
    store: Store, scope: Callable[[], str | None], *, seconds: float, tries: int, again: bool = False
) -> Flow[Delivery]:
    """Delivers what waits, in order, until nothing does or the service cannot take it now.

    Args:
        store: Where the reports are.
        scope: Gives the scope whose reports are delivered, that of the key; None for all.
        seconds: How long one report may take.
        tries: How often one is sent at most.
        again: Whether to begin with those that were set aside.

    Raises:
        StoreUnavailable: The store cannot be used.
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
                # After the answer: a crash in between has it delivered again, under the same key, and nothing is told
                # twice.
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
    """Requires that an answer is the service's to this very report: what answers in its place takes nothing."""
    told = {"decision_id": report.decision_id, "idempotency_key": report.idempotency_key}
    if {name: answer.body.get(name) for name in told} != told:
        raise AnswerUnusable(
            "ANSWER_UNUSABLE",
            f"The answer {answer.status} to the report of {report.decision_id} does not name that "
            "report; check for a proxy between this host and the service.",
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
    """Whether something in between refused this very report, and may let others pass."""
    return isinstance(error, NotFound | Refused) and error.code.startswith("HTTP_")


def _is_final(error: ApiError) -> bool:
    """Whether the service itself said that it will never take the report; a proxy's refusal says nothing of that."""
    if isinstance(error, NotFound):
        return error.code == "SVC_DECISION_NOT_FOUND"
    if isinstance(error, Conflict):
        return error.code.endswith("_IDEMPOTENCY_CONFLICT")
    return isinstance(error, Refused) and not error.code.startswith("HTTP_")


class Courier:
    """Delivers in the background, in a thread of its own that begins with the first report and ends with the process.

    What it does not get to deliver stays in the store, for the next process or `gate client flush`.
    """

    def __init__(self, deliver: Callable[[bool], Delivery]) -> None:
        """Takes what delivers everything that waits; it is told whether to begin with what was set aside."""
        self._deliver = deliver
        begin_in_forks(self)

    def begin(self) -> None:
        """Without a thread, and with nothing being delivered."""
        # Two deliveries at once would overtake each other, and the service must learn things in order.
        self._delivering = threading.Lock()
        self._lock = threading.Lock()
        self._shift: _Shift | None = None

    def wake(self) -> None:
        """Says that something waits. Returns at once."""
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
        """Delivers what waits now, in the caller's thread, after whatever the background is delivering.

        Args:
            again: Whether to begin with the reports that were set aside.

        Raises:
            StoreUnavailable: The store cannot be used.
        """
        with self._delivering:
            return self._deliver(again)

    def abandon(self) -> None:
        """Lets what waits be tried once more, and ends the thread, when there is nobody left to wait for that.

        Called by the garbage collector, at any moment in any thread: it waits for nothing, and takes no lock.
        """
        shift = self._shift
        if shift is not None:
            shift.closing.set()
            shift.awake.set()

    def close(self, seconds: float) -> None:
        """Lets what waits be tried once more, for at most so many seconds, and ends the thread; waking it begins
        another.
        """
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
                # Looked at before, so that what was told until then is tried.
                is_last = shift.closing.is_set()
                failure = self._once()
                if failure is not None:
                    log.warning("Reports are waiting, or could not be looked up: %s", failure)
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
        awake: Something waits.
        closing: It is to end after one more delivery.
        ended: It has ended.
    """

    thread: int | None = None
    awake: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    _at_exit: Callable[[], None] | None = None
    _in_child: Finalize | None = None

    def hear_of_the_end(self, close: Callable[[], None]) -> None:
        """Calls a function when the process ends: a script that ends with its last line has its reports delivered."""
        self._at_exit = close
        atexit.register(close)
        # A child of multiprocessing ends without running atexit. Without that module loaded, this is no such child.
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            self._in_child = multiprocessing.Finalize(None, close, exitpriority=0)

    def forget_the_end(self) -> None:
        """Calls nothing any more, and holds nobody."""
        if self._at_exit is not None:
            atexit.unregister(self._at_exit)
        if self._in_child is not None:
            self._in_child.cancel()
