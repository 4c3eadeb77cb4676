"""`gate client`: inspect a guard's intent store, deliver its reports, and settle actions with an unknown end."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from api.cli.options import Json
from api.cli.output import print_json, records, say, table
from gate.client import Client, Delivery, Intent, Report, SqliteStore, State, connection
from gate.client.client import TIMEOUT
from gate.client.guard.recovery import Settled, known_intent, settle, status_of
from gate.client.store.sqlite import Found, found_at
from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Inspect a guard's intent store, deliver waiting reports, and settle actions whose end is unknown.",
)

StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        envvar=connection.INTENTS,
        help="The file of the guard's intent store. The first guarded block creates it.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--url", envvar=connection.URL, help="The address of the service, for example https://gate.example."),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help=f"A file with an API key that may report. Default: the file in {connection.KEY_FILE}, or the key in "
        f"{connection.KEY}.",
        show_default=False,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(min=0.001, max=3600, help="The time limit of each report with all its retries, in seconds."),
]
IntentId = Annotated[str, typer.Argument(metavar="INTENT_ID", help="The id of the intent, from `gate client status`.")]

# Nobody reads a longer list; of the rest, the status says only that there is more.
_MOST: Final = 10_000

# The commands themselves report what the client logs, escaped so that it cannot steer a terminal.
logging.getLogger("gate.client").addHandler(logging.NullHandler())


@app.command()
def flush(
    again: Annotated[bool, typer.Option("--again", help="Also retry reports that the service refused before.")] = False,
    timeout: Timeout = TIMEOUT,
    store: StoreFile = None,
    url: Url = None,
    key_file: KeyFile = None,
    as_json: Json = False,
) -> None:
    """Deliver the waiting reports in order: 0 all delivered, 1 some wait or were refused, 2 the command failed."""
    with _opened(store) as opened:
        delivery = _delivered(opened, url, key_file, timeout=timeout, again=again)
        waiting, refused = opened.undelivered(_MOST), opened.set_aside(_MOST)
    shown = {**_shown_delivery(delivery), "waiting": len(waiting), "refused": [_shown_report(each) for each in refused]}
    if as_json:
        print_json(shown)
    else:
        _say_delivery(delivery, waiting)
        _say_refused(refused)
    raise typer.Exit(1 if waiting or delivery.refused or delivery.failure else 0)


@app.command()
def status(store: StoreFile = None, as_json: Json = False) -> None:
    """Show what needs a person: 0 nothing, 1 something, 2 the command failed.

    An action that started and whose end is unknown needs a person, and so does a report that the service refused.
    Waiting reports do not: the next process that uses the store delivers them, or `gate client flush`. Actions that are
    held for review wait for their owner.
    """
    with _opened(store) as opened:
        held, started, waiting, refused = (
            opened.listed([State.HELD], _MOST),
            opened.listed([State.STARTED], _MOST),
            opened.undelivered(_MOST),
            opened.set_aside(_MOST),
        )
    unknown = [intent for intent in started if intent.told is None]
    in_review = [intent for intent in held if _is_in_review(intent)]
    is_all = max(map(len, (held, started, waiting, refused))) < _MOST
    fine = is_all and not unknown and not refused
    if as_json:
        oldest = waiting[0].told_at if waiting else None
        print_json(
            {
                "needs_a_person": not fine,
                "started": [_shown_start(intent) for intent in unknown],
                "in_review": [_shown_review(intent) for intent in in_review],
                "waiting": {"reports": len(waiting), "oldest_told_at": oldest},
                "refused": [_shown_report(report) for report in refused],
                "complete": is_all,
            }
        )
    else:
        _say_unknown(unknown)
        _say_in_review(in_review)
        _say_waiting(waiting)
        _say_refused(refused)
        if not is_all:
            say(f"There are more: only the first {_MOST} of each kind were examined.", style="yellow")
        if fine:
            say("Nothing needs a person.", style="green")
    raise typer.Exit(0 if fine else 1)


@app.command()
def show(intent_id: IntentId, store: StoreFile = None, as_json: Json = False) -> None:
    """Show the latest attempt of an intent with its request, record, report and resolution, and a summary of earlier
    attempts.
    """
    with _opened(store) as opened:
        intent = known_intent(opened, intent_id)
        before = opened.attempts(intent_id, _MOST)[1:]
    if as_json:
        print_json({**_shown(intent), "before": [_shown_before(each) for each in before]})
        return
    table(["", ""], [[name, value] for name, value in _lines(intent) if value is not None])
    _say_before(before)
    if not intent.asked:
        say("Its request, record and report were removed with `gate client forget`.")
    if intent.state is State.STARTED and intent.told is None:
        say(f"Its end is unknown: find out, then record it with `gate client settle {intent_id}`.", style="yellow")


@app.command("settle")
def settle_intent(
    intent_id: IntentId,
    executed: Annotated[bool, typer.Option("--executed", help="The action was executed.")] = False,
    not_executed: Annotated[
        bool, typer.Option("--not-executed", help="The action was not executed, and no process is executing it.")
    ] = False,
    result: Annotated[
        str | None, typer.Option(help="What you found out, in 1 to 2,000 characters. It becomes part of the report.")
    ] = None,
    store: StoreFile = None,
    url: Url = None,
    key_file: KeyFile = None,
    as_json: Json = False,
) -> None:
    """Record the end of an action that started and whose end is unknown, or was reported as failed or skipped.

    First make sure that no process is still executing the action: an unknown end does not mean that it ended.

    With `--not-executed` the action may start again: the next retry of the guard asks the gate again. THE ACTION
    HAPPENS TWICE if it was executed after all, or if a process is still executing it. This command cannot stop that
    process. Its report is then recorded in addition to this one.

    With `--executed` on an action that was reported as failed, such as a payment that timed out, the command adds a
    second receipt, and the action does not start again.

    The report is stored for delivery. It is delivered at once if you give the address of the service and a key.
    """
    if executed == not_executed:
        raise OperatorError("USAGE_INVALID", "Give either --executed or --not-executed.")
    reachable = bool(url) and _has_key(key_file)
    if reachable:
        # Unusable arguments are found before anything is changed.
        connection.service_url(url)
        connection.api_key(None, _key_file(key_file)).reveal()
    with _opened(store) as opened:
        settled = settle(opened, intent_id, executed=executed, result=result)
        delivery = _delivered(opened, url, key_file) if reachable and settled.report is not None else None
    if as_json:
        print_json(
            {
                "intent_id": intent_id,
                "attempt": settled.intent.attempt,
                "executed": executed,
                "reported": settled.report is not None,
                "next_attempt": None if settled.following is None else settled.following.attempt,
                "delivery": None if delivery is None else _shown_delivery(delivery),
            }
        )
        return
    _say_settled(settled, delivery)


@app.command()
def forget(
    before: Annotated[
        str,
        typer.Option(
            help="Remove actions that ended before this date and time in UTC, such as 2027-01-31T00:00:00Z. "
            "A date alone is refused."
        ),
    ],
    store: StoreFile = None,
    as_json: Json = False,
) -> None:
    """Remove the requests, records, and reports of actions that were reported or superseded before a date and time.

    The store still remembers that each intent existed and ended, so no action starts again. Actions with a waiting or
    refused report are kept complete.
    """
    limit = _date(before)
    with _opened(store) as opened:
        forgotten = opened.forget(limit)
    if as_json:
        print_json({"before": limit, "forgotten": forgotten})
    else:
        attempts = "1 attempt" if forgotten == 1 else f"{forgotten} attempts"
        say(f"Removed the requests, records and reports of {attempts} from before {limit}.")


@contextmanager
def _opened(path: Path | None) -> Iterator[SqliteStore]:
    """A store that is there already: nothing here may make one."""
    if path is None:
        raise OperatorError(
            "INTENTS_MISSING",
            f"No store was given; give its file with --store, or set {connection.INTENTS}.",
        )
    try:
        is_there = path.exists()
        is_store = is_there and found_at(path) is Found.STORE
    except OSError as error:
        raise OperatorError("FILE_UNREADABLE", f"{path} cannot be read: {error.strerror}.") from error
    if not is_there:
        raise OperatorError(
            "INTENTS_MISSING",
            f"{path} does not exist. The first guarded block creates it. If it existed before, give the file that the "
            f"guarded process uses, its {connection.INTENTS}.",
        )
    if not is_store:
        raise OperatorError(
            "INTENTS_MISSING",
            f"{path} is not a guard's intent store; give the file that the guarded process uses, its "
            f"{connection.INTENTS}.",
        )
    with SqliteStore(path) as store:
        yield store


def _delivered(
    store: SqliteStore, url: str | None, key_file: Path | None, *, timeout: float = TIMEOUT, again: bool = False
) -> Delivery:
    # The client's own sentences name a program's arguments, not the options.
    if not url:
        raise OperatorError(
            "SERVICE_URL_INVALID",
            f"No address of the service was given; give it with --url, or set {connection.URL}.",
        )
    with Client(url, key_file=_key_file(key_file), store=store, timeout=timeout) as client:
        try:
            return client.flush(again=again)
        except OperatorError as error:
            if error.code != "API_KEY_MISSING":
                raise
            raise OperatorError(
                error.code,
                f"No API key was given; give its file with --key-file, or set {connection.KEY_FILE} or "
                f"{connection.KEY}.",
            ) from error


def _has_key(key_file: Path | None) -> bool:
    return key_file is not None or any(os.environ.get(name) for name in (connection.KEY, connection.KEY_FILE))


def _key_file(path: Path | None) -> Path | None:
    if path is not None and connection._KEY_LIKE.match(str(path)):
        raise OperatorError(
            "API_KEY_INVALID",
            "--key-file takes a file name, but its value looks like a key. Others can read keys on a command line: "
            "rotate this one.",
        )
    return path


def _date(text: str) -> str:
    try:
        return timestamp(parse_timestamp(text))
    except ValueError as error:
        raise OperatorError(
            "DATE_INVALID", f"{text!r} is not a date and time in UTC; write it as 2027-01-31T00:00:00Z."
        ) from error


def _shown(intent: Intent) -> dict[str, object]:
    return {
        "intent_id": intent.intent_id,
        "attempt": intent.attempt,
        "state": intent.state.value,
        "asked_at": intent.asked_at,
        "started_at": intent.started_at,
        "request": intent.request if intent.asked else None,
        "record": intent.record,
        "resolution": intent.resolution,
        "execution": intent.execution,
    }


def _shown_before(intent: Intent) -> dict[str, object]:
    execution: Mapping[str, object] = intent.execution or {}
    return {
        "attempt": intent.attempt,
        "decision_id": _decision_id(intent),
        "asked_at": intent.asked_at,
        "started_at": intent.started_at,
        "execution_status": status_of(intent),
        "execution_result": execution.get("execution_result"),
    }


def _is_in_review(intent: Intent) -> bool:
    """Whether an attempt waits for its owner, as far as the store knows: the last look may be long ago."""
    return intent.record is not None and intent.record["verdict"] == "review" and intent.resolution is None


def _shown_start(intent: Intent) -> dict[str, object]:
    return {**_shown_action(intent), "started_at": intent.started_at}


def _shown_review(intent: Intent) -> dict[str, object]:
    return {**_shown_action(intent), "asked_at": intent.asked_at}


def _shown_action(intent: Intent) -> dict[str, object]:
    context = intent.request["context"]
    return {
        "intent_id": intent.intent_id,
        "attempt": intent.attempt,
        "decision_id": _decision_id(intent),
        "action": context["requested_action"],
        "target": {
            "system": context["target_system"],
            "object_id": context["target_object_id"],
            "mutation": context.get("mutation"),
        },
    }


def _shown_report(report: Report) -> dict[str, object]:
    return {
        "intent_id": report.intent_id,
        "attempt": report.attempt,
        "kind": report.kind,
        "decision_id": report.decision_id,
        "told_at": report.told_at,
        "why": report.refused,
    }


def _shown_delivery(delivery: Delivery) -> dict[str, object]:
    failure = delivery.failure
    return {
        "delivered": delivery.delivered,
        "set_aside": delivery.refused,
        "failure": None if failure is None else {"error": failure.code, "message": failure.message},
        "foreign": delivery.foreign,
    }


def _decision_id(intent: Intent) -> str | None:
    return None if intent.record is None else str(intent.record["decision_id"])


def _lines(intent: Intent) -> Iterator[tuple[str, object]]:
    yield "intent", intent.intent_id
    yield "attempt", intent.attempt
    yield "state", intent.state.value
    if intent.asked:
        context = intent.request["context"]
        yield "action", context["requested_action"]
        yield "target", _target(context)
    yield "asked", intent.asked_at
    record: Mapping[str, object] = intent.record or {}
    yield "decision", record.get("decision_id")
    yield "verdict", record.get("verdict")
    yield "reason", record.get("reason_code")
    resolution: Mapping[str, object] = intent.resolution or {}
    yield "review", resolution.get("resolution")
    yield "resolved", resolution.get("recorded_at")
    yield "resolved by", resolution.get("resolved_by")
    yield "note", resolution.get("note")
    yield "started", intent.started_at
    execution: Mapping[str, object] = intent.execution or {}
    yield "ended", execution.get("executed_at")
    yield "ended as", status_of(intent)
    yield "result", execution.get("execution_result")


def _say_before(attempts: Sequence[Intent]) -> None:
    if not attempts:
        return
    say("Earlier attempts:")
    rows = [list(_shown_before(each).values()) for each in attempts]
    records(["attempt", "decision", "asked", "started", "ended as", "result"], rows)


def _target(context: Mapping[str, object]) -> str:
    named = (context.get(name) for name in ("target_system", "target_object_id", "mutation"))
    return " ".join(str(part) for part in named if part is not None)


def _say_unknown(intents: Sequence[Intent]) -> None:
    if not intents:
        return
    say(
        f"Actions with an unknown end: {len(intents)}. Find out, then record it with `gate client settle`.", style="red"
    )
    rows = [[*_in_cells(intent), intent.started_at] for intent in intents]
    records(["intent", "decision", "action", "target", "started"], rows)


def _say_in_review(intents: Sequence[Intent]) -> None:
    if not intents:
        return
    say(f"Actions held for review: {len(intents)}. After a grant, continue each with client.resume(intent).")
    rows = [[*_in_cells(intent), intent.asked_at] for intent in intents]
    records(["intent", "decision", "action", "target", "asked"], rows)


def _in_cells(intent: Intent) -> list[object]:
    context = intent.request["context"]
    return [intent.intent_id, _decision_id(intent), context["requested_action"], _target(context)]


def _say_waiting(waiting: Sequence[Report]) -> None:
    if waiting:
        say(f"Waiting reports: {len(waiting)}, the oldest from {waiting[0].told_at}.")


def _say_refused(refused: Sequence[Report]) -> None:
    if not refused:
        return
    say(
        f"Refused reports: {len(refused)}. Fix the cause, then retry with `gate client flush --again`.",
        style="red",
    )
    rows = [[each.intent_id, each.decision_id, each.kind, each.told_at, _in_a_line(each.refused)] for each in refused]
    records(["intent", "decision", "report", "made", "refused"], rows)


def _say_delivery(delivery: Delivery, waiting: Sequence[Report]) -> None:
    say(f"Delivered: {delivery.delivered}. Refused: {delivery.refused}. Still waiting: {len(waiting)}.")
    if delivery.failure is not None:
        say(f"The service does not accept reports now: {_in_a_line(str(delivery.failure))}", style="red")
    if delivery.foreign:
        say("Some belong to another scope than this key: deliver them with a key of that scope.", style="yellow")


def _say_settled(settled: Settled, delivery: Delivery | None) -> None:
    intent, following = settled.intent, settled.following
    if following is None:
        say(f"The action of {intent.intent_id} is recorded as executed. It does not begin again.")
    else:
        say(
            f"The action of {intent.intent_id} is recorded as not executed. A retry asks for attempt "
            f"{following.attempt}."
        )
    before = status_of(intent)
    if settled.report is not None and before is not None:
        say(f"It was reported as {before} before. That report stays, and the receipt `executed` is added.")
    if settled.report is None:
        say(f"Nothing more is reported, because it was reported as {before} before.")
    elif delivery is None:
        say("The report is stored. Run `gate client flush` to deliver it.")
    elif delivery.failure is not None:
        why = _in_a_line(str(delivery.failure))
        say(f"The report is stored, because the service does not accept it now: {why}", style="yellow")
    elif delivery.refused:
        say("The service refused some of the waiting reports; see `gate client status`.", style="yellow")
    elif delivery.foreign:
        say("The report is stored until you deliver it with a key of the scope that decided.", style="yellow")
    else:
        say("Delivered the report.")


def _in_a_line(text: str | None) -> str:
    return " ".join((text or "").split())
