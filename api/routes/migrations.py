"""The migrations and routes of the caller's scope, read-only. People change them with `gate migrate`."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import accepted, query_choice, query_entry_cursor, query_integer, query_text
from api.http.responses import json_response
from api.http.state import state
from gate.decisions.migrations.documents import migration_summary, routes_document
from gate.errors import FieldError, NotFound, RequestRefused
from gate.ledger.access.authority import Authority
from gate.migration.standing import STATES
from gate.policy.questions import MigrationReportQuestion

blueprint = Blueprint("migrations", __name__)

_HISTORY: Final = 20

JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown"
HTML: Final = "text/html"
_PAGES: Final = {MARKDOWN: "markdown", HTML: "html"}

# No script, nothing from elsewhere, and no frame around it. A style inside the page can load nothing either.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@blueprint.get("/api/decision/routes")
def list_routes() -> Response:
    """The active route of each rulebook id, or all routes of the rulebook id in `rulebook_id`."""
    authority = authenticate("read")
    rulebook_id = query_text("rulebook_id")
    limit = query_integer("limit", None, lowest=1, highest=1000)
    if rulebook_id is None and limit is not None:
        raise _limit_alone()
    routes = state().migrations.routes(authority, rulebook_id)
    document = routes_document(routes)
    if rulebook_id is not None:
        document["history"] = routes.get(rulebook_id, [])[::-1][: limit or _HISTORY]
    return json_response(document)


@blueprint.get("/api/decision/migrations")
def list_migrations() -> Response:
    """A page of the scope's migrations, those proposed last first."""
    authority = authenticate("read")
    wanted = query_choice("state", STATES)
    limit, before = query_integer("limit", default=20, lowest=1, highest=1000), query_entry_cursor("mig")
    found = [
        of
        for of in state().migrations.migrations(authority)
        if wanted in (None, of.state) and (before is None or of.proposed["migration_entry_id"] < before)
    ]
    page = found[:limit]
    return json_response(
        {
            "count": len(page),
            "migrations": [migration_summary(of) for of in page],
            "next_cursor": page[-1].proposed["migration_entry_id"] if len(found) > limit else None,
        }
    )


@blueprint.get("/api/decision/migrations/<migration_id>")
def get_migration(migration_id: str) -> Response:
    """A migration with its manifest, all entries about it, and whether its evidence is stale."""
    authority = authenticate("read")
    migrations = state().migrations
    stored = migrations.find(authority, migration_id)
    if stored is None:
        raise _not_found()
    return json_response(migrations.document(authority, stored))


@blueprint.get("/api/decision/migrations/<migration_id>/report")
def get_report(migration_id: str) -> Response:
    """The evidence of a migration's latest proposal: the stored document, or a page in Markdown or HTML."""
    authority = authenticate("read")
    media_type = accepted(JSON, MARKDOWN, HTML)
    if media_type in _PAGES:
        return _page(authority, migration_id, media_type)
    stored = state().migrations.find(authority, migration_id)
    if stored is None:
        raise _not_found()
    return json_response(stored.evidence, headers={"vary": "accept"})


def _page(authority: Authority, migration_id: str, media_type: str) -> Response:
    # Asked here as well: whether there is such a migration does not depend on what draws its report.
    if state().migrations.standing(authority, migration_id) is None:
        raise _not_found()
    question = MigrationReportQuestion(migration_id=migration_id, format=_PAGES[media_type])
    text = str(state().reports.answer(authority.scope_id, question)["text"])
    response = Response(text, content_type=f"{media_type}; charset=utf-8", headers={"vary": "accept"})
    if media_type == HTML:
        response.headers["content-security-policy"] = _POLICY
        response.headers["referrer-policy"] = "no-referrer"
    return response


def _limit_alone() -> RequestRefused:
    what = "is missing; send it with limit, the number of its routes to list."
    fault = FieldError("rulebook_id", "required", f"It {what}")
    return RequestRefused("SVC_API_QUERY_INVALID", f"The query parameter rulebook_id {what}", [fault])


def _not_found() -> NotFound:
    return NotFound(
        "SVC_MIGRATION_NOT_FOUND", "This scope has no migration with that id; check the id and the API key."
    )
