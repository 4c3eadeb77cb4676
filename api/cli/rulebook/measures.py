"""Coverage and mutation score of the cases of `gate rulebook test`, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from api.cli.output import compact, counted, say
from api.cli.rulebook.runs import FileRun
from gate.rulebooks.analysis import NotDecided, Questions
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.answers import Found
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.coverage import GOAL_KINDS, Coverage, GoalKind, GoalResult, measure
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
        name: The file of the rulebook.
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


def measure_all(runs: Sequence[FileRun], *, coverage: bool, mutation: bool) -> list[Measured]:
    """Measures each rulebook by all of its cases, in whichever files they are."""
    by_hash: dict[str, list[FileRun]] = {}
    for run in runs:
        by_hash.setdefault(run.rulebook.hash, []).append(run)
    return [_measured(files, coverage=coverage, mutation=mutation) for files in by_hash.values()]


def _measured(runs: Sequence[FileRun], *, coverage: bool, mutation: bool) -> Measured:
    name, rulebook = runs[0].rulebook_name, runs[0].rulebook
    cases = [case.result.case for run in runs for case in run.cases]
    covered, undecided = measure(rulebook, cases) if coverage else None, ""
    if covered is not None:
        try:
            with Questions(rulebook.body) as questions:
                covered = covered.judged(ExactFinder(questions))
        except NotDecided as error:
            undecided = str(error)
    mutants = mutation_score(rulebook, cases, ExactJudge()) if mutation else None
    return Measured(name, rulebook, covered, mutants, undecided)


# --- For people -------------------------------------------------------------------------------------------------------

_CALLED: dict[GoalKind, str] = {
    "rule_matched": "rules matched",
    "default_reached": "default outcome reached",
    "test_true": "tests seen true",
    "test_false": "tests seen false",
    "decides_alone": "conditions deciding alone",
}


def tell(measured: Measured) -> None:
    """Prints the coverage and the mutants of a rulebook."""
    if measured.coverage is not None:
        _tell_coverage(measured, measured.coverage)
    if measured.mutation is not None:
        _tell_mutation(measured.name, measured.mutation)


def _tell_coverage(measured: Measured, coverage: Coverage) -> None:
    parts = [f"{_CALLED[kind]} {_of(coverage.share(kind))}" for kind in GOAL_KINDS]
    style = "yellow" if coverage.holes else "green"
    say(f"{measured.name}: coverage {coverage.share().percent}: {', '.join(parts)}", style=style)
    for hole in coverage.holes:
        say(f"  not tried: {hole.goal.description}")
        for line in _closing(hole):
            say(f"    {line}")
    for impossible in coverage.impossible:
        say(f"  impossible, and not counted: {impossible.goal.description}", style="dim")
    if measured.undecided:
        say(f"  not decided which facts close the holes: {measured.undecided}", style="yellow")


def _closing(hole: GoalResult) -> Iterator[str]:
    for facts in _facts(hole):
        yield f"facts that close it: {compact(facts)}"
    for reason in hole.undecided:
        yield f"not decided whether facts can close it: {reason}"


def _tell_mutation(name: str, mutation: MutationReport) -> None:
    style = "yellow" if mutation.survived or mutation.undecided or mutation.cut else "green"
    proved = f"; {counted(len(mutation.equivalent), 'other')} proved to change nothing" if mutation.equivalent else ""
    say(f"{name}: mutation score {mutation.score.percent}: {_of(mutation.score)} mutants killed{proved}", style=style)
    for survivor in mutation.survived:
        say(f"  survived: {survivor.mutant.description}")
        say(f"    {_words(survivor.original)} becomes {_words(survivor.mutated)} for {compact(survivor.facts)}")
    for unjudged in mutation.undecided:
        say(f"  not decided: {unjudged.mutant.description}: {unjudged.reason}")
    if mutation.cut:
        say("  There are more mutants than are tried.", style="yellow")
    if mutation.failing:
        say(f"  {counted(len(mutation.failing), 'case')} that do not hold killed nothing.")


def _words(outcome: Outcome) -> str:
    return f"{outcome.decision} ({outcome.reason_code})"


def _of(share: Share) -> str:
    return f"{share.part:,} of {share.whole:,}"


# --- As JSON ----------------------------------------------------------------------------------------------------------


def coverage_report(measured: Measured) -> dict[str, object]:
    """The coverage of a rulebook as a JSON object."""
    coverage = measured.coverage
    if coverage is None:
        return {}
    return {
        "rulebook": _rulebook(measured),
        **_share(coverage.share()),
        "kinds": {kind: _share(coverage.share(kind)) for kind in GOAL_KINDS},
        "holes": [_goal(hole) | {"facts": _facts(hole), "undecided": list(hole.undecided)} for hole in coverage.holes],
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


def _facts(hole: GoalResult) -> list[object]:
    answers = (hole.answers.get(wanted) for wanted in hole.missing)
    return [answer.facts for answer in answers if isinstance(answer, Found)]
