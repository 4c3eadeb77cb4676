"""The subcommands of `gate rulebook`, with `check`, `hash`, `convert`, `register`, and `explain`."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import note, print_json, print_text, say
from api.cli.rulebook.adapter import AdapterName, adapter_of, facts_of
from api.cli.rulebook.analysis import FlipTo, analyse, find_flips, print_flips
from api.cli.rulebook.documents import read_document
from api.cli.rulebook.files import File, RulebookFile, read_rulebook
from api.cli.rulebook.lines import LEGEND, has_not, nodes, tree_lines
from api.cli.rulebook.proposals import propose_cases
from api.cli.rulebook.registered import list_rulebooks, show
from api.cli.rulebook.testing import run_tests
from gate.encoding.strict_json import MAX_VALUES, MAX_VERIFY_DEPTH
from gate.errors import FieldError, OperatorError
from gate.rulebooks.advice import find_warnings
from gate.rulebooks.documents import Annotations, DeclaredOutcome
from gate.rulebooks.evaluation import Explained
from gate.rulebooks.explanation import ExplainedRule, explain_rules
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.advice import find_fact_warnings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Check, test, analyze, explain, and register rulebook files. Only `register`, `list` and `show` need an "
    "instance.",
)

app.command()(analyse)


Strict = Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")]

app.command("test")(run_tests)
app.command("cases")(propose_cases)
app.command("list")(list_rulebooks)
app.command()(show)


@app.command()
def check(
    file: File,
    strict: Strict = False,
    adapter: AdapterName = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check a rulebook. Errors make it invalid, and warnings point at probable mistakes. Exit codes: 0 valid; 1
    invalid, or warnings with `--strict`; 2 the command failed.
    """
    read = read_rulebook(file)
    errors = read.authored.errors
    warnings = [] if errors else find_warnings(read.authored.body, facts_of(adapter))
    if as_json:
        print_json(
            {
                "valid": not errors,
                "hash": None if errors else read.valid(as_json=True).hash,
                "errors": [finding.to_dict() for finding in read.document.findings(errors)],
                "warnings": [finding.to_dict() for finding in read.document.findings(warnings)],
            }
        )
    else:
        read.tell(errors, warnings)
        if not errors:
            body = read.authored.body
            but = _but(warnings)
            say(f"{read.name} is a valid rulebook{but}: {body['rulebook_id']} {body['version']}", style="green")
    if strict and warnings and not errors and not as_json:
        say("The warnings count as errors, because of --strict.", style="red")
    raise typer.Exit(1 if errors or (strict and warnings) else 0)


@app.command("hash")
def hash_(file: File, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Print the hash of a valid rulebook, as records cite it. Descriptions and comments do not change it. Exit code 1
    if it is invalid.
    """
    rulebook = read_rulebook(file).valid(as_json=as_json)
    if as_json:
        print_json({"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash})
    else:
        say(rulebook.hash)


class Form(Enum):
    """A form in which `convert` prints a rulebook."""

    WIRE = "wire"
    JSON = "json"
    YAML = "yaml"


To = Annotated[
    Form,
    typer.Option(help="`wire`: Rulebook v1, as requests send it. `json` and `yaml`: with $schema and descriptions."),
]


@app.command()
def convert(
    file: File,
    to: To = Form.WIRE,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Print a valid rulebook in another form. From YAML to YAML, comments are kept. Exit code 1 if it is invalid, and 2
    if a comment would be lost.
    """
    read = read_rulebook(file)
    rulebook, document = read.valid(as_json=as_json), read.document
    if to is Form.WIRE:
        print_json(rulebook.body)
    elif to is Form.YAML:
        print_text(document.to_yaml())
    else:
        print_json(document.value)
        if document.comments:
            count = "1 comment is" if len(document.comments) == 1 else f"{len(document.comments)} comments are"
            note(f"{document.name}:{min(document.comments)}: JSON has no comments, so {count} left out.")


@app.command()
def register(
    file: File,
    scope: Annotated[str, typer.Option(help="The scope.")],
    strict: Annotated[bool, typer.Option("--strict", help="Register nothing if there are warnings.")] = False,
    adapter: AdapterName = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Register a rulebook in a scope permanently, so that requests can refer to it. The service can keep running.

    A registered id and version never get another body. The file's descriptions are stored next to the registration and
    replace earlier ones. They are not authenticated.

    Exit codes: 0 registered, now or before; 1 invalid, or warnings with `--strict`; 2 the command failed.
    """
    read = read_rulebook(file)
    rulebook = read.valid(as_json=as_json)
    warnings = find_warnings(rulebook.body, facts_of(adapter))
    if not as_json:
        read.tell([], warnings)
    if strict and warnings:
        if as_json:
            print_json(
                {"registered": False, "warnings": [finding.to_dict() for finding in read.document.findings(warnings)]}
            )
        else:
            say("Nothing was registered, because there are warnings; correct them, or leave out --strict.", style="red")
        raise typer.Exit(1)
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        dependency = None if adapter is None else adapter_of(adapter).dependency
        done = instance.gate().sources.register_file(of, rulebook, read.annotations, dependency)
    if as_json:
        print_json(
            {
                "registered": True,
                "created": done.created,
                "rulebook": done.registered.metadata,
                "annotations_changed": done.annotated,
                "warnings": [finding.to_dict() for finding in read.document.findings(warnings)],
            }
        )
        return
    named, since = f"{rulebook.rulebook_id} {rulebook.version}", done.registered.metadata["registered_at"]
    if done.created:
        say(f"Registered {named} in the scope {scope}: {rulebook.hash}", style="green")
    else:
        say(f"{named} has been registered in the scope {scope} since {since}: {rulebook.hash}")
    if done.annotated:
        say("Its descriptions are stored next to it. They are not authenticated: no hash or signature covers them.")


@app.command()
def explain(
    file: File,
    facts: Annotated[Path | None, typer.Option(help="A file with facts in JSON or YAML. Use - for stdin.")] = None,
    flip: Annotated[
        FlipTo | None,
        typer.Option(help="Also show the smallest changes of the facts that give another verdict, or this verdict."),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show the rules in the order in which they are tried. With `--facts`, show what they decide and why.

    Exit codes: 0 shown, for any verdict; 1 the rulebook is invalid; 2 unusable input.
    """
    read = read_rulebook(file)
    rulebook = read.valid(as_json=as_json)
    if facts is None:
        if flip is not None:
            raise OperatorError("USAGE_INVALID", "--flip changes facts; give a file with facts with --facts.")
        _print_rules(rulebook, read, as_json)
        return
    document = read_document(facts, max_depth=MAX_VERIFY_DEPTH, max_values=MAX_VALUES)
    given = document.value
    if not isinstance(given, dict):
        raise OperatorError(
            "FACTS_INVALID", f"{facts} does not contain a JSON object; facts are an object of named values."
        )
    explained = rulebook.evaluator.explain(given)
    rules = explain_rules(rulebook.body, explained.evaluation)
    warnings = document.findings(find_fact_warnings(rulebook.body, given))
    flips = None if flip is None else find_flips(rulebook, given, flip)
    if as_json:
        told: dict[str, object] = {"warnings": [finding.to_dict() for finding in warnings]}
        told |= {} if flips is None else {"flips": [each.to_dict() for each in flips]}
        print_json(_document(explained, rules, read.annotations) | told)
        return
    _print_explained(explained, rules, read.annotations)
    if flips is not None:
        print_flips(flips, flip, explained.outcome.decision)
    for finding in warnings:
        say(f"{document.name}:{finding.line}: warning: {finding.fault.field}: {finding.fault.message}", style="yellow")


def _but(warnings: list[FieldError]) -> str:
    if not warnings:
        return ""
    return f" with {len(warnings)} warning{'' if len(warnings) == 1 else 's'}"


def _print_rules(rulebook: Rulebook, read: RulebookFile, as_json: bool) -> None:
    rules = explain_rules(rulebook.body)
    default = rulebook.body["default_outcome"]
    if as_json:
        shown: dict[str, object] = {"rules": [rule.rule for rule in rules], "default_outcome": default}
        print_json(shown | _labelled(read.annotations))
        return
    schema = rulebook.body["input_schema"]
    say(f"{rulebook.rulebook_id} {rulebook.version}  {rulebook.hash}", style="bold")
    _print_comment(read.annotations.get("description"), "")
    say(f"needs {', '.join(schema['required']) or 'no input'}")
    for rule in rules:
        about = read.annotations.get("rules", {}).get(rule.rule["rule_id"], {})
        say("")
        say(f"{rule.rule['rule_id']}  (priority {rule.priority})", style="bold")
        _print_comment(about.get("description"), "  ")
        for depth, node in nodes(rule.tree):
            say(f"  {'  ' * depth}{'when ' if depth == 0 else ''}{node.text}")
        _print_outcome(rule.rule["outcome"], about.get("outcome"))
    say("")
    say("no rule matches", style="bold")
    _print_outcome(default, read.annotations.get("default_outcome"))


def _print_outcome(outcome: DeclaredOutcome, comment: str | None) -> None:
    say(f"  then {outcome['decision']}: {outcome['verdict']}, {outcome['action']}, {outcome['reason_code']}")
    _print_comment(comment, "  ")


def _print_comment(comment: str | None, indent: str) -> None:
    for number, line in enumerate((comment or "").splitlines()):
        say(f"{indent}{'description (not authenticated): ' if number == 0 else '  '}{line}", style="dim")


def _labelled(annotations: Annotations) -> dict[str, object]:
    return {"annotations": {**annotations, "authenticated": False}} if annotations else {}


def _document(explained: Explained, rules: list[ExplainedRule], annotations: Annotations) -> dict[str, object]:
    outcome = explained.outcome
    trees = [{"rule_id": rule.rule["rule_id"], "matched": rule.matched, "tree": asdict(rule.tree)} for rule in rules]
    return {
        "status": outcome.status,
        "verdict": outcome.decision,
        "application_verdict": outcome.verdict,
        "action": outcome.action,
        "reason_code": outcome.reason_code,
        "matched_rule_id": outcome.matched_rule_id,
        "evaluation": explained.evaluation,
        "rules": trees,
        **_labelled(annotations),
    }


_STYLES = {"yes": "green", "no": "red", "review": "yellow"}


def _print_explained(explained: Explained, rules: list[ExplainedRule], annotations: Annotations) -> None:
    outcome, evaluation = explained.outcome, explained.evaluation
    say(
        f"{outcome.decision}: {outcome.verdict}, {outcome.action}, {outcome.reason_code}",
        style=_STYLES[outcome.decision],
    )
    for name in evaluation["missing_fields"]:
        say(f"  {name} is required but missing")
    for field in evaluation["invalid_fields"]:
        say(f"  {field['field']} must be of type {field['expected']}, but is of type {field['observed_type']}")
    for rule in rules:
        about = annotations.get("rules", {}).get(rule.rule["rule_id"], {})
        say(f"  {'match   ' if rule.matched else 'no match'}  {rule.rule['rule_id']} (priority {rule.priority})")
        _print_comment(about.get("description"), " " * 12)
        for line in tree_lines(rule.tree):
            say(f"{' ' * 12}{line}")
        if rule.matched:
            _print_comment(about.get("outcome"), " " * 12)
    if not evaluation["matched"] and outcome.status == "ok":
        say("  no rule matched, so the default outcome holds")
        _print_comment(annotations.get("default_outcome"), "  ")
    if any(has_not(rule.tree) for rule in rules):
        say(f"  {LEGEND}")
