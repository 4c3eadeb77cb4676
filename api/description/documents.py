"""The documents that describe the service, in the form that it sends. They are made once for each application."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import orjson
from jinja2 import Environment

from api.description import docs
from api.description.openapi import assemble
from api.description.spec import Document
from api.errors import codes
from api.http.readiness import CONTRACTS
from gate.contract.published import published
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.rulebooks.patterns import patterns

_STYLE: Final = "docs.css"
_PAGE: Final = "docs.html"


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one application.

    Attributes:
        openapi: The OpenAPI document.
        summary: Endpoints, schemas, rate limits and sizes.
        page: The OpenAPI document laid out for people.
        policy: The content security policy of the page.
    """

    openapi: bytes
    summary: bytes
    page: bytes
    policy: str


def openapi_document(base_url: str) -> Document:
    """The OpenAPI document of a service.

    Args:
        base_url: Where callers reach it, without a trailing slash.
    """
    return assemble(_read, codes(), base_url=base_url)


@cache
def _read(path: str) -> Any:
    return parse(resources.path("schemas", *path.split("/")).read_bytes())


def make_documents(base_url: str, templates: Environment) -> Documents:
    """The documents of a service.

    Args:
        base_url: Where callers reach it, without a trailing slash.
        templates: The folder with `docs.html` and `docs.css`.
    """
    document = openapi_document(base_url)
    summary = docs.summary(document, published())
    style = templates.get_template(_STYLE).render()
    page = templates.get_template(_PAGE).render(
        page=docs.page(document), summary=summary, patterns=patterns(), contracts=CONTRACTS, style=style
    )
    # The page carries its own style. The policy admits exactly these bytes, so no other style or script runs in it.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Documents(orjson.dumps(document), orjson.dumps(summary), page.encode(), policy)
