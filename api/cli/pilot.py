"""`gate pilot`: the requests for a pilot that came over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from api.cli.confirmation import Yes, confirm
from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, instance_at
from api.cli.output import counted, minute, print_json, records, say
from gate.clock import utc_now
from gate.instance.pilots import PilotIntake, status_of
from gate.ledger.access.pilots import Pilot

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List and erase requests for a pilot, with the tokens that confirm them.",
)

_FIELDS = ("pilot_id", "status", "submitted_at", "confirmed_at", "name", "email", "company", "use", "token")


@app.command("list")
def list_pilots(home: Home = DEFAULT_HOME, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List submissions, oldest first, with the token that confirms each. Send the token to the person's email address.
    It is valid for 14 days.
    """
    now = utc_now()
    with instance_at(home, database_url) as instance:
        intake = instance.pilots
        found = [_shown(intake, pilot, now) for page in intake.pages() for pilot in page]
    if as_json:
        print_json({"pilots": found})
    elif found:
        records([name.replace("_at", " (UTC)").replace("_", " ") for name in _FIELDS], map(_row, found))
    else:
        say("There are no requests for a pilot.")


@app.command()
def erase(
    pilot_ids: Annotated[list[str], typer.Argument(metavar="PILOT_ID...", help="The ids of the submissions.")],
    yes: Yes = False,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Erase the given submissions, all or none. The service can keep running. This cannot be undone."""
    with instance_at(home, database_url) as instance:
        named = list(dict.fromkeys(pilot_ids))
        confirm(f"Erases {counted(len(named), 'submission')}.", yes=yes)
        instance.ledger.pilots.erase(named, utc_now())
    if as_json:
        print_json({"erased": named})
    else:
        say(f"Erased {counted(len(named), 'submission')}. Older backups and exported files still contain the data.")


def _shown(intake: PilotIntake, pilot: Pilot, now: datetime) -> dict[str, str | None]:
    status = status_of(pilot, now)
    return {
        "pilot_id": pilot.pilot_id,
        "status": status,
        "submitted_at": pilot.submitted_at,
        "confirmed_at": pilot.confirmed_at,
        "name": pilot.name,
        "email": pilot.email,
        "company": pilot.company,
        "use": pilot.use,
        "token": intake.token(pilot.pilot_id) if status == "pending" else None,
    }


def _row(shown: dict[str, str | None]) -> list[str | None]:
    return [minute(value) if name.endswith("_at") else value for name, value in shown.items()]
