"""Running cases: the outcome of each, and how it differs from the expected one.

    results = run(rulebook, file.cases)
    [result.case.name for result in results if not result.held]

A result holds no explanation, because those of 10,000 cases would fill the memory: `failures` explains one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from gate.rulebooks.documents import InvalidField
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case, Expect, ExpectedInvalidField
from gate.rulebooks.testing.outcomes import OUTCOME_MEMBERS, named


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
    outcome = rulebook.evaluator.decide(facts)
    missing: list[str] = []
    invalid: list[InvalidField] = []
    # An explanation takes longer than an outcome, but not where no rule is tried.
    if outcome.status != "ok":
        evaluation = rulebook.evaluator.explain(facts).evaluation
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
