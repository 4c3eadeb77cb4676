"""One anomaly: what it is, how strong, when, which decisions show it, the numbers behind it, and where to look next."""

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
"""What an anomaly is of; of equal scores, the first comes first."""

SLOW: Final = "slow"
"""The reason of what creeps: the window is compared with weeks of half a year before."""

DIFFERS: Final = "version_differs:"
"""The beginning of the reason of a version whose values differ from those of others in the same weeks."""

MOST_IDS: Final = 10
"""How many decision ids an anomaly names."""

_ID_HEX: Final = 24


@dataclass(frozen=True, slots=True)
class Shown:
    """Which decisions show an anomaly: those at some chain positions, or those made in a time that have a value.

    Attributes:
        positions: The positions; none where the rest says which.
        first: From when, UTC timestamp.
        last: Until before when.
        column: What they have in common, a column of cases; None for all of that time.
        values: Which values of it.
    """

    positions: Sequence[int] = ()
    first: str = ""
    last: str = ""
    column: str | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Next:
    """What to look at next.

    Attributes:
        what: In a sentence.
        href: A path of this service that shows it; None where it is not here.
    """

    what: str
    href: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """What an anomaly costs, about.

    Attributes:
        cases: How many decisions went otherwise than they would have before, or are concerned.
        value: What the metric that was asked for came to more or less than before, or comes to in so many cases; None
            where none was asked for, or none is known.
        lasting: Whether it goes on, or lasted two weeks or more.
        harm: Whether it is for the worse; None where nobody can tell from counts.
        until: To when it is counted: the end of the window, or of what lasts beyond it; UTC timestamp.
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
"""When an anomaly was."""


class LookAt(TypedDict):
    """What to look at next, and where."""

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
    """Something about a policy's decisions that is not as it was, or not as it should be.

    Attributes:
        kind: One of `KINDS`.
        subject: What of that kind: a break, a metric, a grain; empty where the kind says all.
        score: 0 to 1.
        reasons: Why it is one, in words for machines.
        summary: The same in a sentence.
        first: Where its window begins; UTC timestamp.
        last: Where it ends.
        decisions: How many decisions show it.
        shown: Which.
        effect: What it costs, about.
        numbers: What it follows from; each kind has its own.
        next: What to look at next.
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
        """What it is called: the same as long as it is the same kind of thing that begins at the same time."""
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
            imported: Whether these are imported cases: the service has no record, packet or report of them.
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
"""What sorts an anomaly; see `order`."""


def order(document: AnomalyDocument) -> Order:
    """By which anomalies are sorted: by severity, harm before all else, what lasts before what does not, then by what
    it costs, then by score; of equal ones by kind, and the latest first.
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
