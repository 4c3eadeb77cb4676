"""gate rulebook test: runs cases against their rulebooks, and explains those that do not hold. Needs no instance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import counted, print_json, say
from api.cli.rulebook.junit import write_junit
from api.cli.rulebook.lines import LEGEND, failure_lines, has_not
from api.cli.rulebook.report import report
from api.cli.rulebook.runs import FileRun, UnusableFile, run_file

Files = Annotated[
    list[Path], typer.Argument(help="Files of cases; each names its rulebook. - for stdin.", show_default=False)
]


def run_tests(
    files: Files,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if there are warnings.")] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Also write the results to this file, in JUnit XML.")
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Run cases: facts, with the outcome that the rulebook must give. Exit code 1 where one does not hold.

    A case that does not hold is printed with the rules and tests that made the difference. Exit code 2 where a file or
    its rulebook is unusable; the other files are still run.
    """
    runs = [run_file(file) for file in files]
    if as_json:
        print_json(report(runs))
    else:
        for each in runs:
            _tell(each)
        if any(_has_not(each) for each in runs):
            say(LEGEND)
        if strict and any(isinstance(each, FileRun) and each.warnings for each in runs):
            say("--strict: the warnings count as failures.", style="red")
    if junit is not None:
        write_junit(junit, runs)
    raise typer.Exit(_exit_code(runs, strict))


def _exit_code(runs: Sequence[FileRun | UnusableFile], strict: bool) -> int:
    usable = [each for each in runs if isinstance(each, FileRun)]
    if len(usable) < len(runs):
        return 2
    return int(any(each.failures or (strict and each.warnings) for each in usable))


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
    say(f"{run.name}: {held:,} of {counted(len(run.cases), 'case')} hold{'s' if held == 1 else ''}", style=style)
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
