"""`gate drafts cases`: list, run, add, and remove the cases of a draft, or make one from a decision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.cli.drafts.options import DraftId, ScopeName, drafting
from api.cli.migrate.signing import TokenFile, UserName
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, print_json, say
from api.cli.rulebook.documents import read_document
from api.cli.rulebook.runs import MAX_DEPTH
from gate.decisions.drafts import case_of
from gate.decisions.stored import record_and_facts
from gate.drafting.diagnosis import diagnose
from gate.encoding.strict_json import MAX_VALUES
from gate.errors import OperatorError
from gate.ledger.drafts.drafts import Draft
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case, read_cases
from gate.rulebooks.testing.failures import Explainer
from gate.rulebooks.testing.runs import run

app = typer.Typer(no_args_is_help=True, add_completion=False, help="List, run, add, and remove the cases of a draft.")

CaseName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the case.", show_default=False)]


def _rulebook(of: Draft) -> Rulebook:
    found = diagnose(of.text).rulebook
    if found is None:
        raise OperatorError(
            "DRAFT_NOT_VALID", f"{of.name} is not valid; `gate drafts check {of.draft_id}` shows where."
        )
    return found


@app.command("run")
def run_cases(
    draft: DraftId,
    scope: ScopeName,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Run the cases of a draft, and explain those that fail. Exit code 1 if a case fails."""
    with instance_at(home, database_url) as instance:
        scope_id = instance.ledger.directory.scope(scope).scope_id
        found = instance.ledger.drafts.draft(scope_id, draft)
        kept = [each.case for each in instance.ledger.draft_cases.of(scope_id, draft)]
    rulebook = _rulebook(found)
    results, explainer = run(rulebook, kept), Explainer(rulebook)
    failing = [result for result in results if not result.held]
    if as_json:
        shown = [
            {
                **_document(result.case),
                "held": result.held,
                "reasons": [] if result.held else [reason.text for reason in explainer.reasons(result)],
            }
            for result in results
        ]
        print_json({"cases": shown})
    else:
        for result in failing:
            say(f"{result.case.name} does not hold:", style="red")
            for reason in explainer.reasons(result):
                say(f"  {reason.text}")
        holding = len(results) - len(failing)
        say(f"{holding:,} of {counted(len(results), 'case')} {'holds' if holding == 1 else 'hold'}.")
    raise typer.Exit(1 if failing else 0)


@app.command()
def add(
    draft: DraftId,
    file: Annotated[
        Path, typer.Argument(help="A file of cases, in the format of `gate rulebook test`.", show_default=False)
    ],
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Add the cases of a file whose names are new to the draft."""
    document = read_document(file, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    cases = list(read_cases(document.value).cases)
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        added = acts.take_cases(of, who, draft, cases)
    if as_json:
        print_json({"added": added})
    else:
        say(f"Added {counted(len(added), 'case')} of {len(cases):,}.")


@app.command("of")
def of_decision(
    draft: DraftId,
    decision: Annotated[str, typer.Argument(help="The id of the decision.", show_default=False)],
    scope: ScopeName,
    verdict: Annotated[
        str | None,
        typer.Option(
            "--verdict", help="The expected verdict: yes, no or review. Default: the verdict of the decision."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The name of the case.")] = None,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a case from a stored decision, with the facts that the draft reads."""
    with drafting(home, database_url, scope, user, token_file) as (instance, of, who, acts):
        rulebook = _rulebook(instance.ledger.drafts.draft(of.scope_id, draft))
        record, facts = record_and_facts(instance.ledger, of.scope_id, decision)
        if facts is None:
            raise OperatorError("FACTS_ERASED", f"The facts of {decision} were erased; choose another decision.")
        made = case_of(rulebook, record, dict(facts), None if verdict is None else {"verdict": verdict}, name)
        acts.keep_case(of, who, draft, made)
    if as_json:
        print_json(_document(made))
    else:
        say(f"Added the case {made.name}.")


@app.command()
def remove(
    draft: DraftId,
    name: CaseName,
    scope: ScopeName,
    user: UserName = None,
    token_file: TokenFile = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Remove a case."""
    with drafting(home, database_url, scope, user, token_file) as (_, of, who, acts):
        acts.remove_case(of, who, draft, name)
    if as_json:
        print_json({"removed": name})
    else:
        say(f"Removed the case {name}.")


def _document(case: Case) -> dict[str, object]:
    return {"name": case.name, "facts": case.facts, "expect": case.expect}
