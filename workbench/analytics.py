"""The analytics process: it keeps the lake up to the ledger, and answers the reports that the API's workers ask for.

`gate serve` starts one beside its workers, which reach it over a local socket; they never load what it computes with.
Where it is down, reports answer 503, and deciding does not notice.

Each connection carries one question and one answer, framed by `multiprocessing.connection` as bytes of JSON:
{report, scope_id, policy_id, ...} and {answer} or {error: {code, message, details}}.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

import orjson
import polars as pl

from gate.errors import GateError, OperatorError, ServiceUnavailable
from gate.ids import utc_now
from gate.ledger import Ledger
from workbench.engines.alerts import policy_alerts
from workbench.engines.anomalies.report import anomalies
from workbench.engines.benchmarks import benchmarks
from workbench.engines.effectiveness import effectiveness
from workbench.lake.cohorts import is_frozen, keep_frozen, month_due
from workbench.lake.compaction import MANY
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.lease import BUSY, lease
from workbench.lake.upkeep import bring_up

MAX_QUESTION: Final = 64 * 1024
"""The longest question, in bytes."""

_REPORTS_AT_ONCE: Final = 2
_PATIENCE: Final = 10.0
_EXPORT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 15.0
# How far cases may be behind, and after how many seconds they are resolved all the same.
_BEHIND: Final = 20_000
_RESOLVE_SECONDS: Final = 300.0


# A file whose bytes are no longer those that were written can make Polars panic, which is no Exception to Python.
_ANYTHING: Final = (Exception, pl.exceptions.PanicException)


class Analytics:
    """Reports over a ledger and its lake; what the API asks for, by name."""

    def __init__(self, ledger: Ledger, lake: Path, personal: Personal) -> None:
        """Takes the ledger, the lake's directory, and what the lake leaves out."""
        self._ledger = ledger
        self._lake = lake
        self._personal = personal
        self._turns = threading.BoundedSemaphore(_REPORTS_AT_ONCE)

    def effectiveness(
        self, scope_id: str, policy_id: str, *, policy_version: str | None, limit: int | None, min_sample: int
    ) -> dict[str, Any]:
        """The effectiveness report of a policy.

        Raises:
            ServiceUnavailable: SVC_REPORT_UNAVAILABLE or SVC_STORAGE_UNAVAILABLE.
        """
        return self._in_turn(
            lambda: effectiveness(
                fresh(self._ledger, self._lake, scope_id, self._personal, facts=False),
                policy_id,
                policy_version=policy_version,
                limit=limit,
                min_sample=min_sample,
            ).to_dict()
        )

    def anomalies(
        self,
        scope_id: str,
        policy_id: str,
        *,
        policy_version: str | None,
        limit: int | None,
        min_sample: int,
        threshold: float,
        max_items: int,
    ) -> dict[str, Any]:
        """The anomaly report of a policy; raises as `effectiveness`."""
        return self._in_turn(
            lambda: anomalies(
                fresh(self._ledger, self._lake, scope_id, self._personal),
                policy_id,
                policy_version=policy_version,
                limit=limit,
                min_sample=min_sample,
                threshold=threshold,
                max_items=max_items,
            ).to_dict()
        )

    def policy_alerts(self, scope_id: str, *, open_days: int) -> dict[str, Any]:
        """The open alerts of a scope; raises as `effectiveness`."""
        return self._in_turn(
            lambda: policy_alerts(fresh(self._ledger, self._lake, scope_id, self._personal), open_days=open_days)
        )

    def benchmarks(
        self,
        scope_id: str,
        policy_id: str,
        *,
        policy_version: str | None,
        limit: int | None,
        min_cohort_scopes: int,
        min_cohort_decisions: int,
    ) -> dict[str, Any]:
        """The benchmark report of a policy.

        Raises:
            ServiceUnavailable: SVC_REPORT_UNAVAILABLE or SVC_STORAGE_UNAVAILABLE.
        """
        try:
            return self._in_turn(
                lambda: benchmarks(
                    fresh(self._ledger, self._lake, scope_id, self._personal, facts=False),
                    policy_id,
                    policy_version=policy_version,
                    limit=limit,
                    min_cohort_scopes=min_cohort_scopes,
                    min_cohort_decisions=min_cohort_decisions,
                ).to_dict()
            )
        except OperatorError as error:
            # Whoever asks cannot mend it, and has no business with the file's place.
            raise ServiceUnavailable(
                "SVC_REPORT_UNAVAILABLE",
                f"What was frozen of the last month cannot be read ({error.code}), and the operator must look at the "
                f"lake. Deciding goes on without it.",
            ) from error

    def _in_turn(self, report: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if not self._turns.acquire(timeout=_PATIENCE):
            raise ServiceUnavailable(
                "SVC_REPORT_UNAVAILABLE",
                "Other reports are being computed. Deciding goes on meanwhile; ask again in a few seconds.",
                details={"retry_after": 5},
            )
        try:
            return report()
        finally:
            self._turns.release()


class Follower:
    """Keeps a lake up to its ledger, a pass at a time, and freezes each month's benchmarks."""

    def __init__(
        self,
        ledger: Ledger,
        lake: Path,
        personal: Personal,
        *,
        patience: float = _RESOLVE_SECONDS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """Takes the ledger, the lake's directory, what it leaves out, how long cases may be behind, and the clock."""
        self._ledger = ledger
        self._lake = lake
        self._personal = personal
        self._patience = patience
        self._clock = clock
        # Of each scope: where it stood, and when its cases were last resolved to the end.
        self._seen: dict[str, tuple[int, float]] = {}

    def follow(self) -> list[BaseException]:
        """Exports what the chains have gained, and compacts what has grown.

        Returns:
            What kept single scopes from it; the others are not kept waiting.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: the ledger cannot tell its scopes.
        """
        failed: list[BaseException] = []
        for scope in self._ledger.tail.scopes():
            now = time.monotonic()
            size, resolved_at = self._seen.get(scope.scope_id, (-1, now))
            overdue = now - resolved_at >= self._patience
            if size == scope.head.size and not overdue:
                continue
            try:
                with lease(self._lake, patience=0):
                    behind = 0 if overdue else _BEHIND
                    for _ in bring_up(
                        self._ledger, self._lake, scope.scope_id, self._personal, many=MANY, behind=behind
                    ):
                        pass
                self._seen[scope.scope_id] = scope.head.size, now if overdue else resolved_at
            except _ANYTHING as error:  # whatever it is, the other scopes do not wait for it
                if not _is_busy(error):
                    failed.append(error)
        try:
            self._freeze()
        except _ANYTHING as error:  # the chains are exported all the same
            if not _is_busy(error):
                failed.append(error)
        return failed

    def _freeze(self) -> None:
        """Freezes the month's benchmarks, once it is due and every scope that takes part is here."""
        now = self._clock()
        if not is_frozen(self._lake, month_due(now)):
            with lease(self._lake, patience=0):
                keep_frozen(self._ledger, self._lake, self._personal, now)


def _is_busy(error: BaseException) -> bool:
    """Whether another process has the lease: it brings the lake up to date."""
    return isinstance(error, OperatorError) and error.code == BUSY


class Observer(Protocol):
    """Hears of what fails where nobody waits for an answer."""

    def failed(self, what: str, error: BaseException) -> None:
        """`export` or `report` failed."""


def serve(analytics: Analytics, follower: Follower, address: str, observer: Observer) -> NoReturn:
    """Keeps the lake and answers questions at a local socket, for as long as the process lives.

    Args:
        analytics: What answers.
        follower: What keeps the lake.
        address: Where the socket is made; its directory lets nobody else in.
        observer: Told what fails.
    """
    threading.Thread(target=_follow, args=(follower, observer), daemon=True).start()
    with Listener(address, family="AF_UNIX", backlog=64) as listener:
        while True:
            connection = listener.accept()
            threading.Thread(target=_answer, args=(connection, analytics, observer), daemon=True).start()


def _follow(follower: Follower, observer: Observer) -> NoReturn:
    while True:
        try:
            failed = follower.follow()
            for error in failed:
                observer.failed("export", error)
            pause = _RETRY_SECONDS if failed else _EXPORT_SECONDS
        except _ANYTHING as unexpected:  # whatever it is, the next pass begins from what was committed
            observer.failed("export", unexpected)
            pause = _RETRY_SECONDS
        time.sleep(pause)


def _answer(connection: Connection, analytics: Analytics, observer: Observer) -> None:
    # Whoever asked may have gone meanwhile.
    with connection, suppress(OSError, EOFError):
        question = connection.recv_bytes(MAX_QUESTION)
        try:
            answer = orjson.dumps(answer_to(orjson.loads(question), analytics))
        except _ANYTHING as error:  # who asked hears nothing, and answers 503
            observer.failed("report", error)
            return
        connection.send_bytes(answer)


def answer_to(question: Mapping[str, Any], analytics: Analytics) -> dict[str, Any]:
    """{answer}, or {error: {code, message, details}}.

    Args:
        question: {report, ...}: the name of a report, and its arguments.
        analytics: What computes it.
    """
    reports: Mapping[str, Callable[..., dict[str, Any]]] = {
        "effectiveness": analytics.effectiveness,
        "anomalies": analytics.anomalies,
        "policy_alerts": analytics.policy_alerts,
        "benchmarks": analytics.benchmarks,
    }
    arguments = {name: value for name, value in question.items() if name != "report"}
    try:
        return {"answer": reports[question["report"]](**arguments)}
    except GateError as error:
        return {"error": {"code": error.code, "message": error.message, "details": dict(error.details)}}
