"""JSON that this service wrote and reads again, which nearly always is exactly as it was written.

    value = parse_stored(body)             the value that strict_json.parse_document gives, five times as fast
    value, plain = parse_plain(body)       the same, as hashes want it

orjson wrote the text, and what orjson reads of it and writes again is the same text. So it repeats no member, and each
of its numbers is the shortest form of a double or an integer within 2^53-1: the strict parser would find nothing to
refuse, and would read the same. Anything else is left to that parser.
"""

from __future__ import annotations

from typing import Any

import orjson

from gate.encoding.canonical import plain_depth, plain_form
from gate.encoding.strict_json import MAX_VERIFY_DEPTH, exceeds_depth, exceeds_values, parse_document


def parse_stored(body: bytes) -> Any:
    """Reads a JSON text that was stored.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID, as `strict_json.parse_document`.
    """
    value, same = _as_written(body)
    return value if same and not exceeds_depth(body, value, MAX_VERIFY_DEPTH) else parse_document(body)


def parse_plain(body: bytes) -> tuple[Any, bool]:
    """Reads a JSON text that was stored, with integers where it has integral doubles (`canonical.with_integers`).

    Returns:
        The value, and whether it is plain, as `canonical.is_plain` has it.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID, as `strict_json.parse_document`.
    """
    value, same = _as_written(body)
    # One look through the value tells both, where it is plain.
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
