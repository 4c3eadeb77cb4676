"""One anomaly: its kind, strength, window, decisions, numbers, and next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypedDict
from urllib.parse import quote, urlencode

from gate.encoding.canonical import content_hash
from gate.policy.anomalies.scores import SEVERITIES, severity

KINDS: Final = (
    "lifecycle_break",
    "outcome_shift",
    "verdict_shift",
    "metric_shift",
    "volume",
    "metric_outlier",
    "fact_drift",
)
"""The kinds of anomalies. Of equal scores, the first kind comes first."""

SLOW: Final = "slow"
"""The reason of a gradual change: the window is compared with weeks half a year earlier."""

DIFFERS: Final = "version_differs:"
"""The beginning of the reason of a version whose values differ from those of others in the same weeks."""

MOST_IDS: Final = 10
"""The most decision ids that an anomaly lists."""

_ID_HEX: Final = 24


@dataclass(frozen=True, slots=True)
class Shown:
    """The decisions that show an anomaly: those at some chain positions, or those of a period that share a value.

    Attributes:
        positions: The positions; empty if the other fields select the decisions.
        first: The start of the period, a UTC timestamp.
        last: Its end, which is excluded.
        column: The column of cases whose value they share; None for all decisions of the period.
        values: The values of that column.
    """

    positions: Sequence[int] = ()
    first: str = ""
    last: str = ""
    column: str | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Next:
    """A next step for the reader.

    Attributes:
        what: The step, as a sentence.
        href: A path of this service that shows it; None if the service has none.
    """

    what: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """The estimated cost of an anomaly.

    Attributes:
        cases: The number of decisions that went differently than before, or that are affected.
        value: The change of the requested metric, or its sum in the affected cases; None if no metric was requested or
            none is known.
        lasting: Whether it continues, or lasted two weeks or more.
        harm: Whether it is harmful; None if counts cannot show that.
        until: The end of the counted time, a UTC timestamp: the end of the window, or of an effect that lasts longer.
    """

    cases: int
    value: float | None = None
    lasting: bool = False
    harm: bool | None = None
    until: str = ""


class EffectDocument(TypedDict):
    """An effect as reports have it."""

    cases: int
    value: float | None
    until: str
    lasting: bool
    harm: bool | None


AnomalyWindow = TypedDict("AnomalyWindow", {"from": str, "to": str})
"""The window of an anomaly."""


class LookAt(TypedDict):
    """A next step, and where to take it."""

    what: str
    href: str | None


class AnomalyDocument(TypedDict):
    """An anomaly as reports and alerts list it."""

    anomaly_id: str
    kind: str
    subject: str | None
    severity: str
    anomaly_score: float
    reasons: list[str]
    summary: str
    window: AnomalyWindow
    decisions: int
    decision_ids: list[str]
    effect: EffectDocument
    numbers: dict[str, Any]
    look_at_next: list[LookAt]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A change in a policy's decisions, or a broken rule of the protocol.

    Attributes:
        kind: One of `KINDS`.
        subject: The subject within its kind: a break, a metric, a grain; empty if the kind says everything.
        score: 0 to 1.
        reasons: The reasons, as codes.
        summary: The same as a sentence.
        first: The start of its window, a UTC timestamp.
        last: The end of its window.
        decisions: The number of decisions that show it.
        shown: Those decisions.
        effect: Its estimated cost.
        numbers: The numbers behind it; each kind has its own.
        next: The next steps.
    """

    kind: str
    subject: str
    score: float
    reasons: Sequence[str]
    summary: str
    first: str
    last: str
    decisions: int
    shown: Shown
    effect: Effect
    numbers: Mapping[str, Any]
    next: Sequence[Next]

    def identity(self, policy_id: str) -> str:
        """Its id. It stays the same as long as the same kind of anomaly begins at the same time."""
        about: dict[str, Any] = {"policy_id": policy_id, "kind": self.kind, "subject": self.subject, "from": self.first}
        # What creeps, or differs by version, can begin with the week of another shift.
        apart = [reason for reason in self.reasons if reason == SLOW or reason.startswith(DIFFERS)]
        if apart:
            about["reasons"] = apart
        return f"ano_{content_hash(about)[:_ID_HEX]}"

    def to_dict(self, policy_id: str, decision_ids: Sequence[str], *, imported: bool = False) -> AnomalyDocument:
        """The anomaly as JSON.

        Args:
            policy_id: The policy.
            decision_ids: The ids of decisions that show it.
            imported: Whether these are imported cases. The service has no record, packet, or report of them.
        """
        steps = self.next if imported else (*self.next, *_first_of(decision_ids))
        return {
            "anomaly_id": self.identity(policy_id),
            "kind": self.kind,
            "subject": self.subject or None,
            "severity": severity(self.score),
            "anomaly_score": self.score,
            "reasons": list(self.reasons),
            "summary": self.summary,
            "window": {"from": self.first, "to": self.last},
            "decisions": self.decisions,
            "decision_ids": list(decision_ids),
            "effect": {
                "cases": self.effect.cases,
                "value": self.effect.value,
                "until": self.effect.until or self.last,
                "lasting": self.effect.lasting,
                "harm": self.effect.harm,
            },
            "numbers": dict(self.numbers),
            "look_at_next": [{"what": step.what, "href": None if imported else step.href} for step in steps],
        }


def _first_of(decision_ids: Sequence[str]) -> list[Next]:
    where = [f"/api/decision/{quote(decision_id, safe='')}/packet" for decision_id in decision_ids[:1]]
    return [Next("Read the first of these decisions, with its receipts, outcomes, and proof.", path) for path in where]


Order: TypeAlias = tuple[int, bool, bool, bool, float, int, float, int, tuple[int, ...], str]
"""The sort key of an anomaly; see `order`."""


def order(document: AnomalyDocument) -> Order:
    """The sort key of anomalies: severity, then lasting harm, other harm, other lasting effects, and the rest. Then
    cost and score. Ties go by kind, and the latest comes first.
    """
    effect, value = document["effect"], document["effect"]["value"]
    reversed_time = tuple(-ord(character) for character in document["window"]["from"])
    return (
        SEVERITIES.index(document["severity"]),
        not effect["harm"],
        not effect["lasting"],
        value is None,
        -abs(value or 0.0),
        -effect["cases"],
        -document["anomaly_score"],
        KINDS.index(document["kind"]),
        reversed_time,
        document["subject"] or "",
    )


def decisions_of(policy_id: str, **conditions: str) -> str:
    """The path of a search among the decisions of a policy."""
    return f"/api/decisions?{urlencode({'policy_id': policy_id, **conditions})}"


def report_of(policy_id: str, report: str, **conditions: str) -> str:
    """The path of another report about a policy."""
    query = f"?{urlencode(conditions)}" if conditions else ""
    return f"/api/decision/policies/{quote(policy_id, safe='')}/{report}{query}"
