"""One frozen object for each question that a report answers. It owns the names, defaults, and bounds of its members.

    question = AnomaliesQuestion("refund_policy", threshold=0.8)
    report = reports.answer(scope_id, question)
    load_question(dump_question(question)) == question

A question is checked when it is created. It is then passed on unchanged: from the query string or an engine's
arguments, over the socket to the analytics process, to the counts and the report.

The lake answers effectiveness, anomalies, alerts, and benchmarks. The ledger's counts or the lake answer confidence.
The lake answers counterfactuals, in notebooks only. A migration's report is also rendered there, from the evidence in
the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import date, datetime
from typing import Any, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

from gate.ids import timestamp
from gate.policy.anomalies.scores import THRESHOLD
from gate.policy.bounds import (
    Bound,
    Moment,
    OneOf,
    Share,
    Text,
    Whole,
    facts_patch,
    period,
    require,
    require_names,
    require_rulebook,
)
from gate.policy.confidence import MIN_SAMPLE

VERDICTS: Final = ("yes", "no", "review")
CLOCKS: Final = ("recorded", "occurred")
"""By which dates a report looks at its decisions: when they were recorded, or when things happened, as far as callers
said so.
"""
FORMATS: Final = ("markdown", "html")

MAX_LIMIT: Final = 1_000_000
"""The highest `limit`."""

MAX_SAMPLE: Final = 10_000
"""The highest `min_sample`."""

MAX_ITEMS: Final = 20
"""How many anomalies are listed, unless the caller asks otherwise."""

MOST_ITEMS: Final = 200
"""How many a caller may ask for."""

OPEN_DAYS: Final = 90
"""How many days after its window an anomaly is open, unless the caller asks otherwise."""

MOST_METRICS: Final = 5
"""How many metrics are summed at most."""

MOST_OPEN_DAYS: Final = 400

MIN_SCOPES: Final = 5
"""How many other scopes a comparison needs; a caller can ask for more."""

MAX_SCOPES: Final = 1000
"""The most that a caller can ask for."""

MIN_DECISIONS: Final = 50
"""How many of their decisions it needs; a caller can ask for more."""

MAX_DECISIONS: Final = 1_000_000
"""The most that a caller can ask for."""

_VERDICT: Final = OneOf(VERDICTS)
_MOMENT: Final = Moment()
_CLOCK: Final = OneOf(CLOCKS)
_RECORDED: Final = OneOf(CLOCKS[:1])
_LIMIT: Final = Whole(1, MAX_LIMIT)
_SAMPLE: Final = Whole(1, MAX_SAMPLE)
_BOUND: Final = "bound"

ReportDocument: TypeAlias = Mapping[str, object]
"""A report: a JSON object that ends in its own hash; {text} where the question asks for a page."""

Default = TypeVar("Default")


def _within(bound: Bound, default: Default) -> Default:
    """A member with its bound; where the default is None, which is for all, None is within it as well."""
    member: Default = field(default=default, metadata={_BOUND: bound})
    return member


def _written(value: date | None) -> str | None:
    return timestamp(value) if isinstance(value, datetime) else None


@dataclass(frozen=True, slots=True)
class Question:
    """The base of every question. A question whose members are out of bounds cannot be created.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`: a member is out of bounds. The message names the first of them.
    """

    def __post_init__(self) -> None:
        for member in fields(self):
            if bound := member.metadata.get(_BOUND):
                require(member.name, getattr(self, member.name), bound, optional=member.default is None)

    @classmethod
    def of(cls, members: Mapping[str, object]) -> Self:
        """The question with these members, and its defaults for the others.

        Args:
            members: By name.

        Raises:
            OperatorError: `ENGINE_ARGUMENT_INVALID`: a member is out of bounds.
            TypeError: The question has no member of such a name, or needs one that is not there.
        """
        make: Callable[..., Self] = cls
        return make(**members)

    @classmethod
    def bounds(cls) -> Mapping[str, Bound]:
        """The bounds of its members, by name, in the order in which they are checked."""
        return {member.name: member.metadata[_BOUND] for member in fields(cls) if _BOUND in member.metadata}

    def members(self) -> dict[str, object]:
        """Its members, by name."""
        return {member.name: getattr(self, member.name) for member in fields(self)}


@dataclass(frozen=True, slots=True)
class PolicyQuestion(Question):
    """A question about the decisions of one policy.

    Attributes:
        policy_id: The policy.
        policy_version: One of its versions; None for all.
        verdict: One verdict; None for all.
        since: Only decisions from this moment on, UTC; None for all.
        until: Only decisions before this moment, UTC, a date with its day; None for all.
        clock: One of `CLOCKS`: by which dates.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, also where it ends before it begins, or as it begins.
    """

    policy_id: str = field(metadata={_BOUND: Text()})
    _: KW_ONLY
    policy_version: str | None = _within(Text(), None)
    verdict: str | None = _within(_VERDICT, None)
    since: date | None = field(default=None, metadata={_BOUND: _MOMENT})
    until: date | None = field(default=None, metadata={_BOUND: _MOMENT})
    clock: str = _within(_CLOCK, CLOCKS[0])

    def __post_init__(self) -> None:
        # Zero-argument super() does not know the class that slots replaced.
        Question.__post_init__(self)
        since, until = period(self.since, self.until)
        object.__setattr__(self, "since", since)
        object.__setattr__(self, "until", until)

    def asked(self) -> dict[str, object]:
        """Which decisions it looks at, as every report repeats it."""
        return {
            "policy_id": self.policy_id,
            "policy_version": self.policy_version,
            "verdict": self.verdict,
            "since": _written(self.since),
            "until": _written(self.until),
            "clock": self.clock,
        }

    @property
    def is_narrowed(self) -> bool:
        """Whether it looks at some of the decisions only, or by other dates than those of the records."""
        return (self.since, self.until, self.clock) != (None, None, CLOCKS[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivenessQuestion(PolicyQuestion):
    """How well does a policy do?

    Attributes:
        limit: How many decisions are looked at, the latest in the chain; None for all.
        min_sample: How many terminal outcomes a judgment needs, and a version to be compared with the others.
    """

    report: ClassVar[str] = "effectiveness"

    limit: int | None = _within(_LIMIT, None)
    min_sample: int = _within(_SAMPLE, MIN_SAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceQuestion(PolicyQuestion):
    """How far do the outcomes of a policy's decisions support it?

    Attributes:
        action: One action; None for all.
        limit: How many decisions are looked at, those with the latest outcomes; None for all.
        min_sample: How many terminal outcomes a level needs, and a version to be compared with the policy.
    """

    report: ClassVar[str] = "confidence"

    action: str | None = _within(Text(), None)
    limit: int | None = _within(_LIMIT, None)
    min_sample: int = _within(_SAMPLE, MIN_SAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomaliesQuestion(PolicyQuestion):
    """What is anomalous about a policy's decisions?

    Attributes:
        limit: How many decisions are looked at, the latest in the chain; None for all.
        min_sample: How many cases a window needs, what it is compared with, and a kind of metric values.
        threshold: The least score that is listed and counted.
        max_items: How many anomalies are listed.
        value: The observed metric in which costs are estimated; None for none.
    """

    report: ClassVar[str] = "anomalies"

    limit: int | None = _within(_LIMIT, None)
    min_sample: int = _within(_SAMPLE, MIN_SAMPLE)
    threshold: float = _within(Share(), THRESHOLD)
    max_items: int = _within(Whole(1, MOST_ITEMS), MAX_ITEMS)
    value: str | None = _within(Text(), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsQuestion(Question):
    """Which problems does a scope have now?

    Attributes:
        open_days: The number of days after its window that an anomaly stays open.
    """

    report: ClassVar[str] = "policy_alerts"

    open_days: int = _within(Whole(1, MOST_OPEN_DAYS), OPEN_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarksQuestion(PolicyQuestion):
    """How does a policy compare with that of other scopes?

    Attributes:
        clock: `recorded`: cohorts are frozen by the months of the record.
        policy_version: The only version of the own decisions; None for all.
        limit: The most own decisions to consider, the latest in the chain; None for all.
        min_cohort_scopes: The number of other scopes that a comparison needs.
        min_cohort_decisions: The number of their decisions that it needs.
    """

    report: ClassVar[str] = "benchmarks"

    clock: str = _within(_RECORDED, CLOCKS[0])
    limit: int | None = _within(_LIMIT, None)
    min_cohort_scopes: int = _within(Whole(MIN_SCOPES, MAX_SCOPES), MIN_SCOPES)
    min_cohort_decisions: int = _within(Whole(MIN_DECISIONS, MAX_DECISIONS), MIN_DECISIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualsQuestion(PolicyQuestion):
    """Which results would a slice of a policy's decisions have under other facts or another rulebook?

    Attributes:
        limit: The most decisions to consider, the latest in the chain; None for all.
        patch: An RFC 7396 merge patch over the facts; None for no change.
        rulebook: The body of another rulebook; None for each decision's own.
        metrics: The values to sum: metrics of the latest outcomes, and facts as `inputs.<path>`.
    """

    limit: int | None = _within(_LIMIT, None)
    patch: Mapping[str, Any] | None = None
    rulebook: Mapping[str, Any] | None = None
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        PolicyQuestion.__post_init__(self)
        self.changes()
        require_rulebook(self.rulebook)
        require_names("metrics", self.metrics, MOST_METRICS)

    def changes(self) -> dict[str, Any]:
        """A copy of the patch; empty where there is none."""
        return facts_patch(self.patch)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReportQuestion(Question):
    """How does the evidence of a migration read as a page? The answer is {text}.

    Attributes:
        migration_id: The migration.
        format: `markdown` or `html`.
    """

    report: ClassVar[str] = "migration"

    migration_id: str = field(metadata={_BOUND: Text()})
    format: str = field(metadata={_BOUND: OneOf(FORMATS)})


LakeQuestion: TypeAlias = (
    EffectivenessQuestion
    | ConfidenceQuestion
    | AnomaliesQuestion
    | AlertsQuestion
    | BenchmarksQuestion
    | MigrationReportQuestion
)
"""The questions that the analytics process answers."""

_BY_REPORT: Final[Mapping[str, type[LakeQuestion]]] = {
    kind.report: kind
    for kind in (
        EffectivenessQuestion,
        ConfidenceQuestion,
        AnomaliesQuestion,
        AlertsQuestion,
        BenchmarksQuestion,
        MigrationReportQuestion,
    )
}


class Reports(Protocol):
    """Answers the questions that the request process does not count itself."""

    def answer(self, scope_id: str, question: LakeQuestion) -> ReportDocument:
        """The report that answers a question about the decisions of a scope.

        Raises:
            ServiceUnavailable: `SVC_REPORT_UNAVAILABLE`: no process counts, or it is not ready. If the time is known,
                details have `retry_after`, in seconds.
        """


def dump_question(question: LakeQuestion) -> dict[str, object]:
    """A question as JSON: {report, ...}, the name of its report and its members."""
    members = {
        name: value.isoformat() if isinstance(value, date) else value for name, value in question.members().items()
    }
    return {"report": question.report, **members}


def load_question(document: Mapping[str, object]) -> LakeQuestion:
    """The question that `dump_question` returned as JSON.

    Args:
        document: {report, ...}.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`: a member is out of bounds.
        KeyError: There is no such report.
        TypeError: Its question has other members.
        ValueError: A moment is invalid.
    """
    members = dict(document)
    kind = _BY_REPORT[str(members.pop("report"))]
    for name, bound in kind.bounds().items():
        if isinstance(bound, Moment) and isinstance(text := members.get(name), str):
            members[name] = datetime.fromisoformat(text)
    return kind.of(members)
