"""The engines' answers over a scope's snapshot. Several sessions that ask the same get the same, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from gate.policy.anomalies.scores import THRESHOLD
from gate.policy.questions import (
    MOST_ITEMS,
    AnomaliesQuestion,
    BenchmarksQuestion,
    EffectivenessQuestion,
)
from workbench.dashboard.store.memo import Memo
from workbench.dashboard.store.snapshots import Seen, Snapshots
from workbench.engines import benchmarks, effectiveness
from workbench.engines.activity import Activity, activity
from workbench.engines.anomalies import report as anomalies
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
from workbench.lake.reader import Snapshot

Answer = TypeVar("Answer")

KEPT: Final = 256
"""How many answers are kept, over all scopes."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Which decisions a page looks at; None narrows nothing.

    Attributes:
        policy_version: One version of the policy.
        verdict: One verdict.
        since: From when, UTC.
        until: Until before when.
    """

    policy_version: str | None = None
    verdict: str | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING: Final = Slice()


class ScopeReports:
    """Answers about one scope, as of one moment.

    Attributes:
        seen: The scope's chain as it was then.
    """

    def __init__(self, scope_id: str, seen: Seen, memo: Memo) -> None:
        """Takes the scope, its chain, and what keeps answers."""
        self._scope_id = scope_id
        self.seen: Final = seen
        self._memo = memo

    @property
    def snapshot(self) -> Snapshot:
        """The scope's chain."""
        return self.seen.snapshot

    def glance(self) -> Glance:
        """All policies in one look."""
        return self._kept(("glance",), lambda: glance(self.snapshot))

    def names(self) -> Names:
        """Policies, versions, reasons and rules, for lists to choose from."""
        return self._kept(("names",), lambda: decision_names(self.snapshot))

    def effectiveness(self, policy_id: str, of: Slice = EVERYTHING) -> effectiveness.EffectivenessReport:
        """How well a policy does."""
        question = EffectivenessQuestion(policy_id, policy_version=of.policy_version)
        return self._kept(("effectiveness", policy_id, of), lambda: effectiveness.answer(self._sliced(of), question))

    def activity(self, policy_id: str, of: Slice = EVERYTHING) -> Activity:
        """What a policy does over time."""
        return self._kept(("activity", policy_id, of), lambda: activity(self._sliced(of), policy_id, of.policy_version))

    def anomalies(self, policy_id: str, policy_version: str | None = None) -> anomalies.AnomalyReport:
        """What is anomalous about a policy's decisions, all of it."""
        question = AnomaliesQuestion(
            policy_id, policy_version=policy_version, threshold=THRESHOLD, max_items=MOST_ITEMS
        )
        return self._kept(("anomalies", policy_id, policy_version), lambda: anomalies.answer(self.snapshot, question))

    def benchmarks(self, policy_id: str, policy_version: str | None = None) -> benchmarks.BenchmarkReport:
        """How a policy does beside that of other scopes."""
        question = BenchmarksQuestion(policy_id, policy_version=policy_version)
        return self._kept(("benchmarks", policy_id, policy_version), lambda: benchmarks.answer(self.snapshot, question))

    def held(self, policy_id: str | None, now: datetime) -> HeldSummary:
        """What is held, by policy, reason and age."""
        return held_decisions(self.snapshot, policy_id, now=now)

    def find(self, criteria: Criteria, *, limit: int, before: int | None = None) -> Listing:
        """The decisions that meet the criteria, newest first."""
        return self._kept(
            ("find", criteria, limit, before),
            lambda: find_decisions(self.snapshot, criteria, limit=limit, before=before),
        )

    def kept(self, name: str, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """What is made of this moment's answers and takes long, such as a chart; computed once.

        Args:
            name: What it is.
            key: What else it follows from.
            make: Makes it.
        """
        return self._kept((name, key), make)

    def _sliced(self, of: Slice) -> Snapshot:
        if (of.verdict, of.since, of.until) == (None, None, None):
            return self.snapshot
        return self.snapshot.slice(since=of.since, until=of.until, verdict=of.verdict)

    def _kept(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        return self._memo.get((self._scope_id, self.snapshot.position, key), compute)


class ReportStore:
    """Answers about every scope."""

    def __init__(self, snapshots: Snapshots) -> None:
        """Takes the snapshots."""
        self._snapshots = snapshots
        self._memo = Memo(KEPT)

    def of(self, scope_id: str) -> ScopeReports:
        """Answers about a scope, as of now or some seconds ago.

        Raises:
            ServiceUnavailable: As `Snapshots.latest`.
        """
        return ScopeReports(scope_id, self._snapshots.latest(scope_id), self._memo)
