"""Writes responses: JSON answers and their common headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from flask import Response

from api.http.state import noted
from gate.errors import FieldError

# A proxy may refuse a response with very long headers.
_MOST_WARNINGS: Final = 8
_BODILESS: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Answer(Response):
    """A JSON answer whose body is a single piece.

    The web server sends a list at once, and asks other iterables for one piece at a time. The answer stores the
    service's own headers separately, because the library would check each of them.
    """

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str] | None) -> None:
        """Takes the JSON text, the status, and additional headers."""
        super().__init__(body, status, content_type="application/json")
        self._told: list[tuple[str, str]] = [] if headers is None else [*headers.items()]

    def tell(self, headers: Iterable[tuple[str, str]]) -> None:
        """Adds headers that are known to be well-formed."""
        self._told += headers

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers as a `WSGI` application."""
        body = self.response
        if environ["REQUEST_METHOD"] == "HEAD" or self.status_code in _BODILESS or not isinstance(body, list):
            self.headers.extend(self._told)
            return super().__call__(environ, start_response)
        start_response(self.status, [*self.headers, *self._told])
        return body


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Makes an answer from a JSON value."""
    return Answer(orjson.dumps(body), status, headers)


def finish_response(response: Response) -> Response:
    """Adds the headers of every response, and those about the request's limits."""
    held = noted()
    headers = [
        ("x-request-id", held["caller_request_id"] or held["request_id"]),
        ("x-content-type-options", "nosniff"),
        *held.get("limit_headers", {}).items(),
    ]
    if not any(name.lower() == "cache-control" for name, _ in response.headers):
        headers.append(("cache-control", "no-store"))
    if isinstance(response, Answer):
        response.tell(headers)
    else:
        response.headers.extend(headers)
    return response


def confidence_headers(confidence: Mapping[str, object]) -> dict[str, str]:
    """The response headers for a record's `decision_confidence`, or for a confidence report."""
    return {
        "x-decision-confidence-score": str(confidence["score"]),
        "x-decision-confidence-level": str(confidence["level"]),
        "x-decision-confidence-hash": str(confidence["confidence_hash"]),
    }


def warnings_header(warnings: Sequence[FieldError]) -> dict[str, str]:
    """The header `x-rulebook-warnings`, such as `undeclared_field rules[0].condition.field, and 2 more`.

    Without warnings there is no header.
    """
    if not warnings:
        return {}
    shown = [f"{warning.code} {warning.field}" for warning in warnings[:_MOST_WARNINGS]]
    more = len(warnings) - len(shown)
    return {"x-rulebook-warnings": ", ".join(shown) + (f", and {more} more" if more else "")}
