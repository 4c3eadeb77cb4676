"""The engines' answers over a scope's snapshot. Several sessions that ask the same get the same, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar, cast

import polars as pl

from gate.errors import NotFound
from gate.policy.anomalies.scores import THRESHOLD
from gate.policy.questions import (
    MOST_ITEMS,
    AnomaliesQuestion,
    BenchmarksQuestion,
    EffectivenessQuestion,
)
from gate.rulebooks.rulebook import Rulebook
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.slices import EVERYTHING, FIRST, Part, Shown, Slice, wider
from workbench.dashboard.store.snapshots import Seen, Snapshots
from workbench.engines import benchmarks, effectiveness
from workbench.engines.activity import Activity, activity
from workbench.engines.anomalies import report as anomalies
from workbench.engines.anomalies.report import AnomalyReport
from workbench.engines.glance import Glance, glance
from workbench.engines.listing import (
    Criteria,
    HeldSummary,
    Listing,
    Names,
    decision_names,
    find_decisions,
    held_decisions,
)
from workbench.kept import Kept
from workbench.lake.cohorts import frozen_months
from workbench.lake.reader import RECORDED, Snapshot
from workbench.values import known_values

Answer = TypeVar("Answer")

KEPT: Final = 256
"""How many answers are kept, over all scopes."""

MOST_VALUES: Final = 200
"""How many values a form offers to sum."""

MAX_COUNTS: Final = 64 * 1024 * 1024
"""How many bytes of what reports counted of the lake's files are kept."""


@dataclass(frozen=True, slots=True, order=True)
class Edition:
    """What the answers about a scope follow from; a later one is greater.

    Attributes:
        position: How much of the chain they see.
        generation: The lake's manifest, whose files kept answers may still read.
        frozen: The latest month that is frozen for benchmarks; empty where none is.
    """

    position: int
    generation: int
    frozen: str


class ScopeReports:
    """Answers about one scope, as of one moment.

    Attributes:
        seen: The scope's chain as it was then.
        edition: What the answers follow from.
    """

    def __init__(self, scope_id: str, seen: Seen, memo: Memo, kept: Kept, chain: ScopeReports | None = None) -> None:
        """Takes what it answers about, and what keeps answers.

        Args:
            scope_id: The scope.
            seen: Its chain, or an imported history of it.
            memo: Keeps answers.
            kept: Keeps the counts of single files.
            chain: For a history, the answers about the scope's chain; None for the chain.
        """
        self._scope_id = scope_id
        self.seen: Final = seen
        manifest, frozen = seen.snapshot.manifest, max(frozen_months(seen.snapshot.lake), default="")
        own = Edition(seen.snapshot.position, manifest.generation, frozen)
        self.edition: Final[Edition] = own if chain is None else chain.edition
        imported = seen.snapshot.imported
        self._history = None if imported is None else (imported.name, imported.history_hash)
        self._memo = memo
        self._counts = kept

    @property
    def snapshot(self) -> Snapshot:
        """The scope's chain."""
        return self.seen.snapshot

    def of_source(self, history: str | None) -> ScopeReports:
        """Answers about an imported history of the scope, as it is now; these where None.

        Raises:
            OperatorError: `HISTORY_UNKNOWN`, or `HISTORY_MANIFEST_INVALID`.
        """
        if history is None:
            return self
        seen = Seen(self.snapshot.history(history), self.seen.at)
        return ScopeReports(self._scope_id, seen, self._memo, self._counts, self)

    def span(self) -> tuple[datetime | None, datetime | None]:
        """When the first decision was made, and the last; None where there is none."""

        def asked() -> tuple[datetime | None, datetime | None]:
            made = pl.col("created_at")
            ends = self.snapshot.cases().select(made.min().alias("first"), made.max().alias("last"))
            return cast("tuple[datetime | None, datetime | None]", ends.collect(engine="streaming").row(0))

        return self._kept(("span",), asked)

    def glance(self) -> Glance:
        """All policies in one look."""
        return self._kept(("glance",), lambda: glance(self.snapshot))

    def names(self) -> Names:
        """Policies, versions, reasons, and rules, for lists to choose from."""
        return self._kept(("names",), lambda: decision_names(self.snapshot))

    def known_values(self, rulebook: Rulebook) -> list[str]:
        """The values that can be summed over the decisions of a rulebook, by the names that a dry run takes."""
        return self._kept(
            ("values", rulebook.hash),
            lambda: known_values(self.snapshot, rulebook.rulebook_id, [rulebook.body])[:MOST_VALUES],
        )

    def effectiveness(self, policy_id: str, of: Slice = EVERYTHING) -> effectiveness.EffectivenessReport:
        """How well a policy does."""
        question = EffectivenessQuestion(policy_id, policy_version=of.policy_version, clock=of.clock)
        return self._kept(
            ("effectiveness", policy_id, of),
            lambda: effectiveness.answer(self._sliced(of), question, self._counts),
        )

    def activity(self, policy_id: str, of: Slice = EVERYTHING) -> Activity:
        """The activity of a policy over time."""
        return self._kept(("activity", policy_id, of), lambda: activity(self._sliced(of), policy_id, of.policy_version))

    def metrics(self, policy_id: str | None) -> list[str]:
        """What outcomes measured, by name: those of a policy, or of the whole scope where None."""
        return self._kept(("measured", policy_id), lambda: known_values(self.snapshot, policy_id, ())[:MOST_VALUES])

    def anomalies(self, policy_id: str, of: Slice = EVERYTHING, value: str | None = None) -> AnomalyReport:
        """All anomalies of a policy's decisions.

        Args:
            policy_id: The policy.
            of: Which of its decisions.
            value: The metric in which costs are estimated; None for none.
        """
        question = AnomaliesQuestion(
            policy_id,
            policy_version=of.policy_version,
            verdict=of.verdict,
            since=of.since,
            until=of.until,
            clock=of.clock,
            threshold=THRESHOLD,
            max_items=MOST_ITEMS,
            value=value,
        )
        return self._kept(
            ("anomalies", policy_id, of, value), lambda: anomalies.answer(self.snapshot, question, self._counts)
        )

    def benchmarks(self, policy_id: str, policy_version: str | None = None) -> benchmarks.BenchmarkReport:
        """A policy compared with other scopes."""
        question = BenchmarksQuestion(policy_id, policy_version=policy_version)
        return self._kept(("benchmarks", policy_id, policy_version), lambda: benchmarks.answer(self.snapshot, question))

    def held(self, criteria: Criteria, now: datetime) -> HeldSummary:
        """The held decisions that meet the criteria, counted by policy, reason, and age."""
        return self._kept(("held", criteria, now), lambda: held_decisions(self.snapshot, criteria, now=now))

    def find(self, criteria: Criteria, of: Part = FIRST, among: Shown | None = None, clock: str = RECORDED) -> Listing:
        """A page of the decisions that meet the criteria.

        Args:
            criteria: The criteria.
            of: Which page.
            among: Only the decisions that show an anomaly.
            clock: Which dates count: `recorded` or `occurred`.

        Raises:
            NotFound: As `shown_by`.
        """
        return self._kept(
            ("find", criteria, of, among, clock),
            lambda: find_decisions(
                self.snapshot.on(clock),
                criteria,
                of.limit,
                of.before,
                after=of.after,
                oldest_first=of.oldest_first,
                among=None if among is None else self.shown_by(among),
            ),
        )

    def shown_by(self, shown: Shown) -> pl.Series:
        """The chain positions of the decisions that show an anomaly.

        Raises:
            NotFound: `DASHBOARD_ANOMALY_UNKNOWN`.
        """
        return self._kept(("shown", shown), lambda: self._positions(shown))

    def _positions(self, shown: Shown) -> pl.Series:
        report, at = self.listed(replace(shown, of=self.listing(shown)))
        positions: pl.Series = report.decisions(at).select("position").collect(engine="streaming")["position"]
        return positions

    def listed(self, shown: Shown, value: str | None = None) -> tuple[AnomalyReport, int]:
        """The report that lists an anomaly, and its place in it.

        Args:
            shown: The anomaly.
            value: As `anomalies` takes it.

        Raises:
            NotFound: `DASHBOARD_ANOMALY_UNKNOWN`.
        """
        report = self.anomalies(shown.policy_id, shown.of, value)
        for at, anomaly in enumerate(report.body["anomalies"]):
            if anomaly["anomaly_id"] == shown.anomaly_id:
                return report, at
        raise unknown_anomaly()

    def listing(self, shown: Shown) -> Slice:
        """The decisions whose report lists an anomaly: those that are asked for, or else more of them.

        The reports on some decisions and on all may list anomalies of one id, with other decisions.

        Raises:
            NotFound: `DASHBOARD_ANOMALY_UNKNOWN`.
        """
        for of in wider(shown.of):
            with suppress(NotFound):
                self.listed(replace(shown, of=of))
                return of
        raise unknown_anomaly()

    def kept(self, name: str, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """A slow result from this moment's answers, such as a chart; computed once.

        Args:
            name: Its name.
            key: Everything else that it depends on.
            make: Makes it.
        """
        return self._kept((name, key), make)

    def _sliced(self, of: Slice) -> Snapshot:
        return self.snapshot.on(of.clock).slice(since=of.since, until=of.until, verdict=of.verdict)

    def _kept(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        return self._memo.get((self._scope_id, self.edition, self._history, key), compute)


def unknown_anomaly() -> NotFound:
    """The refusal of an anomaly that no report lists."""
    return NotFound(
        "DASHBOARD_ANOMALY_UNKNOWN",
        "This anomaly is no longer listed: later decisions changed the usual values. Go to the list of anomalies.",
    )


class ReportStore:
    """Answers about every scope."""

    def __init__(self, snapshots: Snapshots) -> None:
        """Takes the snapshots."""
        self._snapshots = snapshots
        self._memo = Memo(KEPT)
        self._counts = Kept(MAX_COUNTS)

    def of(self, scope_id: str) -> ScopeReports:
        """Answers about a scope, as of now or some seconds ago.

        Raises:
            ServiceUnavailable: As `Snapshots.latest`.
        """
        found = ScopeReports(scope_id, self._snapshots.latest(scope_id), self._memo, self._counts)
        self._memo.drop(lambda key: key[0] == scope_id and key[1] < found.edition)
        return found
