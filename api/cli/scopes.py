"""`gate scopes`: the accounts that own records."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import print_json, say, table
from gate.clock import utc_now
from gate.ids import timestamp
from gate.instance.instance import Instance
from gate.ledger.access.authority import PLANS, Scope
from gate.policy.peers import decided_in, earlier, month_of

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Create and show scopes, the accounts that own records, rulebooks, and keys. Scopes cannot be renamed or "
    "removed.",
)

benchmarks = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Opt a scope in to benchmarks, or out of them."
)
app.add_typer(benchmarks, name="benchmarks")

MonthlyCap = Annotated[
    int | None,
    typer.Option(
        min=0, help="The number of records per UTC month, instead of the number in the plan.", show_default=False
    ),
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The name of the scope.")],
    plan: Annotated[str, typer.Option(help=f"One of {', '.join(PLANS)}.")] = "starter",
    monthly_cap: MonthlyCap = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a scope with an empty audit chain.

    A name has 1 to 64 ASCII letters, digits, dots, underscores, and hyphens, starts with a letter or digit, and may not
    differ from another name only in case.
    """
    with instance_at(home, database_url, create=True) as instance:
        made = instance.ledger.directory.create_scope(name, plan, utc_now(), monthly_cap=monthly_cap)
        shown = _shown(instance, made)
    if as_json:
        print_json(shown)
    else:
        say(
            f"Created the scope {name} with the plan {plan}. Create a key for it with: gate keys create "
            f"--scope {shlex.quote(name)}"
        )


@app.command("plan")
def set_plan(
    name: Annotated[str, typer.Argument(help="The name of the scope.")],
    plan: Annotated[str, typer.Argument(help=f"One of {', '.join(PLANS)}.")],
    monthly_cap: MonthlyCap = None,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Change the plan of a scope. It applies from the next request on."""
    with instance_at(home, database_url) as instance:
        directory = instance.ledger.directory
        changed = directory.set_plan(directory.scope(name), plan, utc_now(), monthly_cap=monthly_cap)
        shown = _shown(instance, changed)
    if as_json:
        print_json(shown)
    else:
        cap = "no monthly cap" if changed.monthly_cap is None else f"{changed.monthly_cap} records a month"
        say(f"The scope {name} now has the plan {plan}: {cap}.")


@app.command("list")
def list_scopes(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List every scope."""
    with instance_at(home, database_url) as instance:
        shown = [_shown(instance, scope) for scope in instance.ledger.directory.scopes()]
    if as_json:
        print_json({"scopes": shown})
    else:
        columns = {
            "scope": "scope",
            "id in logs": "scope_id",
            "plan": "plan",
            "monthly cap": "monthly_cap",
            "used": "used_this_month",
            "entries": "chain_size",
            "benchmarks": "benchmarks",
        }
        table(list(columns), [[scope[name] for name in columns.values()] for scope in shown], wraps=("scope",))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The name of the scope.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show one scope."""
    with instance_at(home, database_url) as instance:
        shown = _shown(instance, instance.ledger.directory.scope(name))
    if as_json:
        print_json(shown)
    else:
        table(["", ""], shown.items())


@benchmarks.command("opt-in")
def opt_in(
    name: Annotated[str, typer.Argument(help="The name of the scope.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Opt a scope in to benchmarks from the next month on. Other scopes then see its rates, rounded and without its
    name.
    """
    _choose(name, home, database_url, opted_in=True, as_json=as_json)


@benchmarks.command("opt-out")
def opt_out(
    name: Annotated[str, typer.Argument(help="The name of the scope.")],
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Opt a scope out of benchmarks from the next month on."""
    _choose(name, home, database_url, opted_in=False, as_json=as_json)


def _choose(name: str, home: Path, database_url: str | None, *, opted_in: bool, as_json: bool) -> None:
    now = utc_now()
    with instance_at(home, database_url) as instance:
        found = instance.ledger.directory.scope(name)
        changed = instance.ledger.benchmarks.choose(found, now, opted_in=opted_in)
        shown = _shown(instance, found)
    month = earlier(month_of(now), -1)
    if as_json:
        print_json({**shown, "changed": changed, "from_month": month if changed else None})
    elif not changed:
        say(f"The scope {name} is already opted {'in to' if opted_in else 'out of'} benchmarks; nothing changed.")
    elif opted_in:
        say(
            f"The scope {name} takes part in benchmarks from {month} on. The benchmarks of {month} cover the "
            "decisions of "
            f"{decided_in(month)}."
        )
    else:
        say(
            f"The scope {name} takes no part in benchmarks from {month} on. Earlier months stay as they were published."
        )


def _used(instance: Instance, scope: Scope) -> int:
    return instance.ledger.entries.used(scope.scope_id, timestamp(utc_now())[:7])


def _shown(instance: Instance, scope: Scope) -> dict[str, object]:
    choice = instance.ledger.benchmarks.current(scope.scope_id)
    return {
        "scope": scope.name,
        "scope_id": scope.scope_id,
        "plan": scope.plan,
        "monthly_cap": scope.monthly_cap,
        "used_this_month": None if scope.monthly_cap is None else _used(instance, scope),
        "chain_id": scope.chain_id,
        "chain_size": instance.ledger.entries.head(scope.scope_id).size,
        "created_at": scope.created_at,
        "benchmarks": "opted_out" if choice is None or not choice.opted_in else "opted_in",
    }
