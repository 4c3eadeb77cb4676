"""Reads JSON that this service wrote, which is nearly always unchanged.

    value = parse_stored(body)             the result of strict_json.parse_document, five times as fast
    value, plain = parse_plain(body)       the same in the form that hashes need

`orjson` wrote the text. If it reads the text and writes the same text again, the text has no repeated fields. Each of
its numbers is then an integer within 2^53-1 or the shortest form of a double. The strict parser would refuse nothing
and return the same value. This module passes any other text to that parser.
"""

from __future__ import annotations

from typing import Any

import orjson

from gate.encoding.canonical import plain_depth, plain_form
from gate.encoding.strict_json import MAX_VERIFY_DEPTH, exceeds_depth, exceeds_values, parse_document


def parse_stored(body: bytes) -> Any:
    """Reads a stored JSON text.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`, as `strict_json.parse_document`.
    """
    value, same = _as_written(body)
    return value if same and not exceeds_depth(body, value, MAX_VERIFY_DEPTH) else parse_document(body)


def parse_plain(body: bytes) -> tuple[Any, bool]:
    """Reads a stored JSON text, with integers instead of integral doubles (`canonical.with_integers`).

    Returns:
        The value, and whether it is plain, as `canonical.is_plain` defines it.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`, as `strict_json.parse_document`.
    """
    value, same = _as_written(body)
    # One pass through a plain value finds both.
    depth = plain_depth(value, ascii_names=body.isascii() and b"\\u" not in body) if same else None
    if depth is not None and depth <= MAX_VERIFY_DEPTH:
        return value, True
    if depth is None and same and not exceeds_depth(body, value, MAX_VERIFY_DEPTH):
        return plain_form(value)
    return plain_form(parse_document(body))


def _as_written(body: bytes) -> tuple[Any, bool]:
    try:
        value = orjson.loads(body)
        same = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER) == body
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None, False
    return value, same and not exceeds_values(body)
