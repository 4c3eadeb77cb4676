"""`gate status`: the readiness, content, and growth of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import Final, TypedDict

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import counted, print_json, say, table
from api.http.readiness import Report, closed, readiness
from gate.clock import utc_now
from gate.errors import GateError, OperatorError
from gate.ids import first_id
from gate.instance.advisory import advisory_state
from gate.instance.instance import Instance, open_instance, require_instance
from gate.instance.settings import Settings, load_settings
from gate.ledger.access.authority import Scope

app = typer.Typer(add_completion=False)

_DAY: Final = timedelta(days=1)
# One day's growth says nothing about what lies further ahead.
_FORESEEABLE_DAYS: Final = 3 * 365


class ChainStatus(TypedDict):
    """The state of a scope's chain."""

    scope: str
    plan: str
    chain_id: str
    chain_size: int
    head_link_hash: str | None


class Storage(TypedDict):
    """The size and growth of the ledger. Some values are unknown on a remote disk, or without new entries."""

    location: str
    bytes: int
    disk_left_bytes: int | None
    entries: int
    entries_last_day: int
    growth_bytes_per_day: int
    days_left: int | None


@app.command()
def status(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show readiness, the chain of each scope, and the size and growth of the ledger: 0 ready, 1 degraded.

    Readiness covers what binding decisions need, without `trusted_adapters`, `policy_tables` and the advisory modes.
    The command tests the instance itself and asks no running service: `GET /api/decision/status` reports the workers.

    With `--json`, `storage` has the fields `location`, `bytes`, `disk_left_bytes` (null for PostgreSQL), `entries`,
    `entries_last_day`, `growth_bytes_per_day`, and `days_left`. `days_left` is the number of days until the disk is
    full, if every day is like the last one.
    """
    settings = load_settings(home, database_url=database_url)
    require_instance(settings.home)
    report, chains, storage = _look(settings)
    shown = {**report, "backends": {**report["backends"], "note": _advisory(settings)}}
    if as_json:
        print_json({**shown, "home": str(settings.home), "storage": storage, "scopes": chains})
    else:
        where = f": {storage['location']}" if storage else ""
        say(f"{report['status']}{where}", style="green" if report["ok"] else "red")
        parts = {name: part for name, part in shown.items() if isinstance(part, dict) and "ready" in part}
        table(
            ["part", "ready", "reason"],
            [
                [name, "yes" if part["ready"] else "no", part.get("reason") or part.get("note")]
                for name, part in parts.items()
            ],
            wraps=("reason",),
        )
        if storage:
            say("")
            table(
                ["scope", "plan", "chain", "entries", "head"],
                [[*list(found.values())[:-1], _shortened(found["head_link_hash"])] for found in chains],
                wraps=("scope",),
            )
            say("")
            _say_storage(storage)
    raise typer.Exit(0 if report["ok"] else 1)


def _advisory(settings: Settings) -> str:
    """How the advisory modes stand, and where they are unavailable why: a caller of the service never sees that."""
    state, why = advisory_state(settings)
    return f"advisory {state}" if why is None else f"advisory {state}: {why}"


def _shortened(link_hash: str | None) -> str | None:
    """The beginning of a hash, to compare by eye; --json prints all of it."""
    return None if link_hash is None else f"{link_hash[:12]}..."


def _look(settings: Settings) -> tuple[Report, list[ChainStatus], Storage | None]:
    """The readiness of an instance, each scope's chain, and its storage, as far as they can be read."""
    try:
        instance = open_instance(settings)
    except OperatorError as error:
        # Problems that an operator mends with another command or setting are not states of the service.
        if error.code != "DATABASE_UNREACHABLE":
            raise
        return closed(settings, error.message), [], None
    with closing(instance):
        report = readiness(instance)
        try:
            scopes = instance.ledger.directory.scopes()
            chains = [_chain(instance, scope) for scope in scopes]
            return report, chains, _storage(instance, scopes, sum(chain["chain_size"] for chain in chains))
        except GateError:
            return report, [], None


def _chain(instance: Instance, scope: Scope) -> ChainStatus:
    head = instance.ledger.entries.head(scope.scope_id)
    return {
        "scope": scope.name,
        "plan": scope.plan,
        "chain_id": scope.chain_id,
        "chain_size": head.size,
        "head_link_hash": head.link_hash,
    }


def _storage(instance: Instance, scopes: Sequence[Scope], entries: int) -> Storage:
    """What the ledger takes, and for how many days the disk lasts if every day is as the last one."""
    ledger = instance.ledger
    size, left = ledger.store.size(), ledger.store.disk_left()
    since = first_id("dec", utc_now() - _DAY)
    last_day = sum(ledger.entries.count_since(scope.scope_id, since) for scope in scopes)
    growth = size * last_day // entries if entries else 0
    return {
        "location": ledger.store.location,
        "bytes": size,
        "disk_left_bytes": left,
        "entries": entries,
        "entries_last_day": last_day,
        "growth_bytes_per_day": growth,
        "days_left": left // growth if left is not None and growth else None,
    }


def _say_storage(storage: Storage) -> None:
    left, days = storage["disk_left_bytes"], storage["days_left"]
    sentences = [
        f"{counted(storage['entries'], 'entry', 'entries')} in {_size(storage['bytes'])}; the last day added "
        f"{storage['entries_last_day']}, "
        f"about {_size(storage['growth_bytes_per_day'])}.",
        "The disk belongs to the database server." if left is None else f"{_size(left)} are left on the disk.",
    ]
    if days is not None and days <= _FORESEEABLE_DAYS:
        sentences.append(f"At this rate the disk is full in {days} {'day' if days == 1 else 'days'}.")
    say(" ".join(sentences))


def _size(count: int) -> str:
    amount, unit = float(count), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
