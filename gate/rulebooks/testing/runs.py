"""Running cases: the outcome of each, and how it differs from the expected one.

    results = run(rulebook, file.cases)
    [result.case.name for result in results if not result.held]

A result holds no explanation, because those of 10,000 cases would fill the memory: `failures` explains one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict, cast

from gate.rulebooks.documents import DeclaredOutcome, InvalidField, RulebookBody
from gate.rulebooks.evaluation import NEEDS_INPUT, Evaluator, Outcome
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case, Expect, ExpectedInvalidField

OUTCOME_MEMBERS: Final = ("verdict", "application_verdict", "action", "reason_code", "matched_rule_id")
"""The members of an answer that an outcome fixes."""

NamedOutcome: TypeAlias = Mapping[str, str | None]
"""An outcome, with `OUTCOME_MEMBERS`."""


def named(outcome: Outcome) -> NamedOutcome:
    """An outcome that a rulebook gave."""
    parts = (outcome.decision, outcome.verdict, outcome.action, outcome.reason_code, outcome.matched_rule_id)
    return dict(zip(OUTCOME_MEMBERS, parts, strict=True))


def named_declared(outcome: DeclaredOutcome, rule_id: str | None) -> NamedOutcome:
    """The outcome of a rule, or that of no rule where there is no `rule_id`."""
    return named(
        Outcome("ok", outcome["decision"], outcome["verdict"], outcome["action"], outcome["reason_code"], rule_id)
    )


def possible_outcomes(body: RulebookBody) -> list[NamedOutcome]:
    """The outcomes of a rulebook: those of its rules, the default one, and that of missing or invalid input."""
    schema = body["input_schema"]
    return [
        *(named_declared(rule["outcome"], rule["rule_id"]) for rule in body["rules"]),
        named_declared(body["default_outcome"], None),
        *([named(NEEDS_INPUT)] if schema["required"] or schema["properties"] else []),
    ]


class Observed(TypedDict):
    """The answer of a rulebook, by the names that records have for its parts."""

    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None
    missing_fields: list[str]
    invalid_fields: list[InvalidField]


@dataclass(frozen=True, slots=True)
class Difference:
    """A part of the answer that is not as expected.

    Attributes:
        member: Its name in `expect`.
        expected: Its value in `expect`.
        observed: The rulebook's value.
    """

    member: str
    expected: object
    observed: object


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The run of a case.

    Attributes:
        case: The case.
        observed: The rulebook's answer.
        differences: The expected members that are not as the rulebook answers.
    """

    case: Case
    observed: Observed
    differences: tuple[Difference, ...]

    @property
    def held(self) -> bool:
        """Whether the rulebook answers as expected."""
        return not self.differences


def run(rulebook: Rulebook, cases: Iterable[Case]) -> tuple[CaseResult, ...]:
    """Runs cases: the result of each, in their order."""
    return tuple(_run(rulebook, case) for case in cases)


def observe(rulebook: Rulebook, facts: Mapping[str, object]) -> Observed:
    """The answer of a rulebook over facts. As the `expect` of a case with these facts, it holds."""
    return _observe(rulebook.evaluator, facts)


def holds(evaluator: Evaluator, case: Case) -> bool:
    """Whether a compiled rulebook answers as a case expects."""
    return not _differences(case.expect, _observe(evaluator, case.facts))


def _observe(evaluator: Evaluator, facts: Mapping[str, object]) -> Observed:
    outcome = evaluator.decide(facts)
    missing: list[str] = []
    invalid: list[InvalidField] = []
    # An explanation takes longer than an outcome, but not where no rule is tried.
    if outcome.status != "ok":
        evaluation = evaluator.explain(facts).evaluation
        missing, invalid = evaluation["missing_fields"], evaluation["invalid_fields"]
    answer = {**named(outcome), "missing_fields": missing, "invalid_fields": invalid}
    return cast("Observed", answer)


def _run(rulebook: Rulebook, case: Case) -> CaseResult:
    observed = observe(rulebook, case.facts)
    return CaseResult(case, observed, _differences(case.expect, observed))


def _differences(expect: Expect, observed: Observed) -> tuple[Difference, ...]:
    expected, found = cast("Mapping[str, object]", expect), cast("Mapping[str, object]", observed)
    differing = [name for name in OUTCOME_MEMBERS if name in expected and expected[name] != found[name]]
    if "missing_fields" in expect and set(expect["missing_fields"]) != set(observed["missing_fields"]):
        differing.append("missing_fields")
    if "invalid_fields" in expect and not _as_expected(expect["invalid_fields"], observed["invalid_fields"]):
        differing.append("invalid_fields")
    return tuple(Difference(name, expected[name], found[name]) for name in differing)


def _as_expected(expected: Sequence[str | ExpectedInvalidField], observed: Sequence[InvalidField]) -> bool:
    """Whether the fields are the same ones, and every type that is expected of one is the observed one."""
    found = {field["field"]: field for field in observed}
    named = [{"field": field} if isinstance(field, str) else field for field in expected]
    return {field["field"] for field in named} == found.keys() and all(
        field.items() <= found[field["field"]].items() for field in named
    )
