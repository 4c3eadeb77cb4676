"""The analytics process: it keeps the lake current, updates the shadows of migrations, and answers the reports that API
workers request.

`gate serve` starts one such process next to its workers, which reach it over a local socket. The workers never load its
libraries. While it is down, reports answer 503, and decisions are not affected.

Each connection carries one question and one answer, framed by `multiprocessing.connection` as JSON bytes. The question
is {scope_id, report, ...}, as `gate.policy.questions` dumps it. The answer is {answer} or {error: {code, message,
details}}.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Final, NoReturn, Protocol

import orjson
import polars as pl

from gate.clock import utc_now
from gate.decisions.migrations.reading import Migrations
from gate.errors import GateError, OperatorError, ServiceUnavailable
from gate.ledger import Ledger
from gate.policy.questions import (
    AlertsQuestion,
    AnomaliesQuestion,
    BenchmarksQuestion,
    ConfidenceQuestion,
    EffectivenessQuestion,
    LakeQuestion,
    MigrationReportQuestion,
    ReportDocument,
    Reports,
    load_question,
)
from workbench.alerting import Alerting
from workbench.engines import benchmarks, confidence, effectiveness
from workbench.engines.anomalies import alerts
from workbench.engines.anomalies import report as anomalies
from workbench.kept import Kept
from workbench.lake.cohorts import is_frozen, keep_frozen, month_due
from workbench.lake.compaction import MANY
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.lease import BUSY, lease
from workbench.lake.reader import Snapshot
from workbench.lake.upkeep import Pace, bring_up
from workbench.shadows.watcher import Watcher

MAX_QUESTION: Final = 64 * 1024
"""The longest question, in bytes."""

MAX_KEPT: Final = 128 * 1024 * 1024
"""How many bytes of what reports counted of the lake's files are kept, at most."""

_REPORTS_AT_ONCE: Final = 2
_PATIENCE: Final = 10.0
_EXPORT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 15.0
# How far cases may be behind, and after how many seconds they are resolved all the same.
_BEHIND: Final = 20_000
_RESOLVE_SECONDS: Final = 300.0


# A file whose bytes are no longer those that were written can make Polars panic, which is no Exception to Python.
_ANYTHING: Final = (Exception, pl.exceptions.PanicException)


@dataclass(frozen=True, slots=True)
class _Asking:
    """The scope that a question is about."""

    scope_id: str


class Analytics:
    """Answers questions over a ledger and its lake."""

    def __init__(self, ledger: Ledger, lake: Path, personal: Personal, migrations: Migrations) -> None:
        """Takes the ledger, the lake's directory, what the lake leaves out, and the migrations, which it reads."""
        self._ledger = ledger
        self._lake = lake
        self._personal = personal
        self._migrations = migrations
        self._kept = Kept(MAX_KEPT)
        self._turns = threading.BoundedSemaphore(_REPORTS_AT_ONCE)

    def answer(self, scope_id: str, question: LakeQuestion) -> ReportDocument:
        """The report that answers a question about the decisions or a migration of a scope.

        Raises:
            ServiceUnavailable: `SVC_REPORT_UNAVAILABLE` or `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._turn():
            try:
                return self._answered(scope_id, question)
            except FileNotFoundError:
                # An erasure took a file away since the manifest was read; the one that it left does not list it.
                return self._answered(scope_id, question)

    def _answered(self, scope_id: str, question: LakeQuestion) -> ReportDocument:
        match question:
            case EffectivenessQuestion():
                return effectiveness.answer(self._snapshot(scope_id), question, self._kept).to_dict()
            case ConfidenceQuestion():
                return confidence.answer(self._snapshot(scope_id, facts=False), question).to_dict()
            case AnomaliesQuestion():
                return anomalies.answer(self._snapshot(scope_id), question, self._kept).to_dict()
            case AlertsQuestion():
                return alerts.answer(self._snapshot(scope_id), question, self._kept)
            case BenchmarksQuestion():
                with _frozen_readable():
                    return benchmarks.answer(self._snapshot(scope_id, facts=False), question).to_dict()
            case MigrationReportQuestion():
                return {"text": self._migration_report(_Asking(scope_id), question)}

    def _migration_report(self, scope: _Asking, question: MigrationReportQuestion) -> str:
        stored = self._migrations.find(scope, question.migration_id)
        if stored is None:
            raise ServiceUnavailable(
                "SVC_REPORT_UNAVAILABLE",
                f"The scope has no migration {question.migration_id!r} to report on; check the id.",
            )
        # Loaded where it is used: what draws takes longer to load than all else here.
        from workbench.migration.report import as_html, as_markdown

        document = self._migrations.document(scope, stored)
        return (as_html if question.format == "html" else as_markdown)(document, stored.evidence)

    def _snapshot(self, scope_id: str, *, facts: bool = True) -> Snapshot:
        return fresh(self._ledger, self._lake, scope_id, self._personal, facts=facts)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=_PATIENCE):
            raise ServiceUnavailable(
                "SVC_REPORT_UNAVAILABLE",
                "Too many reports are being computed. Decisions are not affected; retry in a few seconds.",
                details={"retry_after": 5},
            )
        try:
            yield
        finally:
            self._turns.release()


@contextmanager
def _frozen_readable() -> Iterator[None]:
    """Tells callers about an unreadable month without the path of its file, because only the operator can fix it."""
    try:
        yield
    except OperatorError as error:
        raise ServiceUnavailable(
            "SVC_REPORT_UNAVAILABLE",
            f"Last month's benchmarks cannot be read ({error.code}); the operator must check the lake. Decisions are "
            f"not affected.",
        ) from error


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
        pace: Pace | None = None,
    ) -> None:
        """Takes the ledger, the lake's directory, what it leaves out, how long cases may be behind, the clock, and the
        pace of the export.
        """
        self._ledger = ledger
        self._lake = lake
        self._personal = personal
        self._patience = patience
        self._clock = clock
        self._pace = pace or Pace()
        # For each scope: its position, and when its cases were last resolved to the end.
        self._seen: dict[str, tuple[int, float]] = {}

    def follow(self) -> list[BaseException]:
        """Exports what the chains have gained, and compacts what has grown.

        Returns:
            What kept single scopes from it; the others are not kept waiting.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the ledger cannot tell its scopes.
        """
        failed: list[BaseException] = []
        began = self._pace.begin()
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
                        self._ledger,
                        self._lake,
                        scope.scope_id,
                        self._personal,
                        many=MANY,
                        behind=behind,
                        pace=self._pace,
                    ):
                        pass
                self._seen[scope.scope_id] = scope.head.size, now if overdue else resolved_at
            except _ANYTHING as error:  # whatever it is, the other scopes do not wait for it
                if not _is_busy(error):
                    failed.append(error)
        if not failed:
            self._pace.followed(began)
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
        """`export`, `report`, `shadow` or `alert` failed."""


def serve(
    analytics: Analytics, follower: Follower, watcher: Watcher, alerting: Alerting, address: str, observer: Observer
) -> NoReturn:
    """Keeps the lake and answers questions at a local socket, for as long as the process lives.

    Args:
        analytics: What answers.
        follower: What keeps the lake.
        watcher: What looks at shadows.
        alerting: What tells webhooks of new anomalies.
        address: Where the socket is made; its directory lets nobody else in.
        observer: Told what fails.
    """
    threading.Thread(target=_follow, args=(follower, observer), daemon=True).start()
    threading.Thread(target=_look, args=(watcher, "shadow", observer), daemon=True).start()
    threading.Thread(target=_look, args=(alerting, "alert", observer), daemon=True).start()
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


def _look(looker: Watcher | Alerting, what: str, observer: Observer) -> NoReturn:
    while True:
        pause = _EXPORT_SECONDS
        try:
            for error in looker.look():
                observer.failed(what, error)
        except _ANYTHING as unexpected:  # whatever it is, the next look starts again
            observer.failed(what, unexpected)
            pause = _RETRY_SECONDS
        time.sleep(pause)


def _answer(connection: Connection, analytics: Analytics, observer: Observer) -> None:
    # The asking process may have gone in the meantime.
    with connection, suppress(OSError, EOFError):
        question = connection.recv_bytes(MAX_QUESTION)
        try:
            answer = orjson.dumps(answer_to(orjson.loads(question), analytics))
        except _ANYTHING as error:  # who asked hears nothing, and answers 503
            observer.failed("report", error)
            return
        connection.send_bytes(answer)


def answer_to(document: Mapping[str, object], reports: Reports) -> dict[str, object]:
    """{answer}, or {error: {code, message, details}}.

    Args:
        document: {scope_id, report, ...}: a scope, and a question about its decisions.
        reports: Answers it.

    Raises:
        KeyError: The scope or the report is missing.
        TypeError: It is not a question.
    """
    members = dict(document)
    scope_id = str(members.pop("scope_id"))
    try:
        return {"answer": reports.answer(scope_id, load_question(members))}
    except GateError as error:
        return {"error": {"code": error.code, "message": error.message, "details": dict(error.details)}}
