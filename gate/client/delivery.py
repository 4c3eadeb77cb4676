"""Delivering the reports of a store, oldest first: as a flow, and by a thread in the background.

A report that cannot be delivered now stays, and so does everything after it: the service learns things in the order in
which they were told. A report that the service will never take is set aside with the reason, and stays too.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from gate.client import operations
from gate.client.calls import Call
from gate.client.errors import ApiError, Conflict, NotFound, Refused
from gate.client.exchange import exchange
from gate.client.flow import Do, Flow, Pause
from gate.client.forks import begin_in_forks
from gate.client.store.intents import EXECUTION, Report, Store
from gate.errors import GateError
from gate.strict_json import parse_document

LAST_SECONDS: Final = 5.0
"""How long closing waits for what is being delivered, in seconds."""

_AT_ONCE: Final = 100
# More than anybody lets pile up; those that are refused again stay at the head.
_AGAIN: Final = 10_000
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
    """

    delivered: int = 0
    refused: int = 0
    failure: ApiError | None = None


def deliver(store: Store, *, seconds: float, tries: int, again: bool = False) -> Flow[Delivery]:
    """Delivers what waits, in order, until nothing does or the service cannot take it now.

    Args:
        store: Where the reports are.
        seconds: How long one report may take.
        tries: How often one is sent at most.
        again: Whether to begin with those that were set aside.

    Raises:
        StoreUnavailable: The store cannot be used.
    """
    delivered = refused = 0
    waiting: list[Report] = list((yield Do(partial(store.set_aside, _AGAIN)))) if again else []
    while waiting := waiting or list((yield Do(partial(store.undelivered, _AT_ONCE)))):
        for report in waiting:
            try:
                yield from _hand_over(report, seconds, tries)
            except ApiError as error:
                if not _is_final(error):
                    return Delivery(delivered, refused, error)
                log.error("The service will never take a report of %s: %s", report.decision_id, error.code)
                yield Do(partial(store.refused, report, str(error)))
                refused += 1
            else:
                yield Do(partial(store.delivered, report))
                delivered += 1
        waiting = []
    return Delivery(delivered, refused)


def _hand_over(report: Report, seconds: float, tries: int) -> Flow[None]:
    for _ in range(_TURNS):
        try:
            yield from exchange(call_of(report), seconds=seconds, tries=tries)
        except Conflict as error:
            if not error.code.endswith("_IDEMPOTENCY_IN_PROGRESS"):
                raise
            # Another process is delivering the same report at this moment.
            in_progress = error
            yield Pause(_TURN_SECONDS)
        else:
            return
    raise in_progress


def call_of(report: Report) -> Call[Any]:
    """The call that delivers a report."""
    operation = operations.report_execution if report.kind == EXECUTION else operations.report_outcome
    return operation(report.decision_id, parse_document(report.body), idempotency_key=report.idempotency_key)


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
        self._delivering = threading.Lock()
        self._lock = threading.Lock()
        self._shift: _Shift | None = None

    def wake(self) -> None:
        """Says that something waits. Returns at once."""
        with self._lock:
            if self._shift is None:
                shift = _Shift()
                thread = threading.Thread(target=self._run, args=(shift,), name="gate-client-courier", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    # What waits is kept; the next wake tries again.
                    log.warning("Reports wait, and no thread can be started: %s", error)
                    return
                self._shift = shift
                # A script that ends with its last line has its reports delivered as well.
                atexit.register(self.close, LAST_SECONDS)
            if not self._shift.failing:
                self._shift.idle.clear()
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

    def close(self, seconds: float) -> None:
        """Lets what waits be tried, for at most so many seconds, and ends the thread; waking it begins another."""
        with self._lock:
            shift, self._shift = self._shift, None
        atexit.unregister(self.close)
        if shift is not None:
            shift.idle.wait(seconds)
            shift.over.set()
            shift.awake.set()

    def _run(self, shift: _Shift) -> None:
        pause = _FIRST_PAUSE
        while True:
            shift.awake.wait()
            shift.awake.clear()
            if shift.over.is_set():
                return
            failure = self._once()
            with self._lock:
                shift.failing = failure is not None
                if shift.failing or not shift.awake.is_set():
                    shift.idle.set()
            if failure is None:
                pause = _FIRST_PAUSE
                continue
            log.warning("Reports wait, or could not be looked for: %s", failure)
            wished = failure.retry_after if isinstance(failure, ApiError) else None
            shift.over.wait(min(max(pause, wished or 0.0), _LONGEST_PAUSE))
            pause = min(2 * pause, _LONGEST_PAUSE)
            shift.awake.set()

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
        failing: Whether the last delivery left something behind.
        awake: Something waits.
        idle: Nothing waits that has not been tried.
        over: It is to end.
    """

    failing: bool = False
    awake: threading.Event = field(default_factory=threading.Event)
    idle: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
