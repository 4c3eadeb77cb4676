"""JSON that this service wrote and reads again, which nearly always is exactly as it was written.

    value, plain = parse_stored(body)      the value that strict_json.parse_document gives, five times as fast

orjson wrote the text, and what orjson reads of it and writes again is the same text. So it repeats no member and holds no
number that a double would change: the strict parser would find nothing to refuse. Anything else is left to that parser.
"""

from __future__ import annotations

from typing import Any

import orjson

from gate.encoding.canonical import is_plain
from gate.encoding.strict_json import MAX_VERIFY_DEPTH, exceeds_depth, exceeds_values, parse_document


def parse_stored(body: bytes) -> tuple[Any, bool]:
    """Reads a JSON text that was stored.

    Returns:
        The value, and whether it is known to be plain, as `canonical.is_plain` has it.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID, as `strict_json.parse_document`.
    """
    try:
        value = orjson.loads(body)
        same = orjson.dumps(value) == body
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        same = False
    if same and is_plain(value) and not exceeds_values(body) and not exceeds_depth(body, value, MAX_VERIFY_DEPTH):
        return value, True
    return parse_document(body), False
