"""Coverage and mutation score of the cases of `gate rulebook test`, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from api.cli.output import compact, counted, say
from api.cli.rulebook.runs import FileRun
from gate.drafting.measuring import Measured, closing_facts, measured
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.coverage import GOAL_KINDS, Coverage, GoalKind, GoalResult
from gate.rulebooks.testing.mutation import MutationReport
from gate.rulebooks.testing.shares import Share


def measure_all(runs: Sequence[FileRun], *, coverage: bool, mutation: bool) -> list[Measured]:
    """Measures each rulebook by all its cases from all files."""
    by_hash: dict[str, list[FileRun]] = {}
    for run in runs:
        by_hash.setdefault(run.rulebook.hash, []).append(run)
    return [
        measured(files[0].rulebook_name, files[0].rulebook, _cases(files), coverage=coverage, mutation=mutation)
        for files in by_hash.values()
    ]


def _cases(runs: Sequence[FileRun]) -> list[Case]:
    return [case.result.case for run in runs for case in run.cases]


_CALLED: dict[GoalKind, str] = {
    "rule_matched": "rules matched",
    "default_reached": "default outcome reached",
    "test_true": "tests seen true",
    "test_false": "tests seen false",
    "decides_alone": "conditions deciding alone",
}


def tell(found: Measured) -> None:
    """Prints the coverage and the mutants of a rulebook."""
    if found.coverage is not None:
        _tell_coverage(found, found.coverage)
    if found.mutation is not None:
        _tell_mutation(found.name, found.mutation)


def _tell_coverage(found: Measured, coverage: Coverage) -> None:
    parts = [f"{_CALLED[kind]} {_of(coverage.share(kind))}" for kind in GOAL_KINDS]
    style = "yellow" if coverage.holes else "green"
    say(f"{found.name}: coverage {coverage.share().percent}: {', '.join(parts)}", style=style)
    for hole in coverage.holes:
        say(f"  not tried: {hole.goal.description}")
        for line in _closing(hole):
            say(f"    {line}")
    for impossible in coverage.impossible:
        say(f"  impossible, and not counted: {impossible.goal.description}", style="dim")
    if found.undecided:
        say(f"  not decided which facts close the gaps: {found.undecided}", style="yellow")


def _closing(hole: GoalResult) -> Iterator[str]:
    for facts in closing_facts(hole):
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
        say("  Not all mutants were tried, because there are too many.", style="yellow")
    if mutation.failing:
        say(f"  {counted(len(mutation.failing), 'failing case')} killed no mutant.")


def _words(outcome: Outcome) -> str:
    return f"{outcome.decision} ({outcome.reason_code})"


def _of(share: Share) -> str:
    return f"{share.part:,} of {share.whole:,}"
