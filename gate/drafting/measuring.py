"""How well the cases of a rulebook test it: its coverage, and its mutation score, as one value.

found = measured("refunds.yaml", rulebook, cases, coverage=True, mutation=True)
found.complete, found.missing()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gate.rulebooks.analysis import NotDecided, Questions
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.answers import Found
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.coverage import GOAL_KINDS, Coverage, GoalResult, measure
from gate.rulebooks.testing.exact import ExactFinder, ExactJudge
from gate.rulebooks.testing.mutants import Mutant
from gate.rulebooks.testing.mutation import MutationReport, mutation_score
from gate.rulebooks.testing.proposals import missing_cases
from gate.rulebooks.testing.runs import named
from gate.rulebooks.testing.shares import Share


@dataclass(frozen=True, slots=True)
class Measured:
    """What the cases of a rulebook cover, and which changes of it they notice.

    Attributes:
        name: The name of the rulebook: its file, or its draft.
        rulebook: The rulebook.
        coverage: The coverage; None where it was not asked for.
        mutation: The mutants; None where they were not asked for.
        undecided: Why nothing is known of facts that no case has; "" where it is.
    """

    name: str
    rulebook: Rulebook
    coverage: Coverage | None
    mutation: MutationReport | None
    undecided: str = ""

    @property
    def complete(self) -> bool:
        """Whether cases cover all that facts can show, and kill every mutant that decides otherwise."""
        covered = self.coverage is None or not self.coverage.holes
        killed = self.mutation is None or not (self.mutation.survived or self.mutation.undecided or self.mutation.cut)
        return covered and killed

    def missing(self) -> list[Case]:
        """Cases that close the holes and kill the survivors."""
        return missing_cases(self.rulebook, self.coverage, self.mutation)


def measured(name: str, rulebook: Rulebook, cases: Sequence[Case], *, coverage: bool, mutation: bool) -> Measured:
    """Measures a rulebook by its cases.

    Args:
        name: The name of the rulebook: its file, or its draft.
        rulebook: The rulebook.
        cases: Its cases.
        coverage: Whether to measure the coverage.
        mutation: Whether to measure the mutation score, which takes longer.
    """
    covered, undecided = measure(rulebook, cases) if coverage else None, ""
    if covered is not None:
        try:
            with Questions(rulebook.body) as questions:
                covered = covered.judged(ExactFinder(questions))
        except NotDecided as error:
            undecided = str(error)
    mutants = mutation_score(rulebook, cases, ExactJudge()) if mutation else None
    return Measured(name, rulebook, covered, mutants, undecided)


def coverage_report(measured: Measured) -> dict[str, object]:
    """The coverage of a rulebook as a JSON object."""
    coverage = measured.coverage
    if coverage is None:
        return {}
    return {
        "rulebook": _rulebook(measured),
        **_share(coverage.share()),
        "kinds": {kind: _share(coverage.share(kind)) for kind in GOAL_KINDS},
        "holes": [
            _goal(hole) | {"facts": closing_facts(hole), "undecided": list(hole.undecided)} for hole in coverage.holes
        ],
        "impossible": [_goal(one) for one in coverage.impossible],
        "undecided": measured.undecided,
    }


def mutation_report(measured: Measured) -> dict[str, object]:
    """The mutants of a rulebook as a JSON object."""
    mutation = measured.mutation
    if mutation is None:
        return {}
    return {
        "rulebook": _rulebook(measured),
        **_share(mutation.score),
        "survived": [
            _mutant(one.mutant) | {"witness": one.facts, "original": named(one.original), "mutated": named(one.mutated)}
            for one in mutation.survived
        ],
        "equivalent": [_mutant(one) for one in mutation.equivalent],
        "undecided": [_mutant(one.mutant) | {"reason": one.reason} for one in mutation.undecided],
        "cut": mutation.cut,
        "failing": list(mutation.failing),
    }


def _mutant(mutant: Mutant) -> dict[str, object]:
    return {"kind": mutant.kind, "path": mutant.path, "description": mutant.description}


def _rulebook(measured: Measured) -> dict[str, str]:
    rulebook = measured.rulebook
    return {
        "file": measured.name, "rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash,
    }  # fmt: skip


def _share(share: Share) -> dict[str, object]:
    return {"part": share.part, "whole": share.whole, "percent": share.percent}


def _goal(result: GoalResult) -> dict[str, object]:
    goal = result.goal
    return {"kind": goal.kind, "rule_id": goal.rule_id, "path": goal.path, "description": goal.description}


def closing_facts(hole: GoalResult) -> list[object]:
    """Facts that close a hole, as far as they were found."""
    answers = (hole.answers.get(wanted) for wanted in hole.missing)
    return [answer.facts for answer in answers if isinstance(answer, Found)]
