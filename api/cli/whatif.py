"""`gate whatif`: decide a stored decision, or a selection of past decisions, with other facts or by another version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, print_json, say, table
from api.cli.rulebook.analysis import FlipTo, find_flips, print_flips
from gate.drafting.given import fields_of
from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError, ServiceUnavailable
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.rulebooks.evaluation import ABSENT, NEEDS_INPUT, Explained, value_at
from gate.rulebooks.explanation import shown as shown_value
from gate.rulebooks.rulebook import Rulebook
from workbench.engines.findings import approvals, failing
from workbench.engines.wording import amount, decided_by, without_verdict
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.names import choices, shown
from workbench.lake.reader import history_of
from workbench.period import begin, end
from workbench.whatif import Redecided, decide_slice, decided, deciding, read_changes, registered, with_changes

app = typer.Typer(add_completion=False)

_NONE: list[str] = []
_TRANSITIONS_SHOWN: Final = 40
_STYLES: Final = {"yes": "green", "no": "red", "review": "yellow"}


class Verdict(Enum):
    """The verdict that decisions had."""

    YES = "yes"
    NO = "no"
    REVIEW = "review"


class Clock(Enum):
    """By which dates decisions are chosen."""

    RECORDED = "recorded"
    OCCURRED = "occurred"


@dataclass(frozen=True, slots=True)
class _Slice:
    """Which past decisions are looked at, as the command line says it, and what is summed over them."""

    version: str | None
    verdict: str | None
    since: str | None
    until: str | None
    clock: str | None
    metrics: Sequence[str]
    history: str | None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        names = {"--version": self.version, "--verdict": self.verdict, "--since": self.since, "--until": self.until}
        names |= {"--clock": self.clock, "--metric": next(iter(self.metrics), None), "--history": self.history}
        return [name for name, value in names.items() if value is not None]


@app.command()
def whatif(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="The id of the policy.", show_default=False)],
    scope: Annotated[str, typer.Option("--scope", help="The scope.", show_default=False)],
    set_: Annotated[
        list[str],
        typer.Option("--set", metavar="FIELD=VALUE", help="Give a fact another value. Repeatable.", show_default=False),
    ] = _NONE,
    leave_out: Annotated[
        list[str],
        typer.Option("--leave-out", metavar="FIELD", help="Leave a fact out. Repeatable.", show_default=False),
    ] = _NONE,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="VERSION",
            help="The version that decides. Default: each decision's own version.",
            show_default=False,
        ),
    ] = None,
    decision: Annotated[
        str | None,
        typer.Option(
            "--decision", metavar="ID", help="Only this decision, instead of all past decisions.", show_default=False
        ),
    ] = None,
    flip: Annotated[
        FlipTo | None,
        typer.Option(
            help="With --decision: also show the smallest changes of its stored facts that give another verdict, or "
            "this verdict.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Only decisions of this version.", show_default=False)
    ] = None,
    verdict: Annotated[
        Verdict | None, typer.Option("--verdict", help="Only decisions with this verdict.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only decisions from this day on, in UTC: 2026-07-01, or 2026-07-01T12:00:00Z.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            help="Only decisions up to and including this day, in UTC: 2026-07-31, or before 2026-07-31T12:00:00Z.",
            show_default=False,
        ),
    ] = None,
    clock: Annotated[
        Clock | None,
        typer.Option(
            help="The dates that --since and --until select by: `recorded` (default), or `occurred`, as callers "
            "reported them.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        list[str],
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Sum this value over the decisions whose verdict changes: a metric of outcomes, or inputs.FIELD. "
            "Repeatable, up to five times.",
            show_default=False,
        ),
    ] = _NONE,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="NAME",
            help="Use the imported cases of this history instead of the scope's decisions.",
            show_default=False,
        ),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Decide past decisions again with other facts or by another version, and count those that change. With
    `--decision`, show what one decision would be. Nothing is stored, and nothing authorizes an action.
    """
    asked = _Slice(version, _word(verdict), since, until, _word(clock), metrics, history)
    lines = _lines(set_, leave_out)
    _require_asked(lines, by, decision, flip, asked)
    period = _moment("--since", since, begin), _moment("--until", until, end)
    if period[0] is not None and period[1] is not None and period[0] >= period[1]:
        raise OperatorError("USAGE_INVALID", f"--since {since} is after --until {until}; swap them.")
    with instance_at(home, database_url) as instance:
        of = instance.ledger.directory.scope(scope)
        if decision is not None:
            _one(instance, of, policy, decision, lines, by, flip, as_json=as_json)
        else:
            _many(instance, of, policy, lines, by, asked, period, as_json=as_json)


def _word(chosen: Enum | None) -> str | None:
    return None if chosen is None else str(chosen.value)


def _require_asked(
    lines: Mapping[str, object], by: str | None, decision: str | None, flip: FlipTo | None, asked: _Slice
) -> None:
    if decision is None and flip is not None:
        raise OperatorError("USAGE_INVALID", "--flip needs a single decision; give it with --decision.")
    if decision is not None and asked.given:
        raise OperatorError(
            "USAGE_INVALID",
            f"{asked.given[0]} selects many decisions, but --decision selects one; leave one of them out.",
        )
    if not lines and by is None and flip is None:
        more = "" if decision is None else ", or ask for the smallest changes with --flip any"
        raise OperatorError(
            "USAGE_INVALID",
            f"Give at least one change: --set FIELD=VALUE, --leave-out FIELD or --by VERSION{more}.",
        )


def _lines(set_: Sequence[str], leave_out: Sequence[str]) -> dict[str, dict[str, str]]:
    """The changed facts as the form on the page has them."""
    lines: list[tuple[str, dict[str, str]]] = []
    for given in set_:
        field, equals, text = given.partition("=")
        if not (field and equals):
            raise OperatorError("USAGE_INVALID", f"--set {given} has no value; write --set FIELD=VALUE.")
        lines.append((field, {"is": "value", "text": text}))
    lines += [(field, {"is": "absent", "text": ""}) for field in leave_out]
    for field, times in Counter(field for field, _ in lines).items():
        if times > 1:
            raise OperatorError("USAGE_INVALID", f"{field} is changed more than once; change it once.")
    return dict(lines)


def _moment(option: str, text: str | None, read: Callable[[str | None], datetime | None]) -> datetime | None:
    try:
        return read(text)
    except ValueError as error:
        raise OperatorError("DATE_INVALID", f"{text!r} is not a day; write {option} 2026-07-31.") from error


def _changed(rulebook: Rulebook, lines: Mapping[str, Mapping[str, str]]) -> Mapping[str, Any]:
    """The changed facts by field.

    Raises:
        OperatorError: FACT_UNKNOWN or FACT_INVALID.
    """
    named = f"{rulebook.rulebook_id} {rulebook.version}"
    known = [field.name for field in fields_of(rulebook.body, {})]
    for field in lines:
        if field not in known:
            raise OperatorError(
                "FACT_UNKNOWN", f"{named} neither declares nor tests a fact {shown(field)}. {choices(field, known)}"
            )
    changes = read_changes(rulebook, lines)
    for field, fault in changes.faults.items():
        line = lines[field]
        if line["is"] == "absent":
            raise OperatorError("FACT_INVALID", f"--leave-out {field}: {fault}")
        hint = "" if line["text"] else f" To leave it out, write --leave-out {field}."
        raise OperatorError("FACT_INVALID", f"--set {field}={line['text']}: {fault}{hint}")
    return changes.facts


# --- One decision -----------------------------------------------------------------------------------------------------


def _one(
    instance: Instance,
    scope: Scope,
    policy: str,
    decision_id: str,
    lines: Mapping[str, Mapping[str, str]],
    by: str | None,
    flip: FlipTo | None,
    *,
    as_json: bool,
) -> None:
    record, facts = decided(instance.ledger, scope, decision_id)
    if record["policy_id"] != policy:
        raise OperatorError(
            "USAGE_INVALID",
            f"{decision_id} was decided by {record['policy_id']}, not {shown(policy)}; give that policy.",
        )
    rulebook = registered(instance.ledger, instance.migrations(), scope, policy, by or record["policy_version"])
    changed = _changed(rulebook, lines)
    then = rulebook.evaluator.explain(with_changes(facts, changed)) if changed or by is not None else None
    flips = None if flip is None else find_flips(rulebook, facts, flip)
    if as_json:
        told: dict[str, object] = {
            "scope": scope.name,
            "decision_id": decision_id,
            "policy_id": policy,
            "rulebook": rulebook.reference,
            "changes": [_change(field, value_at(facts, field), value) for field, value in changed.items()],
            "was": {
                "verdict": record["verdict"],
                "reason_code": record["reason_code"],
                "matched_rule_id": record["matched_rule_id"],
                "policy_version": record["policy_version"],
            },
            "then": None if then is None else _then(then),
        }
        print_json(told | ({} if flips is None else {"flips": [each.to_dict() for each in flips]}))
        return
    reason = record["reason_code"]
    rule = _rule(record["matched_rule_id"], default=reason != NEEDS_INPUT.reason_code)
    say(f"{decision_id} was {record['verdict']} ({reason}; {rule}), by version {record['policy_version']}.")
    if then is not None:
        _print_then(record["verdict"], rulebook, facts, changed, then)
    if flips is not None:
        say(f"With its stored facts, decided by version {rulebook.version}:")
        print_flips(flips, flip, rulebook.evaluator.decide(facts).decision)


def _print_then(was: str, rulebook: Rulebook, facts: JsonObject, changed: Mapping[str, Any], then: Explained) -> None:
    of = then.outcome
    for field, value in changed.items():
        say(f"  {field}: {_said(value_at(facts, field))} -> {_said(value)}")
    flips = "the verdict stays" if of.decision == was else "the verdict flips"
    rule = _rule(of.matched_rule_id, default=of.status == "ok")
    say(
        f"It would be {of.decision} ({of.reason_code}; {rule}), by version {rulebook.version}: {flips}.",
        style=_STYLES[of.decision],
    )
    for name in then.evaluation["missing_fields"]:
        say(f"  {name} is required but missing")
    for each in then.evaluation["invalid_fields"]:
        say(f"  {each['field']} must be of type {each['expected']}, but is of type {each['observed_type']}")


def _then(explained: Explained) -> dict[str, object]:
    of, evaluation = explained.outcome, explained.evaluation
    return {
        "status": of.status,
        "verdict": of.decision,
        "application_verdict": of.verdict,
        "action": of.action,
        "reason_code": of.reason_code,
        "matched_rule_id": of.matched_rule_id,
        "missing_fields": evaluation["missing_fields"],
        "invalid_fields": evaluation["invalid_fields"],
    }


def _change(field: str, before: object, after: object) -> dict[str, object]:
    """A changed fact, each side where it is there, as flips have it."""
    sides = {"before": before, "after": after}
    return {"field": field, **{name: value for name, value in sides.items() if value is not ABSENT}}


def _rule(rule: str | None, *, default: bool) -> str:
    if rule is not None:
        return rule
    return "the default outcome" if default else "the schema check"


def _said(value: object) -> str:
    return "absent" if value is ABSENT else shown_value(value)


# --- A slice of past decisions ----------------------------------------------------------------------------------------


def _many(
    instance: Instance,
    scope: Scope,
    policy: str,
    lines: Mapping[str, Mapping[str, str]],
    by: str | None,
    asked: _Slice,
    period: tuple[datetime | None, datetime | None],
    *,
    as_json: bool,
) -> None:
    rulebook = registered(instance.ledger, instance.migrations(), scope, policy, by)
    changed = _changed(rulebook, lines)
    settings = instance.settings
    if asked.history is not None:
        snapshot = history_of(settings.lake_directory, scope.scope_id, scope.name, asked.history)
    else:
        with _lake_errors(scope):
            personal = Personal.of(settings.personal_fields)
            snapshot = fresh(instance.ledger, settings.lake_directory, scope.scope_id, personal)
    decides = deciding(snapshot, rulebook, by)
    redecided = decide_slice(
        snapshot,
        policy,
        changed,
        rulebook=decides,
        version=asked.version,
        verdict=asked.verdict,
        since=period[0],
        until=period[1],
        metrics=asked.metrics,
        clock=asked.clock or Clock.RECORDED.value,
    )
    if as_json:
        verdicts = [
            {
                "verdict": each.was,
                "then_verdict": each.then,
                "decisions": each.decisions,
                "worth": [
                    {"metric": name, **dict(zip(("values", "sum"), each.worth.get(name, (0, None)), strict=True))}
                    for name in asked.metrics
                ],
            }
            for each in (*redecided.verdicts, *redecided.untold)
        ]
        print_json(
            {"scope": scope.name, "metrics": list(asked.metrics), "verdicts": verdicts, "report": redecided.body}
        )
        return
    version = None if decides is None else decides.version
    _print_slice(redecided, policy, scope, changed, version, asked)


@contextmanager
def _lake_errors(scope: Scope) -> Iterator[None]:
    """Says what to do where the lake cannot be used; the service waits for its export, a command does not."""
    try:
        yield
    except ServiceUnavailable as error:
        if error.code != "SVC_REPORT_UNAVAILABLE":
            raise
        if isinstance(error.__cause__, OperatorError):
            raise error.__cause__ from error
        raise ServiceUnavailable(
            error.code,
            f"{error.message} If no service is running, run `gate lake export --scope {scope.name}` first.",
        ) from error


def _print_slice(
    redecided: Redecided, policy: str, scope: Scope, changed: Mapping[str, Any], by: str | None, asked: _Slice
) -> None:
    body = redecided.body
    sliced = [
        *([f"of version {asked.version}"] if asked.version else []),
        *([f"that were {asked.verdict}"] if asked.verdict else []),
        *([f"from {asked.since} on" if asked.until is None else f"from {asked.since}"] if asked.since else []),
        *([f"until {asked.until}"] if asked.until else []),
        *(["by when they occurred"] if asked.clock == Clock.OCCURRED.value and (asked.since or asked.until) else []),
    ]
    changes = [f"{name} {'left out' if value is ABSENT else f'= {_said(value)}'}" for name, value in changed.items()]
    others = [f"with {' and '.join(changes)}"] if changes else []
    others += [] if by is None else [f"decided by version {by}"]
    say(f"{' '.join([f'Decisions of {policy} in {scope.name}', *sliced])}, {', '.join(others)}:")
    if not body["decisions"]:
        say("There are no such decisions.")
        return
    for line in _found(redecided):
        say(line, style="bold")
    if body["unknown"]:
        say(f"The facts of {body['unknown']:,} more are unknown.", style="yellow")
    if body["needs_input"]:
        say(f"{failing(body)}.", style="yellow")
    if body["unread"]:
        unread = ", ".join(body["unread"])
        say(f"No rulebook of these decisions reads {unread}, so this change has no effect.", style="yellow")
    _print_tables(redecided)
    say("Outcomes are those of the original decisions. The outcome of another verdict is unknown.")


def _found(redecided: Redecided) -> list[str]:
    """Lines with the numbers of decisions that would change or be approved, and the verdicts of undecided cases."""
    body, told, lines = redecided.body, redecided.told, []
    if "history" not in body["coverage"]:
        lines = [
            f"{body['verdict_changed']:,} of {counted(told, 'decision')} would get another verdict; "
            f"{body['changed']:,} would change in verdict, action, reason or rule."
        ]
    elif told or not body["redecided"]:
        cases = counted(told, "imported case")
        lines = [f"{body['verdict_changed']:,} of {cases} would get another verdict than in the file."]
    return [*lines, *filter(None, [without_verdict(body)]), *approvals(body)]


def _print_tables(redecided: Redecided) -> None:
    metrics, moved, transitions = redecided.metrics, [*redecided.verdicts, *redecided.untold], redecided.transitions
    if moved:
        say("")
        columns = ["was", "would be", "decisions"]
        columns += [column for name in metrics for column in (f"with {name}", "sum")]
        sums = [[cell for name in metrics for cell in _worth(each.worth.get(name))] for each in moved]
        rows = zip(moved, sums, strict=True)
        table(columns, [[each.was, each.then, f"{each.decisions:,}", *cells] for each, cells in rows])
    if transitions:
        say("")
        shown_rows = [
            [
                f"{each['verdict']}, {decided_by(each['rule'])}",
                f"{each['then_verdict']}, {decided_by(each['then_rule'])}",
                f"{each['decisions']:,}",
                each["decision_ids"][0],
            ]
            for each in transitions[:_TRANSITIONS_SHOWN]
        ]
        table(["was, by", "would be, by", "decisions", "one of them"], shown_rows)
        more = len(transitions) - len(shown_rows)
        if more:
            say(f"There are {counted(more, 'more row')}; --json prints them.")
        say("")


def _worth(worth: tuple[int, float] | None) -> list[str]:
    return ["-", "-"] if worth is None else [f"{worth[0]:,}", amount(worth[1])]
