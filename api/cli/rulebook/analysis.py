"""`gate rulebook analyse`: analyze a rulebook for all facts, and compare it with another version.

This module also finds the smallest changes of facts that give another verdict, for `gate rulebook explain` and `gate
whatif`.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import compact, print_json, say
from api.cli.rulebook.adapter import AdapterName, facts_of
from api.cli.rulebook.files import File, RulebookFile, read_rulebook
from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError
from gate.rulebooks.rulebook import Rulebook

# Loaded where it is used: no other command needs the solver.
if TYPE_CHECKING:
    from gate.rulebooks.analysis import Analysis, Flip
    from gate.rulebooks.analysis.difference import ChangedRegion, Difference
    from gate.rulebooks.analysis.finding import Finding
    from gate.rulebooks.analysis.formulas.encoding import Result

_STYLES = {"danger": "red", "warning": "yellow", "note": ""}
_DEFAULTS_SHOWN = 3
_NONE: list[str] = []


class FlipTo(Enum):
    """The verdict that a change of facts must give."""

    ANY = "any"
    YES = "yes"
    NO = "no"
    REVIEW = "review"


def analyse(
    file: File,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", help="Compare with this rulebook file or, with --scope, with this registered version."
        ),
    ] = None,
    scope: Annotated[str | None, typer.Option(help="The scope with the version of --against.")] = None,
    adapter: AdapterName = None,
    accept: Annotated[
        list[str],
        typer.Option(
            "--accept",
            help="Accept a danger by its printed name, KIND:FIELD or KIND:RULE. Repeatable. A name without a finding "
            "is refused.",
        ),
    ] = _NONE,
    every: Annotated[
        bool,
        typer.Option("--all", help="List every region of facts that falls to the default outcome, not only three."),
    ] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Analyze what a rulebook does for all facts, not only for tried ones.

    It finds rules that never match or conflict, tests that decide nothing, and approvals that omitting a fact can gain.
    With `--against`, it lists all regions of facts whose result changes.

    Exit codes: 0 no danger, and everything was decided; 1 a danger, something undecided, or an invalid rulebook; 2
    unusable input.
    """
    from gate.rulebooks.analysis import analyse as analysed

    if scope is not None and against is None:
        raise OperatorError("USAGE_INVALID", "--scope needs --against with a version that is registered in the scope.")
    read = read_rulebook(file)
    rulebook = read.valid(as_json=as_json)
    other = None if against is None else _other(against, scope, rulebook, home, database_url, as_json=as_json)
    found = analysed(rulebook.body, None if other is None else other.body, facts_of(adapter))
    found = found.accepting(accept)
    names = {finding.name for finding in found.findings}
    if unknown := [name for name in accept if name not in names]:
        raise OperatorError("FINDING_UNKNOWN", f"There is no finding {unknown[0]}; leave --accept {unknown[0]} out.")
    if as_json:
        print_json(found.to_dict())
    else:
        _print_findings(read, found, every=every)
        if found.difference is not None and other is not None:
            _print_difference(found.difference, f"{other.rulebook_id} {other.version}")
        _print_summary(read, found)
    raise typer.Exit(1 if found.dangerous or not found.decided else 0)


def _other(
    named: str, scope: str | None, rulebook: Rulebook, home: Path, database_url: str | None, *, as_json: bool
) -> Rulebook:
    if scope is None:
        if not Path(named).is_file():
            raise OperatorError(
                "FILE_UNREADABLE",
                f"There is no file {named}. To compare with a registered version, give its scope with --scope.",
            )
        return read_rulebook(Path(named)).valid(as_json=as_json)
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        sources = instance.gate().sources
        return sources.referenced(of.scope_id, {"rulebook_id": rulebook.rulebook_id, "version": named})


def _print_findings(read: RulebookFile, found: Analysis, *, every: bool) -> None:
    defaults = [finding for finding in found.findings if finding.kind == "falls_to_default"]
    hidden = 0 if every else max(0, len(defaults) - _DEFAULTS_SHOWN)
    left_out = set(map(id, defaults[len(defaults) - hidden :]))
    lines = read.document.lines([finding.path for finding in found.findings])
    for finding in found.findings:
        if id(finding) not in left_out:
            _print_finding(f"{read.name}:{lines[finding.path]}", finding)
    if hidden:
        regions = "1 more region" if hidden == 1 else f"{hidden} more regions"
        say(f"{regions} of facts without a matching rule; --all lists them.")


def _print_finding(at: str, finding: Finding) -> None:
    if finding.accepted:
        say(f"{at}: accepted: {finding.message}", style="dim")
    else:
        say(f"{at}: {finding.severity}: {finding.message}", style=_STYLES[finding.severity])
    if finding.severity == "danger" and not finding.accepted:
        say(f"    name: {finding.name}")
    if finding.witness is not None:
        say(f"    for example {compact(finding.witness)}")


def _print_difference(difference: Difference, other: str) -> None:
    if difference.equal:
        say(f"Equal to {other}: both have the same result for all facts.", style="green")
        return
    if difference.regions:
        regions = "1 region" if len(difference.regions) == 1 else f"{len(difference.regions)} regions"
        say(f"Compared with {other}, the result changes in {regions} of facts:")
    for region in difference.regions:
        _print_region(region)


def _print_region(region: ChangedRegion) -> None:
    say(
        f"  {region.severity}: {_result(region.before)} becomes {_result(region.after)}", style=_STYLES[region.severity]
    )
    say(f"    where {region.condition}")
    say(f"    for example {compact(region.witness)}")


def _result(result: Result) -> str:
    by = "no rule" if result.rule_id is None else result.rule_id
    return f"{result.decision} ({result.verdict}, {result.action}, {result.reason_code}; {by})"


def _print_summary(read: RulebookFile, found: Analysis) -> None:
    difference = found.difference
    for sentence in (*found.undecided, *(() if difference is None else difference.undecided)):
        say(f"not decided: {sentence}", style="yellow")
    severities: list[str] = [finding.severity for finding in found.findings if not finding.accepted]
    severities += [] if difference is None else [region.severity for region in difference.regions]
    counts = [
        f"{severities.count(severity)} {noun if severities.count(severity) == 1 else f'{noun}s'}"
        for severity, noun in (("danger", "danger"), ("warning", "warning"), ("note", "note"))
    ]
    done = "all questions decided" if found.decided else "not all questions decided"
    say(f"{read.name}: {', '.join(counts)}; {done}.", style="red" if found.dangerous else "")


def find_flips(rulebook: Rulebook, facts: JsonObject, to: FlipTo) -> list[Flip]:
    """The smallest changes of facts that give a verdict.

    Raises:
        OperatorError: `RULEBOOK_TOO_LARGE`.
    """
    # Loaded where it is used: no other command needs the solver.
    from gate.rulebooks.analysis import NotDecided, nearest_flips

    try:
        return nearest_flips(rulebook.body, facts, to=None if to is FlipTo.ANY else to.value)
    except NotDecided as error:
        raise OperatorError(
            "RULEBOOK_TOO_LARGE", f"The smallest changes cannot be found: {error}. Leave --flip out."
        ) from error


def print_flips(flips: list[Flip], to: FlipTo | None, decision: str) -> None:
    """Prints the smallest changes of facts that give a verdict.

    Args:
        flips: The changes.
        to: The verdict that they must give.
        decision: The verdict without a change.
    """
    from gate.rulebooks.analysis.flips import MAX_CHANGED

    verdict = "another verdict" if to is None or to is FlipTo.ANY else to.value
    if verdict == decision:
        say(f"  the verdict is already {decision}")
        return
    if not flips:
        say(f"  no change of at most {MAX_CHANGED} facts gives {verdict}")
        return
    say(f"  the smallest changes that give {verdict}:")
    for flip in flips:
        say(f"    {flip.text}")
