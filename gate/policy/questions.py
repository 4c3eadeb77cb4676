"""One frozen object per question that a report answers: it owns the names, defaults and bounds of its members.

    question = AnomaliesQuestion("refund_policy", threshold=0.8)
    report = reports.answer(scope_id, question)
    load_question(dump_question(question)) == question

A question is checked when it is made, and handed on unchanged: from the query string or an engine's arguments, over the
socket to the analytics process, to the counts and the report. The lake answers effectiveness, anomalies, alerts and
benchmarks; confidence is answered by the ledger's counts or the lake, counterfactuals by the lake, in notebooks alone.
A migration's report is drawn there as well, from the evidence in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import date, datetime
from typing import Any, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

from gate.policy.anomalies.scores import THRESHOLD
from gate.policy.bounds import Bound, OneOf, Share, Text, Whole, facts_patch, moment, require, require_rulebook
from gate.policy.confidence import MIN_SAMPLE

VERDICTS: Final = ("yes", "no", "review")

CLOCKS: Final = ("recorded", "occurred")
"""What dates what happened: when the service took it, or when it happened, where that was sent."""

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


@dataclass(frozen=True, slots=True)
class Question:
    """What every question has: its members are within their bounds, or it is not made.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID: a member is out of bounds; the first of them is named.
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
            OperatorError: ENGINE_ARGUMENT_INVALID: a member is out of bounds.
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
    """

    policy_id: str = field(metadata={_BOUND: Text()})
    _: KW_ONLY
    policy_version: str | None = _within(Text(), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivenessQuestion(PolicyQuestion):
    """How well does a policy do?

    Attributes:
        limit: How many decisions are looked at, the latest in the chain; None for all.
        min_sample: How many terminal outcomes a judgement needs, and a version to be compared with the others.
    """

    report: ClassVar[str] = "effectiveness"

    limit: int | None = _within(_LIMIT, None)
    min_sample: int = _within(_SAMPLE, MIN_SAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceQuestion(PolicyQuestion):
    """How far do the outcomes of a policy's decisions support it?

    Attributes:
        verdict: One verdict; None for all.
        action: One action; None for all.
        limit: How many decisions are looked at, those with the latest outcomes; None for all.
        min_sample: How many terminal outcomes a level needs, and a version to be compared with the policy.
    """

    verdict: str | None = _within(_VERDICT, None)
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
    """

    report: ClassVar[str] = "anomalies"

    limit: int | None = _within(_LIMIT, None)
    min_sample: int = _within(_SAMPLE, MIN_SAMPLE)
    threshold: float = _within(Share(), THRESHOLD)
    max_items: int = _within(Whole(1, MOST_ITEMS), MAX_ITEMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsQuestion(Question):
    """What is wrong in a scope now?

    Attributes:
        open_days: How many days after its window an anomaly is open.
    """

    report: ClassVar[str] = "policy_alerts"

    open_days: int = _within(Whole(1, MOST_OPEN_DAYS), OPEN_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarksQuestion(PolicyQuestion):
    """How does a policy do beside that of other scopes?

    Attributes:
        policy_version: The one version of which own decisions are looked at; None for all.
        limit: How many own decisions are looked at, the latest in the chain; None for all.
        min_cohort_scopes: How many other scopes a comparison needs.
        min_cohort_decisions: How many of their decisions it needs.
    """

    report: ClassVar[str] = "benchmarks"

    limit: int | None = _within(_LIMIT, None)
    min_cohort_scopes: int = _within(Whole(MIN_SCOPES, MAX_SCOPES), MIN_SCOPES)
    min_cohort_decisions: int = _within(Whole(MIN_DECISIONS, MAX_DECISIONS), MIN_DECISIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterfactualsQuestion(PolicyQuestion):
    """What would have been decided, of a slice of a policy's decisions?

    Attributes:
        verdict: One verdict; None for all.
        limit: How many decisions are looked at, the latest in the chain; None for all.
        since: Only decisions from this moment on; a date, or a datetime without a zone, is in UTC.
        until: Only decisions before this moment, as `since`.
        patch: An RFC 7396 merge patch over the facts; none where None.
        rulebook: The body of another rulebook; each decision's own where None.
    """

    verdict: str | None = _within(_VERDICT, None)
    limit: int | None = _within(_LIMIT, None)
    since: date | None = None
    until: date | None = None
    patch: Mapping[str, Any] | None = None
    rulebook: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        # Zero-argument super() knows the class that slots replaced.
        PolicyQuestion.__post_init__(self)
        self.window()
        self.changes()
        require_rulebook(self.rulebook)

    def window(self) -> tuple[datetime | None, datetime | None]:
        """`since` and `until` as moments in UTC."""
        return moment("since", self.since), moment("until", self.until)

    def changes(self) -> dict[str, Any]:
        """A copy of the patch; empty where there is none."""
        return facts_patch(self.patch)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReportQuestion(Question):
    """How does the evidence of a migration read as a page? The answer is {text}.

    Attributes:
        migration_id: The migration.
        format: markdown or html.
    """

    report: ClassVar[str] = "migration"

    migration_id: str = field(metadata={_BOUND: Text()})
    format: str = field(metadata={_BOUND: OneOf(FORMATS)})


LakeQuestion: TypeAlias = (
    EffectivenessQuestion | AnomaliesQuestion | AlertsQuestion | BenchmarksQuestion | MigrationReportQuestion
)
"""The questions that the analytics process answers."""

_BY_REPORT: Final[Mapping[str, type[LakeQuestion]]] = {
    kind.report: kind
    for kind in (
        EffectivenessQuestion,
        AnomaliesQuestion,
        AlertsQuestion,
        BenchmarksQuestion,
        MigrationReportQuestion,
    )
}


class Reports(Protocol):
    """Answers the questions whose counting is not done where requests are answered."""

    def answer(self, scope_id: str, question: LakeQuestion) -> ReportDocument:
        """The report that answers a question about the decisions of a scope.

        Raises:
            ServiceUnavailable: SVC_REPORT_UNAVAILABLE: there is nothing that counts, or it is not ready; where it is
                known when it will be, details carry `retry_after`, in seconds.
        """


def dump_question(question: LakeQuestion) -> dict[str, object]:
    """A question as JSON: {report, ...}, the name of its report and its members."""
    return {"report": question.report, **question.members()}


def load_question(document: Mapping[str, object]) -> LakeQuestion:
    """The question of which `dump_question` made this.

    Args:
        document: {report, ...}.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID: a member is out of bounds.
        KeyError: There is no such report.
        TypeError: Its question has other members.
    """
    members = dict(document)
    return _BY_REPORT[str(members.pop("report"))].of(members)
