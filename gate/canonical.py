"""Canonical JSON `json.sort_deep.v1` (RFC 8785, JCS) and the content hash built on it.

    content_hash({"b": 1.0, "a": [true]})  ==  SHA-256 hex of  {"a":[true],"b":1}

The `rfc8785` package is the judge of every byte. orjson writes the same bytes ten times faster for the values that
`is_plain` admits, which are nearly all that production sends; the tests compare the two on whatever hypothesis
makes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import orjson
import rfc8785

from gate.errors import MaterialRefused
from gate.strict_json import MAX_SAFE_INTEGER


def canonical(value: Any, *, plain: bool = False) -> bytes:
    """The canonical UTF-8 bytes of a JSON value.

    Args:
        value: dict with str keys, list, str, int, float, bool or None, nested.
        plain: Whether `is_plain` is known to hold for it, so that it need not be looked through again.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the value is not I-JSON (NaN, Infinity, an integer beyond 2^53-1, a lone
            surrogate, or a type that JSON does not have).
    """
    try:
        if plain or is_plain(value):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, orjson.JSONEncodeError, UnicodeError, RecursionError) as error:
        raise MaterialRefused("SVC_API_JSON_INVALID", f"The value has no canonical JSON: {error}.") from error


def content_hash(value: Any, *, plain: bool = False) -> str:
    """H(value): the lower-case hex SHA-256 of the canonical bytes, without prefix; `plain` as `canonical` takes it."""
    return hashlib.sha256(canonical(value, plain=plain)).hexdigest()


def compact(value: Any) -> Any:
    """The value without members and items that are null, "", {} or [], recursively; `false` and 0 stay.

    A container left empty is dropped by its parent; the outermost value is always returned.
    """
    if isinstance(value, dict):
        members = {}
        for name, item in value.items():
            kept = compact(item) if isinstance(item, dict | list) else item
            if kept or not is_empty(kept):
                members[name] = kept
        return members
    if isinstance(value, list):
        return [item for item in map(compact, value) if item or not is_empty(item)]
    return value


def is_empty(value: Any) -> bool:
    """Whether a value is null, "", {} or []."""
    return value is None or (isinstance(value, str | dict | list) and not value)


# Between these bounds both write a non-integral double in plain digits; beyond them orjson's exponents differ.
_PLAIN_MIN: Final = 1e-4
_PLAIN_MAX: Final = 1e15


def is_plain(value: Any) -> bool:
    """Whether orjson is known to write the bytes that RFC 8785 asks for; then it is so for every part, and for what is
    made of plain parts, text, `true`, `false`, null and small integers under ASCII names.

    Not for non-ASCII member names (orjson sorts by UTF-8, JCS by UTF-16), integral or extreme doubles (`1.0`, `1e20`),
    integers beyond 2^53-1 (to be refused), or Python types that orjson would quietly convert.
    """
    stack: list[Iterable[Any]] = [(value,)]
    while stack:
        for item in stack.pop():
            kind = type(item)
            if kind is str or kind is bool or item is None:
                continue
            if kind is dict:
                try:
                    if not "".join(item).isascii():
                        return False
                except TypeError:
                    return False
                stack.append(item.values())
            elif kind is list:
                stack.append(item)
            elif kind is int:
                if not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
                    return False
            elif kind is not float or not _PLAIN_MIN <= abs(item) < _PLAIN_MAX or item.is_integer():
                return False
    return True
