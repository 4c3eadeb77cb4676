"""`gate rulebook test`: run cases against their rulebooks, and explain failing cases. Needs no instance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import counted, note, print_json, say
from api.cli.rulebook.junit import write_junit
from api.cli.rulebook.lines import LEGEND, failure_lines, has_not
from api.cli.rulebook.measures import measure_all, tell
from api.cli.rulebook.proposals import write_cases
from api.cli.rulebook.report import report
from api.cli.rulebook.runs import FileRun, UnusableFile, run_file
from gate.drafting.measuring import Measured
from gate.errors import OperatorError

Files = Annotated[
    list[Path],
    typer.Argument(
        help="Files of cases. Each states its rulebook by a path relative to the file. Use - "
        "for stdin, relative to the current directory.",
        show_default=False,
    ),
]


def run_tests(
    files: Files,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Show what the cases do not cover, with facts that would cover it."),
    ] = False,
    mutation: Annotated[
        bool, typer.Option("--mutation", help="Show the small changes of the rulebook that no case detects.")
    ] = False,
    write_missing: Annotated[
        Path | None,
        typer.Option("--write-missing", help="Write cases that close the gaps to this new file. Use - for stdout."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if there are warnings, gaps in the coverage or surviving mutants.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Also write the results to this file as JUnit XML.")
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Run the cases of rulebooks. A case is facts with the outcome that the rulebook must give.

    A failing case is printed with the rules and tests that made the difference.

    Exit codes: 0 all cases hold; 1 a case fails, or there are warnings with `--strict`; 2 a file or its rulebook is
    unusable. The other files still run.
    """
    runs = [run_file(file) for file in files]
    usable = [each for each in runs if isinstance(each, FileRun)]
    measured = measure_all(usable, coverage=coverage or write_missing is not None, mutation=mutation)
    if as_json:
        print_json(report(runs, measured))
    else:
        for each in runs:
            _tell(each)
        if any(_has_not(each) for each in runs):
            say(LEGEND)
        for one in measured:
            tell(one)
        if strict and (any(each.warnings for each in usable) or not all(one.complete for one in measured)):
            say("Warnings, gaps and surviving mutants count as failures, because of --strict.", style="red")
    if junit is not None:
        write_junit(junit, runs)
    incomplete = any(each.warnings for each in usable) or not all(one.complete for one in measured)
    if len(usable) < len(runs):
        raise typer.Exit(2)
    if write_missing is not None:
        _write_missing(write_missing, measured)
    raise typer.Exit(int(any(each.failures for each in usable) or (strict and incomplete)))


def _write_missing(path: Path, measured: Sequence[Measured]) -> None:
    if len(measured) != 1:
        raise OperatorError("USAGE_INVALID", "--write-missing needs cases of a single rulebook.")
    cases = measured[0].missing()
    if not cases:
        note("The cases leave no gap, so --write-missing wrote nothing.")
        return
    write_cases(path, measured[0].name, cases, "Cases that close gaps. Confirm that each answer is right.")


def _tell(run: FileRun | UnusableFile) -> None:
    if isinstance(run, UnusableFile):
        if not run.findings:
            say(f"{run.name}: error: {run.error.message} ({run.error.code})", style="red")
        for finding in run.findings:
            where = finding.fault.field or "the file"
            say(f"{run.faulty_name}:{finding.line}: error: {where}: {finding.fault.message}", style="red")
        return
    failures = run.failures
    held = len(run.cases) - len(failures)
    style = "red" if failures else "green"
    verb = "holds" if 1 in (held, len(run.cases)) else "hold"
    say(f"{run.name}: {held:,} of {counted(len(run.cases), 'case')} {verb}", style=style)
    for case in failures:
        say(f"{run.name}:{case.line}: {case.result.case.name}", style="bold")
        for line in failure_lines(case):
            say(f"  {line}")
    for finding in run.warnings:
        say(f"{run.name}:{finding.line}: warning: {finding.fault.field}: {finding.fault.message}", style="yellow")


def _has_not(run: FileRun | UnusableFile) -> bool:
    if isinstance(run, UnusableFile):
        return False
    trees = (reason.tree for case in run.failures for reason in case.reasons)
    return any(tree is not None and has_not(tree) for tree in trees)
