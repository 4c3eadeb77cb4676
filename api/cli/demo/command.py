"""`gate demo`: a new instance with a year of made-up decisions.

This module also creates the demo scope of `gate serve --demo`: plan unlimited, a key in the home directory, and the
product's own rulebooks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer

from api.cli.demo.ledger import DemoPlan, Made, key_file, make_ledger, owner_key_file, scenario
from api.cli.options import Json
from api.cli.output import print_json, progress, say, table
from gate.clock import utc_now
from gate.errors import AccessRefused, OperatorError, RulebookRefused
from gate.instance.instance import Instance
from gate.instance.keys import write_private
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.rulebooks import bundles
from gate.rulebooks.patterns import find_pattern

SCOPE: Final = "demo"
KEY_FILE: Final = "demo.key"
WHOLE: Final = "demo.json"
"""What a whole demo holds, in its home directory."""

app = typer.Typer(add_completion=False)

_COLUMNS: Final = {
    "decision": "decisions",
    "resolution": "resolutions",
    "execution": "executions",
    "outcome": "outcomes",
    "crm_sync": "crm_syncs",
}
# With fewer, incidents are a handful of decisions.
_SHOWING: Final = 10_000
# As many as the scenario has names for.
_MOST_PEERS: Final = 50
# Ids count the milliseconds since 1970.
_FIRST_UNTIL: Final = date(1972, 1, 1)


@app.command()
def demo(
    decisions: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="The number of decisions, without their reports.")
    ] = 20_000,
    seed: Annotated[
        int, typer.Option(min=0, help="The seed of the random data; the same seed gives the same year.")
    ] = 1,
    home: Annotated[Path, typer.Option(help="The directory of the new instance. GATE_HOME does not change it.")] = Path(
        "var-demo"
    ),
    until: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="The year ends before this day, in UTC. Default: today."),
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Leave out the incidents.")] = False,
    peers: Annotated[
        int,
        typer.Option(min=0, max=_MOST_PEERS, help="The number of additional, smaller companies to compare with."),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Create a new instance with a year of synthetic decisions and reports of four companies, and three incidents.

    The ledger is always `ledger.db` in that directory. A directory that contains an instance or part of one is refused.
    """
    plan = DemoPlan(decisions, seed, _end(until), clean, peers)
    started = time.perf_counter()
    with progress("Decisions", plan.total, as_json=as_json) as told:
        made = make_ledger(home, plan, told)
    seconds = time.perf_counter() - started
    serve = f"{shlex.quote(_program())} serve --port 8081 --home {shlex.quote(str(home))}"
    report = _told(home, plan, made, serve)
    _keep(home / WHOLE, report)
    if as_json:
        print_json(report)
        return
    total = sum(sum(each.entries.values()) for each in made)
    say(
        f"Made {plan.total} decisions, with {total - plan.total} resolutions and reports, in {seconds:.1f} "
        f"seconds: the year before {plan.until:%Y-%m-%d}, in the new instance {home.absolute()}."
    )
    rows = [[each.scope, *(each.entries[name] for name in _COLUMNS), key_file(home, each.scope)] for each in made]
    table(["scope", "decisions", "resolutions", "executions", "outcomes", "CRM syncs", "key"], rows)
    say(_planted(plan))
    say(f"Serve it: {serve}")


def _planted(plan: DemoPlan) -> str:
    if plan.clean:
        return "It contains no incident."
    told = "docs/guides/make-a-demo.md describes the three planted incidents."
    return told if plan.decisions >= _SHOWING else f"{told} In such a small ledger, chance may hide them."


def _program() -> str:
    """How this command is called, to be pasted: as it was, where it is not on the path."""
    called = sys.argv[0]
    return called if Path(called).name == "gate" and shutil.which("gate") != called else "gate"


def _keep(file: Path, made: Mapping[str, object]) -> None:
    """Writes down what was made, last of all: where it is missing, making the demo was interrupted."""
    try:
        write_private(file, orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise OperatorError("INSTANCE_UNWRITABLE", f"{file} cannot be written: {error.strerror}.") from error


def _told(home: Path, plan: DemoPlan, made: list[Made], serve: str) -> dict[str, object]:
    return {
        "home": str(home),
        "seed": plan.seed,
        "clean": plan.clean,
        "peers": plan.peers,
        "from": f"{plan.start:%Y-%m-%d}",
        "until": f"{plan.until:%Y-%m-%d}",
        "scopes": [
            {
                "scope": each.scope,
                **{column: each.entries[name] for name, column in _COLUMNS.items()},
                "key_file": str(key_file(home, each.scope)),
                "owner_key_file": str(owner_key_file(home, each.scope)) if scenario().owners(each.scope) else None,
            }
            for each in made
        ],
        "serve": serve,
    }


def _end(until: str | None) -> datetime:
    """Midnight of a day, in UTC: the end of the year before it."""
    today = datetime.now(UTC).date()
    try:
        day = today if until is None else datetime.strptime(until, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError as error:
        raise OperatorError("DATE_INVALID", f"{until!r} is not a date; write --until 2027-01-31.") from error
    if not _FIRST_UNTIL <= day <= today:
        raise OperatorError(
            "DATE_INVALID",
            f"--until {day} must be from {_FIRST_UNTIL} to today, {today}; the year ends before that day.",
        )
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def demo_key_file(instance: Instance) -> Path:
    """Returns the file with a working key of the demo scope. Creates the scope, key, and rulebooks if necessary."""
    scope = _scope(instance)
    _register(instance, scope)
    file = instance.settings.home / KEY_FILE
    if not _works(instance, file):
        key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
        file.unlink(missing_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(f"{key}\n")
    return file


def _register(instance: Instance, scope: Scope) -> None:
    """Registers the product's rulebooks, each with the adapter that its published pattern uses, if any."""
    sources = instance.gate().sources
    released = {adapter.name: adapter for adapter in sources.adapters.adapters}
    for rulebook in bundles.active_rulebooks():
        dependency = None
        pattern = find_pattern(rulebook.rulebook_id)
        asked: Any = None if pattern is None else pattern["decision_request_template"].get("adapter")
        if asked is not None:
            adapter = released.get(f"{asked['adapter_id']}@{asked['version']}")
            if adapter is None:
                # Its files are damaged. Without it, the registration would have the wrong source of facts for good.
                continue
            dependency = adapter.dependency
        try:
            sources.register(scope.scope_id, rulebook, dependency)
        except RulebookRefused as refused:
            # An older demo registered it without the adapter, and a registration never changes.
            if refused.code != "RULEBOOK_VERSION_CONFLICT":
                raise


def _scope(instance: Instance) -> Scope:
    directory = instance.ledger.directory
    try:
        return directory.scope(SCOPE)
    except OperatorError:
        return directory.create_scope(SCOPE, "unlimited", utc_now())


def _works(instance: Instance, file: Path) -> bool:
    try:
        instance.ledger.directory.authenticate(file.read_text().strip(), utc_now())
    except (FileNotFoundError, AccessRefused):
        return False
    return True
