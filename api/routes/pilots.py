"""The intake of pilots: submissions and confirmations for everyone, and a CSV export for operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Final

from flask import Blueprint, Response

from api.http.limits import PILOT_REQUESTS_PER_MINUTE, require_client_rate
from api.http.requests import MAX_PILOT_BODY, parse_body, read_body
from api.http.responses import json_response
from api.http.state import state
from api.routes.operations import require_metrics_token
from gate.clock import utc_now
from gate.encoding.csv_text import csv_row
from gate.encoding.strict_json import Json
from gate.instance.pilots import status_of
from gate.ledger.access.pilots import Pilot

blueprint = Blueprint("pilots", __name__)

_ACCEPTED: Final = 202
_COLUMNS: Final = ("pilot_id", "status", "submitted_at", "confirmed_at", "name", "email", "company", "use")


@blueprint.post("/api/pilot")
def submit() -> Response:
    """Stores a submission. The answer does not reveal earlier submissions."""
    body = _body("pilot")
    return json_response({"pilot_id": state().instance.pilots.submit(body, utc_now()), "status": "pending"}, _ACCEPTED)


@blueprint.post("/api/pilot/confirm")
def confirm() -> Response:
    """Confirms a submission by its token."""
    state().instance.pilots.confirm(_body("pilot_confirm"), utc_now())
    return json_response({"status": "confirmed"})


@blueprint.get("/api/pilot-export")
def export() -> Response:
    """All submissions as CSV, for a spreadsheet."""
    require_metrics_token()
    pages = state().instance.pilots.pages()
    # Read before anything is answered, so that a ledger out of reach is an error and no file with headings alone.
    first = next(pages)
    return Response(
        _lines(chain([first], pages), utc_now()),
        content_type="text/csv; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="pilots.csv"'},
    )


def _body(purpose: str) -> Json:
    sent = read_body(MAX_PILOT_BODY)
    require_client_rate(purpose, PILOT_REQUESTS_PER_MINUTE)
    return parse_body(sent)


def _lines(pages: Iterable[list[Pilot]], now: datetime) -> Iterator[str]:
    yield csv_row(_COLUMNS)
    for page in pages:
        yield "".join(csv_row(_cells(pilot, now)) for pilot in page)


def _cells(pilot: Pilot, now: datetime) -> list[str]:
    told = {"status": status_of(pilot, now), "confirmed_at": pilot.confirmed_at or ""}
    return [told.get(name) or getattr(pilot, name) or "" for name in _COLUMNS]
