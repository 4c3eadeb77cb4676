"""Checks the request of a report: its schema, its date, and that it has no credentials.

It must also have no empty parts that its hash would not cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import cast

from gate.encoding import resources
from gate.encoding.canonical import is_empty
from gate.encoding.credentials import credentials
from gate.encoding.shapes import MAX_ERRORS, shape, to_mend
from gate.encoding.strict_json import Json, JsonObject
from gate.errors import FieldError, RequestRefused, member
from gate.ids import event_fault, parse_timestamp
from gate.records.reports.receipts import Kind


def check_request(kind: Kind, body: object, now: datetime | None = None) -> JsonObject:
    """Requires that a body is a valid report of its kind, and returns it.

    It must contain nothing that looks like a credential, and no empty part in `mapped_fields`.

    Args:
        kind: The kind of the report.
        body: The parsed request body.
        now: The service's clock, which `occurred_at` must not be far ahead of. None accepts any time.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`.
    """
    errors = _shape_errors(kind, body)
    shaped = cast("JsonObject", body)
    if not errors:
        errors = [*credentials(shaped), *_unbound(shaped), *_date_errors(shaped, now)][:MAX_ERRORS]
    if errors:
        raise RequestRefused("SVC_API_REQUEST_INVALID", to_mend(f"The body is not {kind.called}", errors), errors)
    return shaped


def _shape_errors(kind: Kind, body: object) -> list[FieldError]:
    errors = shape(kind.request).errors(body)
    if not errors or not isinstance(body, dict):
        return errors
    # An empty field is the same as a missing one, whatever its schema requires.
    schema = resources.schema(kind.request)
    optional = schema["properties"].keys() - set(schema["required"])
    empty = {name for name, value in body.items() if name in optional and is_empty(value)}
    errors = shape(kind.request).errors({name: value for name, value in body.items() if name not in empty})
    errors += [FieldError(name, "empty", "It is empty; leave it out.") for name in empty]
    return sorted(errors, key=lambda error: (error.field, error.code))[:MAX_ERRORS]


def _date_errors(body: JsonObject, now: datetime | None) -> Iterator[FieldError]:
    try:
        # Text by the schema, which accepts times that the protocol cannot write, such as those outside its years.
        parse_timestamp(cast("str", body.get("executed_at", "2026-01-31T12:00:00.000Z")))
    except ValueError:
        yield FieldError("executed_at", "format", "It must be a time with its zone, such as 2026-01-31T12:00:00.000Z.")
    if "occurred_at" in body and (fault := event_fault(cast("str", body["occurred_at"]), now)) is not None:
        yield FieldError("occurred_at", *fault)


def _unbound(body: JsonObject) -> Iterator[FieldError]:
    """The parts that the hash of a CRM sync omits, so nobody could tell whether they were there."""
    for path in _empty_parts(body.get("mapped_fields", {}), "mapped_fields"):
        yield FieldError(path, "empty", "It is empty, and the report's hash does not cover empty values; leave it out.")


def _empty_parts(value: Json, path: str) -> Iterator[str]:
    parts: Iterable[tuple[str, Json]] = ()
    if isinstance(value, dict):
        parts = ((member(path, name), item) for name, item in value.items())
    elif isinstance(value, list):
        parts = ((f"{path}[{index}]", item) for index, item in enumerate(value))
    for place, item in parts:
        if is_empty(item):
            yield place
        else:
            yield from _empty_parts(item, place)
