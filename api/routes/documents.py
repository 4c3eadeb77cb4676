"""The service's description for generators (`/openapi.json`), for programs (`/docs.json`), and for people (`/docs`)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from flask import Blueprint, Response, current_app, request

from api import description
from api.description.documents import Documents, make_documents
from api.http.state import state

blueprint = Blueprint("documents", __name__, template_folder=str(Path(description.__file__).parent / "templates"))

_CACHE_CONTROL: Final = "public, max-age=3600"


@blueprint.get("/")
def root() -> Response:
    """Redirects browsers to the page."""
    return Response(status=302, headers={"location": "/docs"})


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """The OpenAPI 3.1 document."""
    return _document(_documents().openapi, "application/json")


@blueprint.get("/docs.json")
def summary() -> Response:
    """A summary of endpoints, schemas, rate limits, and sizes."""
    return _document(_documents().summary, "application/json")


@blueprint.get("/docs")
def page() -> Response:
    """The OpenAPI document as a page, which loads nothing and runs no script."""
    found = _documents()
    response = _document(found.page, "text/html; charset=utf-8")
    response.headers["content-security-policy"] = found.policy
    response.headers["referrer-policy"] = "no-referrer"
    return response


def _documents() -> Documents:
    """The application's documents, made when one of them is first asked for."""
    made = current_app.extensions.get("gate.documents")
    if not isinstance(made, Documents):
        made = make_documents(state().instance.settings.base_url, current_app.jinja_env)
        current_app.extensions["gate.documents"] = made
    return made


def _document(body: bytes, content_type: str) -> Response:
    response = Response(body, content_type=content_type, headers={"cache-control": _CACHE_CONTROL})
    response.set_etag(hashlib.sha256(body).hexdigest())
    response.make_conditional(request)
    return response
