"""The published contract: JSON Schemas, conformance fixtures and the golden replay corpus."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, request

from api.http.responses import json_response
from gate.contract.published import published
from gate.errors import NotFound

blueprint = Blueprint("contract", __name__)

CACHE_CONTROL: Final = "public, max-age=3600"


# Without the slash at the end these are other paths, not redirects to these.
@blueprint.get("/schemas/", strict_slashes=False)
@blueprint.get("/schemas/<name>.schema.json")
@blueprint.get("/conformance/", strict_slashes=False)
@blueprint.get("/conformance/<fixture_id>.json")
@blueprint.get("/replay/", strict_slashes=False)
@blueprint.get("/replay/<file>.json")
def published_document(**_: str) -> Response:
    """A document of the contract, or 304 if the caller's `if-none-match` has its current tag.

    Raises:
        NotFound: `SVC_API_NOT_FOUND`.
    """
    found = published().get(request.path)
    if found is None:
        raise NotFound(
            "SVC_API_NOT_FOUND",
            "The contract has no document with that name; /schemas/ and the other indexes list them.",
        )
    response = json_response(found.document)
    response.headers["cache-control"] = CACHE_CONTROL
    response.set_etag(found.hash)
    response.make_conditional(request)
    return response
