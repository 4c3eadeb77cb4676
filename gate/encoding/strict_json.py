"""Reads the JSON that the protocol accepts: I-JSON (RFC 7493). It refuses doubtful input instead of repairing it.

"Reading JSON" in `docs/reference/wire-format/json.md` lists the refused input:

- malformed JSON, repeated names in an object, NaN, and Infinity
- numbers that overflow or underflow a double, or lose digits in it
- integers beyond 2^53-1, unless they are the canonical text of their double
- lone surrogates, and invalid UTF-8
- too many values or levels

A parser that silently repairs a value could turn a refusal into an approval: it may use the last of two equal names,
or read `1e400` as infinity.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn, TypeAlias

import rfc8785

from gate.errors import MaterialRefused

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A JSON value that has not been checked yet."""

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object that has not been checked yet."""

MAX_SAFE_INTEGER: Final = 2**53 - 1
MAX_REQUEST_DEPTH: Final = 32
MAX_VERIFY_DEPTH: Final = 64
MAX_REQUEST_VALUES: Final = 125_000
"""The maximum of commas and opening brackets in a request. A value needs 2 bytes of a request, but 50 of memory."""
MAX_VALUES: Final = 1_000_000
"""The same maximum for documents of the service. A record with its request and two reports never exceeds it."""

_MARKS: Final = (b",", b"[", b"{")
# Stored text no longer escapes them.
_ESCAPED: Final = (b"\\u002c", b"\\u002C", b"\\u005b", b"\\u005B", b"\\u007b", b"\\u007B")

# The longest integer that is a double's canonical text has 21 digits: ECMAScript writes 1e21 with an exponent.
_LONGEST_INTEGER: Final = 22


def parse(body: bytes, *, max_depth: int = MAX_REQUEST_DEPTH, max_values: int = MAX_REQUEST_VALUES) -> Any:
    """Reads one JSON text strictly.

    Args:
        body: The bytes of the text, UTF-8 without a byte order mark.
        max_depth: The maximum number of levels of arrays and objects. `[[]]` has 2.
        max_values: The maximum number of commas and opening brackets, including those in strings.

    Returns:
        A `Json` value. Integers within 2^53-1 are `int`, and accepted integers beyond them are `float`. Its type is
        open, because the caller wrote the text or checks it with a schema (`record: Record = parse(...)`).

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`, with the fault and its place in the message.
    """
    return _read(_DECODER, body, max_depth, max_values)


def parse_with_any_number(body: bytes) -> Any:
    """Reads a request like `parse`, but reads any number as the nearest double, which may be infinite.

    The numbers may differ from the sent ones, so use it only if the result does not depend on them.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`, with the fault and its place in the message.
    """
    return _read(_NEAREST, body, MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES)


def _read(decoder: json.JSONDecoder, body: bytes, max_depth: int, max_values: int) -> Any:
    if exceeds_values(body, most=max_values):
        raise _refused(f"The body contains more than {max_values} commas and brackets; send fewer values at a time.")
    try:
        value = decoder.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refused(f"The body is not valid UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise _refused(f"The body is not JSON: {what} at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise _too_deep(max_depth) from error
    if exceeds_depth(body, value, max_depth):
        raise _too_deep(max_depth)
    if b"\\ud" in body or b"\\uD" in body:
        _refuse_lone_surrogates(value)
    return value


def parse_document(body: bytes) -> Any:
    """Reads a document of the service, such as a record or packet, like `parse` but with higher limits.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`, with the fault and its place in the message.
    """
    return parse(body, max_depth=MAX_VERIFY_DEPTH, max_values=MAX_VALUES)


def exceeds_values(*texts: bytes, most: int = MAX_VALUES) -> bool:
    """Whether JSON texts together contain more than `most` commas and opening brackets, including those in strings."""
    if sum(map(len, texts)) <= most:
        return False
    return sum(text.count(mark) for text in texts for mark in _MARKS + _ESCAPED * (b"\\u00" in text)) > most


def exceeds_depth(body: bytes, value: Json, most: int) -> bool:
    """Whether the value of a JSON text has more than `most` levels of arrays and objects."""
    # The number of opening brackets is an upper bound of the depth, so most bodies need no further check.
    return body.count(b"{") + body.count(b"[") > most and nests_deeper(value, most)


def nests_deeper(value: Json, most: int) -> bool:
    """Whether a value has more than `most` levels of arrays and objects. `[[]]` has 2."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(most):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, _CONTAINERS)
        ]
        if not level:
            return False
    return True


# A tuple: a union would be created again for each value.
_CONTAINERS: Final = (dict, list)


def require_depth(value: Json, most: int) -> None:
    """Requires that a value has at most `most` levels of arrays and objects.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`.
    """
    if nests_deeper(value, most):
        raise _too_deep(most)


def _refused(message: str) -> MaterialRefused:
    return MaterialRefused("SVC_API_JSON_INVALID", message)


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _too_deep(max_depth: int) -> MaterialRefused:
    return _refused(f"The body nests deeper than {max_depth} levels of arrays and objects; flatten it.")


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _refused(f"The field {_shown(name)!r} appears twice in one object; remove one of the two.")
            seen.add(name)
    return members


def _integer(token: str) -> int | float:
    if len(token) <= _LONGEST_INTEGER:
        value = int(token)
        # A longer token is accepted only if its double is written with the same digits: 2^53 is, but 2^53 + 1 would
        # silently become 2^53. Hashed values are therefore always the sent ones.
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return value
        if rfc8785.dumps(float(token)) == token.encode():
            return float(token)
    raise _refused(
        f"The integer {_shown(token)} is beyond 2^53-1 and would lose digits; send it as a string or a smaller number."
    )


def _fraction(token: str) -> float:
    # Before any arithmetic: exact arithmetic over a token that fills a body would take minutes.
    if len(token) > _LONGEST_FRACTION:
        raise _refused(
            f"The number {_shown(token)} has {len(token)} characters; write it in at most {_LONGEST_FRACTION}."
        )
    value = float(token)
    if math.isinf(value):
        raise _refused(f"The number {_shown(token)} is too large for a double; send a smaller number.")
    # Every decimal of at most 15 digits identifies one normal double: most numbers need no exact arithmetic.
    if (len(token) <= _SHORT and abs(value) >= _NORMAL) or repr(value) == token or _stands_for(token, value):
        return value
    raise _refused(
        f"The number {_shown(token)} would be changed to {value!r}; send at most 17 digits, or send it as a string."
    )


# %.17g of the smallest double takes 24 characters, its %f without any loss 1,077.
_LONGEST_FRACTION: Final = 1_100
_SHORT: Final = 16
_NORMAL: Final = 1e-300
_DECIMAL: Final = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")


def _stands_for(token: str, value: float) -> bool:
    """Whether a decimal differs from its double by at most half the weight of its last non-zero digit, exactly.

    The output of every correct printer does: the shortest form, `%.17g`, `%.20f`, trailing zeros. A number that lost
    digits or became 0 does not. See "Reading JSON" in docs/reference/wire-format/json.md.
    """
    parts = _DECIMAL.fullmatch(token)
    if parts is None:
        return False
    whole, fraction, exponent = parts.groups()
    digits = (whole + (fraction or "")).lstrip("0")
    significant = digits.rstrip("0")
    if not significant or value == 0:
        return not significant
    # The double is finite and not 0, so the exponent is small.
    weight = int(exponent or "0") - len(fraction or "") + len(digits) - len(significant)
    above, below = abs(value).as_integer_ratio()
    if weight >= 0:
        unit: int = 10**weight * below
        return 2 * abs(int(significant) * unit - above) <= unit
    power: int = 10**-weight
    return 2 * abs(int(significant) * below - above * power) <= below


def _constant(token: str) -> NoReturn:
    raise _refused(f"{token} is not JSON; leave the field out or send a number.")


def _refuse_lone_surrogates(value: Json) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError as error:
                raise _refused("A string contains half of a surrogate pair; send whole characters.") from error
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


# Built once: json.loads would build a scanner for every call that names hooks.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def _nearest(token: str) -> int | float:
    value = float(token)
    return int(token) if abs(value) <= MAX_SAFE_INTEGER else value


_NEAREST: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_nearest, parse_float=float, parse_constant=_constant
)
