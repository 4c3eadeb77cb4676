"""Canonical JSON `json.sort_deep.v1` (RFC 8785, JCS) and the content hash built on it.

    content_hash({"b": 1.0, "a": [true]})  ==  SHA-256 hex of  {"a":[true],"b":1}

The `rfc8785` package defines every byte. For values that `is_plain` accepts, `orjson` writes the same bytes ten times
faster. Nearly all values in production are plain. The tests compare both libraries on random values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import orjson
import rfc8785

from gate.encoding.strict_json import MAX_SAFE_INTEGER, Json
from gate.errors import MaterialRefused


def canonical(value: object, *, plain: bool = False) -> bytes:
    """The canonical UTF-8 bytes of a JSON value.

    Args:
        value: The value: nested `dict` with `str` keys, `list`, `str`, `int`, `float`, `bool` and `None`.
        plain: Whether `is_plain` is known to be true for it, so that it need not be checked again.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: the value is not I-JSON. It contains NaN, Infinity, an integer beyond
            2^53-1, a lone surrogate, or a type that JSON does not have.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if plain else _by_parts(value)
    except (rfc8785.CanonicalizationError, orjson.JSONEncodeError, UnicodeError, RecursionError) as error:
        raise MaterialRefused("SVC_API_JSON_INVALID", f"The value has no canonical JSON: {error}.") from error


def _by_parts(value: Any) -> bytes:
    """The canonical bytes, so that one number that is not plain does not slow down everything else."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return orjson.dumps(value)
    if kind is float and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        # The usual reason why a value is not plain: 0.0 or 1.0. -0.0 is 0, too.
        return b"%d" % int(value)
    if is_plain(value):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if kind is list:
        return b"[%s]" % b",".join(map(_by_parts, value))
    if kind is dict and all(type(name) is str for name in value) and "".join(value).isascii():
        # ASCII names sort alike by code point, UTF-8 byte and UTF-16 code unit; RFC 8785 requires the last.
        return b"{%s}" % b",".join(orjson.dumps(name) + b":" + _by_parts(value[name]) for name in sorted(value))
    return rfc8785.dumps(value)


def content_hash(value: object, *, plain: bool = False) -> str:
    """H(value): the lower-case hex SHA-256 of the canonical bytes, without prefix. `plain` is as for `canonical`."""
    # Called eleven times for each decision, so plain values go straight to the library.
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if plain else canonical(value)
    return hashlib.sha256(text).hexdigest()


def is_hash_of(expected: object, value: object) -> bool:
    """Whether H(value) is the expected hash.

    Raises:
        MaterialRefused: As `canonical`.
    """
    # Checking whether a value is plain takes longer than hashing it. Bytes with this hash are the canonical bytes from
    # which it was computed, so a value with these bytes is the original value.
    with suppress(orjson.JSONEncodeError):
        if content_hash(value, plain=True) == expected:
            return True
    return content_hash(value) == expected


def compact(value: object) -> object:
    """The value without fields and items that are null, "", {} or [], recursively. `false` and 0 stay.

    It also removes containers that become empty, but always returns the outermost value. It is `compact(x)` in
    `docs/reference/wire-format/json.md`.
    """
    if isinstance(value, dict):
        # Most objects contain only text.
        if all(value.values()) and _TEXT.issuperset(map(type, value.values())):
            return value
        members = {}
        for name, item in value.items():
            kept = item if type(item) is str else compact(item)
            if kept or not is_empty(kept):
                members[name] = kept
        return members
    if isinstance(value, list):
        return [item for item in map(compact, value) if item or not is_empty(item)]
    return value


def with_integers(value: Json) -> Json:
    """The same JSON value with integers instead of integral doubles within 2^53-1.

    `4.0` and `4` are the same JSON number, so the canonical bytes do not change. Use it before code that distinguishes
    them. The value must not nest deeper than `strict_json.parse` allows.
    """
    # Plain values contain no integral double.
    return value if is_plain(value) else _with_integers(value)


def plain_form(value: Json) -> tuple[Json, bool]:
    """The result of `with_integers` for a value that is not plain, and whether that result is plain, as most are."""
    value = _with_integers(value)
    return value, is_plain(value)


def _with_integers(value: Json) -> Json:
    if type(value) is float:
        # Beyond 2^53-1, an integer would have digits that the double does not have. -0.0 becomes 0, as in JCS.
        return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value
    if type(value) is dict:
        return {name: _with_integers(item) for name, item in value.items()}
    return [_with_integers(item) for item in value] if type(value) is list else value


def is_empty(value: object) -> bool:
    """Whether a value is null, "", {} or []."""
    return value is None or (isinstance(value, _MAY_BE_EMPTY) and not value)


# A tuple: a union would be created again in each of millions of calls.
_MAY_BE_EMPTY: Final = (str, dict, list)
_TEXT: Final = frozenset({str})


# Between these bounds both write a non-integral double in plain digits; beyond them orjson's exponents differ.
_PLAIN_MIN: Final = 1e-4
_PLAIN_MAX: Final = 1e15
# More than any document has.
_MOST_CONTAINERS: Final = 2_000_000


def is_plain(value: object) -> bool:
    """Whether `orjson` is known to write the same bytes for a value as RFC 8785 requires.

    All parts of a plain value are plain. Objects of plain parts, texts, `true`, `false`, null and small integers are
    plain if their names are ASCII. These are not plain:

    - non-ASCII names, which `orjson` sorts by UTF-8, and JCS by UTF-16
    - integral or extreme doubles (`1.0`, `1e20`)
    - integers beyond 2^53-1
    - Python types that `orjson` converts

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID`: it contains itself, or more objects and lists than any document has.
    """
    return plain_depth(value) is not None


def plain_depth(value: object, *, ascii_names: bool = False) -> int | None:
    """How deep the objects and lists of a plain value nest, or None if it is not plain, as `is_plain` defines it.

    Args:
        value: The value.
        ascii_names: Whether every name in it is known to be an ASCII text.

    Raises:
        MaterialRefused: As `is_plain`.
    """
    level: list[Iterable[Any]] = [(value,)]
    depth, seen = -1, 0
    while level:
        depth += 1
        seen += len(level)
        if seen > _MOST_CONTAINERS:
            raise MaterialRefused(
                "SVC_API_JSON_INVALID", "The value has no canonical JSON: it contains itself, or too many values."
            )
        below: list[Iterable[Any]] = []
        for items in level:
            for item in items:
                kind = type(item)
                if kind is str or kind is bool or item is None:
                    continue
                if kind is dict:
                    if not (ascii_names or _has_ascii_names(item)):
                        return None
                    below.append(item.values())
                elif kind is list:
                    below.append(item)
                elif kind is int:
                    if not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
                        return None
                elif kind is not float or not _PLAIN_MIN <= abs(item) < _PLAIN_MAX or item.is_integer():
                    return None
        level = below
    return depth


def _has_ascii_names(value: dict[Any, object]) -> bool:
    try:
        return "".join(value).isascii()
    except TypeError:
        return False
