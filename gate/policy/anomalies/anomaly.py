"""One anomaly: what it is, how strong, when, which decisions show it, the numbers behind it, and where to look next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict
from urllib.parse import quote, urlencode

from gate.encoding.canonical import content_hash
from gate.policy.anomalies.scores import severity

KINDS: Final = (
    "lifecycle_break",
    "outcome_shift",
    "verdict_shift",
    "volume",
    "metric_outlier",
    "fact_drift",
)
"""What an anomaly is of; of equal scores, the first comes first."""

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
    numbers: Mapping[str, Any]
    next: Sequence[Next]

    def identity(self, policy_id: str) -> str:
        """What it is called: the same as long as it is the same kind of thing that begins at the same time."""
        about = {"policy_id": policy_id, "kind": self.kind, "subject": self.subject, "from": self.first}
        return f"ano_{content_hash(about)[:_ID_HEX]}"

    def to_dict(self, policy_id: str, decision_ids: Sequence[str]) -> AnomalyDocument:
        """The anomaly as JSON, with the ids of decisions that show it."""
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
            "numbers": dict(self.numbers),
            "look_at_next": [{"what": step.what, "href": step.href} for step in (*self.next, *_first_of(decision_ids))],
        }


def _first_of(decision_ids: Sequence[str]) -> list[Next]:
    where = [f"/api/decision/{quote(decision_id, safe='')}/packet" for decision_id in decision_ids[:1]]
    return [Next("Read the first of the decisions, with its receipts, outcomes and proof.", path) for path in where]


def order(anomaly: Anomaly) -> tuple[float, int, tuple[int, ...], str]:
    """By which anomalies are sorted: the strongest first, of equal ones the latest."""
    reversed_time = tuple(-ord(character) for character in anomaly.first)
    return (-anomaly.score, KINDS.index(anomaly.kind), reversed_time, anomaly.subject)


def decisions_of(policy_id: str, **conditions: str) -> str:
    """The path of a search among the decisions of a policy."""
    return f"/api/decisions?{urlencode({'policy_id': policy_id, **conditions})}"


def report_of(policy_id: str, report: str, **conditions: str) -> str:
    """The path of another report about a policy."""
    query = f"?{urlencode(conditions)}" if conditions else ""
    return f"/api/decision/policies/{quote(policy_id, safe='')}/{report}{query}"
