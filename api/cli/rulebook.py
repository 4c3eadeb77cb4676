"""gate rulebook: check, hash and explain a rulebook file. No instance is needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, cast

import orjson
import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, read_json
from api.cli.output import print_json, say, table
from gate.encoding.canonical import content_hash
from gate.errors import FieldError, OperatorError, RulebookRefused
from gate.rulebooks.documents import Condition, DeclaredOutcome, RulebookBody
from gate.rulebooks.evaluation import Explained
from gate.rulebooks.rulebook import Rulebook, find_errors, find_warnings, load

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Check, hash and explain rulebook files. They need no instance."
)

File = Annotated[Path, typer.Argument(help="A Rulebook v1 file in JSON; - for stdin.")]


@app.command()
def check(file: File, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Check a rulebook: errors that make it invalid (exit 1), and warnings its author should know."""
    sent = read_json(file)
    errors = find_errors(sent)
    # A rulebook only if nothing is wrong with it, and used as one only then.
    body = cast("RulebookBody", sent)
    warnings = [] if errors else find_warnings(body)
    if as_json:
        print_json(
            {
                "valid": not errors,
                "hash": None if errors else content_hash(body),
                "errors": [error.to_dict() for error in errors],
                "warnings": [warning.to_dict() for warning in warnings],
            }
        )
    else:
        _print_faults(errors, warnings)
        if not errors:
            say(f"{file} is a valid rulebook: {body['rulebook_id']} {body['version']}", style="green")
    raise typer.Exit(1 if errors else 0)


@app.command("hash")
def hash_(file: File, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Print the hash of a valid rulebook, as records cite it."""
    rulebook = _valid(file, as_json)
    if as_json:
        print_json({"rulebook_id": rulebook.rulebook_id, "version": rulebook.version, "hash": rulebook.hash})
    else:
        say(rulebook.hash)


@app.command()
def explain(
    file: File,
    facts: Annotated[Path | None, typer.Option(help="A file with facts in JSON; - for stdin.")] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show the rules in the order in which they are tried or, with --facts, what they decide and why."""
    rulebook = _valid(file, as_json)
    if facts is None:
        _print_rules(rulebook, as_json)
        return
    given = read_json(facts)
    if not isinstance(given, dict):
        raise OperatorError("FACTS_INVALID", f"{facts} holds no JSON object; facts are an object of named values.")
    explained = rulebook.evaluator.explain(given)
    if as_json:
        print_json(_document(explained))
    else:
        _print_explained(explained)


def _valid(file: Path, as_json: bool) -> Rulebook:
    try:
        return load(read_json(file))
    except RulebookRefused as error:
        if as_json:
            print_json({"valid": False, "errors": [fault.to_dict() for fault in error.errors]})
        else:
            _print_faults(error.errors, [])
        raise typer.Exit(1) from error


def _print_faults(errors: Iterable[FieldError], warnings: list[FieldError]) -> None:
    for error in errors:
        say(f"error    {error.field or 'the rulebook'}: {error.message}", style="red")
    for warning in warnings:
        say(f"warning  {warning.field}: {warning.message}", style="yellow")


def _print_rules(rulebook: Rulebook, as_json: bool) -> None:
    rules = sorted(rulebook.body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
    if as_json:
        print_json({"rules": rules, "default_outcome": rulebook.body["default_outcome"]})
        return
    schema = rulebook.body["input_schema"]
    say(f"{rulebook.rulebook_id} {rulebook.version}  {rulebook.hash}")
    say(f"needs {', '.join(schema['required']) or 'no input'}")
    table(
        ["priority", "rule", "when", "then", "reason"],
        [
            *(
                [rule.get("priority", 0), rule["rule_id"], _words(rule["condition"]), *_then(rule["outcome"])]
                for rule in rules
            ),
            ["", "default", "no rule matches", *_then(rulebook.body["default_outcome"])],
        ],
    )


def _then(outcome: DeclaredOutcome) -> tuple[str, str]:
    return f"{outcome['decision']} / {outcome['verdict']} / {outcome['action']}", outcome["reason_code"]


def _words(condition: Condition) -> str:
    if "all" in condition:
        return "(" + " and ".join(map(_words, condition["all"])) + ")"
    if "any" in condition:
        return "(" + " or ".join(map(_words, condition["any"])) + ")"
    if "not" in condition:
        return f"not {_words(condition['not'])}"
    value = f" {_text(condition['value'])}" if "value" in condition else ""
    return f"{condition['field']} {condition['operator']}{value}"


def _document(explained: Explained) -> dict[str, object]:
    outcome = explained.outcome
    return {
        "status": outcome.status,
        "verdict": outcome.decision,
        "application_verdict": outcome.verdict,
        "action": outcome.action,
        "reason_code": outcome.reason_code,
        "matched_rule_id": outcome.matched_rule_id,
        "evaluation": explained.evaluation,
    }


def _print_explained(explained: Explained) -> None:
    outcome, evaluation = explained.outcome, explained.evaluation
    styles = {"yes": "green", "no": "red", "review": "yellow"}
    say(
        f"{outcome.decision}: {outcome.verdict}, {outcome.action}, {outcome.reason_code}",
        style=styles[outcome.decision],
    )
    for name in evaluation["missing_fields"]:
        say(f"  {name} is required and missing")
    for field in evaluation["invalid_fields"]:
        say(f"  {field['field']} must be {field['expected']} and is {field['observed_type']}")
    for rule in evaluation["rules"]:
        say(f"  {'match ' if rule['passed'] else 'no    '} {rule['rule_id']} (priority {rule['priority']})")
        for test in rule["tests"]:
            observed = _text(test["observed"]) if "observed" in test else "absent"
            wanted = f" {_text(test['expected'])}" if "expected" in test else ""
            mark = "+" if test["passed"] else "-"
            say(f"           {mark} {test['field']} {test['operator']}{wanted}  (observed {observed})")
    if not evaluation["matched"] and outcome.status == "ok":
        say("  no rule matched, so the default outcome holds")


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
