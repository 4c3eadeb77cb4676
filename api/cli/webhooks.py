"""`gate webhooks`: the endpoints that receive a scope's events, and their failed deliveries."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from api.cli.confirmation import Yes, confirm
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, minute, print_json, records, say, table
from gate.clock import utc_now
from gate.errors import OperatorError
from gate.ids import parse_timestamp, timestamp
from gate.instance.instance import Instance
from gate.ledger.webhooks.deliveries import Delivery
from gate.ledger.webhooks.endpoints import Endpoint
from gate.records.webhooks.types import EVENT_TYPES, types_of
from gate.services.webhooks.secrets import ROTATION

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Send events of a scope to webhook endpoints, and replay failed deliveries.",
)

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="The id, from `gate webhooks list`.")]


@app.command()
def add(
    url: Annotated[str, typer.Argument(help="The URL to send events to, such as https://hooks.example.com/gate.")],
    scope: Annotated[str, typer.Option(help="The scope whose events are sent.")],
    events: Annotated[
        str, typer.Option(help=f"The types of events, separated by commas: {', '.join(EVENT_TYPES)}. Default: all.")
    ] = ",".join(EVENT_TYPES),
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Add an endpoint, and print the secret that its receiver verifies deliveries with.

    The endpoint gets later events. It also gets the open anomalies and the latest checkpoint, unless the endpoints of
    the scope got them before.
    """
    types = [each.strip() for each in events.split(",") if each.strip()]
    now = utc_now()
    with instance_at(home, database_url) as instance:
        endpoint = instance.webhooks.add(instance.ledger.directory.scope(scope), url, types, now)
        secret = instance.webhooks.secrets(endpoint, now)[0]
    if as_json:
        print_json({**_shown(endpoint), "secret": secret})
        return
    say(f"Added the endpoint {endpoint.endpoint_id} to the scope {endpoint.scope}. Its receiver verifies with:")
    say(secret)
    say(f"Try it with `gate webhooks test {endpoint.endpoint_id}`.")


@app.command("list")
def list_endpoints(
    scope: Annotated[str | None, typer.Option(help="List only the endpoints of this scope.")] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List endpoints, with their undelivered events. A URL can contain a token of the receiver."""
    with instance_at(home, database_url) as instance:
        scope_id = None if scope is None else instance.ledger.directory.scope(scope).scope_id
        found = [_with_backlog(instance, endpoint) for endpoint in instance.ledger.endpoints.all(scope_id)]
    if as_json:
        print_json({"endpoints": found})
    elif found:
        names = (*_LISTED, "new", "pending", "dead")
        records(
            [name.replace("_at", " (UTC)") for name in names], [[_cell(of, name) for name in names] for of in found]
        )
    else:
        say("There are no webhook endpoints; add one with `gate webhooks add`.")


@app.command("test")
def send_test(
    endpoint: EndpointId, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Send an endpoint the event webhook.test now: 0 delivered, 1 not delivered, with the reason."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        answer = instance.webhooks.test(found, utc_now())
    milliseconds = round(1000 * answer.seconds)
    if as_json:
        taken = answer.error is None
        shown = {"delivered": taken, "status": answer.status, "error": answer.error, "milliseconds": milliseconds}
        print_json(shown)
    elif answer.error is None:
        say(f"Delivered: the endpoint answered {answer.status} after {milliseconds} ms.", style="green")
    else:
        gone = f" {_GONE_NOW if found.disabled_at is None else _GONE_BEFORE}" if answer.is_gone else ""
        say(f"Not delivered after {milliseconds} ms. {answer.error}{gone}", style="red")
    raise typer.Exit(0 if answer.error is None else 1)


@app.command()
def disable(
    endpoint: EndpointId, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Stop sending to an endpoint for now. Its events are collected for as long as the outbox keeps them."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        changed = instance.ledger.endpoints.disable(found, utc_now())
    done = "is disabled" if changed else "was already disabled; nothing changed"
    _say_changed(endpoint, changed, f"The endpoint {endpoint} {done}.", as_json)


@app.command()
def enable(
    endpoint: EndpointId, home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Resume sending to an endpoint, starting with its collected and failed events."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        changed = instance.ledger.endpoints.enable(found, utc_now())
    done = "is enabled" if changed else "was already enabled; nothing changed"
    _say_changed(endpoint, changed, f"The endpoint {endpoint} {done}.", as_json)


@app.command()
def remove(
    endpoint: EndpointId,
    yes: Yes = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Remove an endpoint with its undelivered events. This cannot be undone."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        confirm(f"Removes the endpoint {endpoint} of the scope {found.scope}.", yes=yes)
        instance.ledger.endpoints.remove(found, utc_now())
    _say_changed(endpoint, True, f"Removed the endpoint {endpoint}.", as_json)


@app.command()
def secret(
    endpoint: EndpointId,
    rotate: Annotated[
        bool,
        typer.Option(
            "--rotate", help="Create a new secret. For 24 hours both secrets sign, and you cannot rotate again."
        ),
    ] = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show the secret of an endpoint, or rotate it."""
    now = utc_now()
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        if rotate:
            found = instance.webhooks.rotate(found, now)
        secrets = instance.webhooks.secrets(found, now)
    if as_json:
        before = secrets[1] if len(secrets) > 1 else None
        until = found.rotated_until if before else None
        print_json({"endpoint_id": endpoint, "secret": secrets[0], "previous": before, "previous_until": until})
        return
    say(secrets[0])
    if rotate:
        say(f"Give it to the receiver within {ROTATION.total_seconds() / 3600:g} hours; until then both secrets sign.")


@app.command()
def dead(
    endpoint: EndpointId,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The number of deliveries to show.")] = 50,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """List the failed deliveries of an endpoint: dead ones, and those that wait for a retry."""
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        failed = instance.ledger.dead_letters.failed(found, limit=limit)
    if as_json:
        print_json({"endpoint_id": endpoint, "deliveries": [_delivery(of) for of in failed]})
    elif failed:
        columns = ["event", "type", "state", "tries", "next try (UTC)", "last error"]
        rows = [(of.event_id, of.type, of.state, of.attempts, minute(of.next_at), of.last_error) for of in failed]
        table(columns, rows, wraps=("last error",))
    else:
        say(f"The endpoint {endpoint} has no failed deliveries.")


@app.command()
def replay(
    endpoint: EndpointId,
    event: Annotated[str | None, typer.Option(help="Send one event, delivered or not, by its id.")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Send every event since a UTC time, such as 2027-01-31T09:30:00Z, delivered or not."),
    ] = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Send an endpoint its dead and waiting deliveries now. With `--event` or `--since`, send those events instead, if
    they are newer than the endpoint.
    """
    if event is not None and since is not None:
        raise OperatorError("WEBHOOK_REPLAY_INVALID", "Give --event or --since, not both.")
    with instance_at(home, database_url) as instance:
        found = instance.ledger.endpoints.find(endpoint)
        number = instance.ledger.dead_letters.replay(found, utc_now(), event_id=event, since=_moment(since))
    if as_json:
        print_json({"endpoint_id": endpoint, "replayed": number})
        return
    disabled = f" once the endpoint is enabled: `gate webhooks enable {endpoint}`" if found.disabled_at else ""
    say(f"{counted(number, 'event')} will be sent again{disabled}.")


_GONE_NOW = "The test did not disable the endpoint, but a 410 to a real event does."
_GONE_BEFORE = "The endpoint was disabled before the test, and still is."
_LISTED = ("endpoint_id", "scope", "url", "events", "status", "created_at", "delivered_at")


def _with_backlog(instance: Instance, endpoint: Endpoint) -> dict[str, Any]:
    backlog = instance.ledger.dead_letters.backlog(endpoint)
    return {**_shown(endpoint), "new": backlog.new, "pending": backlog.pending, "dead": backlog.dead}


def _shown(endpoint: Endpoint) -> dict[str, Any]:
    disabled = f"disabled ({endpoint.disabled_by})"
    return {
        "endpoint_id": endpoint.endpoint_id,
        "scope": endpoint.scope,
        "url": endpoint.url,
        "events": list(types_of(endpoint.events)),
        "status": "active" if endpoint.disabled_at is None else disabled,
        "created_at": endpoint.created_at,
        "disabled_at": endpoint.disabled_at,
        "delivered_at": endpoint.delivered_at,
    }


def _cell(shown: dict[str, Any], name: str) -> object:
    value = shown[name]
    if name.endswith("_at"):
        return minute(value)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _delivery(delivery: Delivery) -> dict[str, Any]:
    names = ("event_id", "type", "subject", "state", "attempts", "created_at", "next_at", "last_at")
    return {
        **{name: getattr(delivery, name) for name in names},
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
    }


def _say_changed(endpoint: str, changed: bool, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json({"endpoint_id": endpoint, "changed": changed})
    else:
        say(sentence)


def _moment(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return timestamp(parse_timestamp(text))
    except ValueError as error:
        raise OperatorError("WEBHOOK_REPLAY_INVALID", f"--since cannot be read: {error}") from error
