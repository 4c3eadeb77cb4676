"""The service describes itself: to generators (/openapi.json), to programs (/docs.json), to people (/docs)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import orjson
from flask import Blueprint, Response, current_app, render_template, request

from api.description import docs
from api.description.openapi import assemble
from api.errors import codes
from api.http.readiness import CONTRACTS
from api.http.state import state
from gate.contract.published import published
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.rulebooks.patterns import patterns

blueprint = Blueprint("documents", __name__, template_folder="templates")

_STYLE: Final = "docs.css"
_CACHE_CONTROL: Final = "public, max-age=3600"


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one application, as they are sent."""

    openapi: bytes
    summary: bytes
    page: bytes
    policy: str


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """The OpenAPI 3.1 document."""
    return _document(_documents().openapi, "application/json")


@blueprint.get("/docs.json")
def summary() -> Response:
    """Endpoints, schemas, rate limits and sizes, in short."""
    return _document(_documents().summary, "application/json")


@blueprint.get("/docs")
def page() -> Response:
    """The OpenAPI document as a page, which loads nothing and runs no script."""
    found = _documents()
    response = _document(found.page, "text/html; charset=utf-8")
    response.headers["content-security-policy"] = found.policy
    response.headers["referrer-policy"] = "no-referrer"
    return response


def openapi_document(base_url: str) -> dict[str, Any]:
    """The OpenAPI document of a service.

    Args:
        base_url: Where callers reach it, without a trailing slash.
    """
    return assemble(_read, codes(), base_url=base_url)


@cache
def _read(path: str) -> Any:
    return parse(resources.path("schemas", *path.split("/")).read_bytes())


def _documents() -> Documents:
    """The application's documents, made when one of them is first asked for."""
    made = current_app.extensions.get("gate.documents")
    if not isinstance(made, Documents):
        made = current_app.extensions["gate.documents"] = _make(state().instance.settings.base_url)
    return made


def _make(base_url: str) -> Documents:
    document = openapi_document(base_url)
    summary = docs.summary(document, published())
    style = current_app.jinja_env.get_template(_STYLE).render()
    page = render_template(
        "docs.html", page=docs.page(document), summary=summary, patterns=patterns(), contracts=CONTRACTS, style=style
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Documents(orjson.dumps(document), orjson.dumps(summary), page.encode(), policy)


def _document(body: bytes, content_type: str) -> Response:
    response = Response(body, content_type=content_type, headers={"cache-control": _CACHE_CONTROL})
    response.set_etag(hashlib.sha256(body).hexdigest())
    response.make_conditional(request)
    return response
