"""Canonical JSON `json.sort_deep.v1` (RFC 8785, JCS) and the content hash built on it.

    content_hash({"b": 1.0, "a": [true]})  ==  SHA-256 hex of  {"a":[true],"b":1}

The `rfc8785` package is the judge of every byte. orjson writes the same bytes ten times faster for the values that
`is_plain` admits, which are nearly all that production sends; the tests compare the two on whatever hypothesis
makes.
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
        value: dict with str keys, list, str, int, float, bool or None, nested.
        plain: Whether `is_plain` is known to hold for it, so that it need not be looked through again.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: the value is not I-JSON (NaN, Infinity, an integer beyond 2^53-1, a lone
            surrogate, or a type that JSON does not have).
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if plain else _by_parts(value)
    except (rfc8785.CanonicalizationError, orjson.JSONEncodeError, UnicodeError, RecursionError) as error:
        raise MaterialRefused("SVC_API_JSON_INVALID", f"The value has no canonical JSON: {error}.") from error


def _by_parts(value: Any) -> bytes:
    """The canonical bytes, where one number that is not plain does not slow all the rest."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return orjson.dumps(value)
    if kind is float and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        # The usual reason why all of it is not plain, 0.0 or 1.0; -0.0 is 0 as well.
        return b"%d" % int(value)
    if is_plain(value):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if kind is list:
        return b"[%s]" % b",".join(map(_by_parts, value))
    if kind is dict and all(type(name) is str for name in value) and "".join(value).isascii():
        # ASCII names sort alike by code point, UTF-8 byte and UTF-16 code unit; RFC 8785 asks for the last.
        return b"{%s}" % b",".join(orjson.dumps(name) + b":" + _by_parts(value[name]) for name in sorted(value))
    return rfc8785.dumps(value)


def content_hash(value: object, *, plain: bool = False) -> str:
    """H(value): the lower-case hex SHA-256 of the canonical bytes, without prefix; `plain` as `canonical` takes it."""
    # Eleven times for each decision: what is plain goes straight to the library.
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if plain else canonical(value)
    return hashlib.sha256(text).hexdigest()


def is_hash_of(expected: object, value: object) -> bool:
    """Whether H(value) is the expected hash.

    Raises:
        MaterialRefused: As `canonical`.
    """
    # To look whether a value is plain takes longer than hashing it. Bytes that have the hash are the canonical ones
    # that were hashed when it was made; a value that is written so is the one that they were made of.
    with suppress(orjson.JSONEncodeError):
        if content_hash(value, plain=True) == expected:
            return True
    return content_hash(value) == expected


def compact(value: object) -> object:
    """The value without members and items that are null, "", {} or [], recursively; `false` and 0 stay.

    A container left empty is dropped by its parent; the outermost value is always returned. `compact(x)` in
    docs/wire-format.md.
    """
    if isinstance(value, dict):
        # Most objects hold nothing but text.
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
    """The same JSON value, with integers where it has integral doubles within 2^53-1, for what tells the two apart.

    `4.0` and `4` are one JSON number: the canonical bytes stay as they are. The value nests no deeper than
    `strict_json.parse` admits.
    """
    # Plain values hold no integral double.
    return value if is_plain(value) else _with_integers(value)


def plain_form(value: Json) -> tuple[Json, bool]:
    """A value that is not plain as `with_integers` gives it, and whether it is plain then, which most are."""
    value = _with_integers(value)
    return value, is_plain(value)


def _with_integers(value: Json) -> Json:
    if type(value) is float:
        # Beyond 2^53-1 an integer would name digits that the double does not hold. -0.0 becomes 0, as JCS writes it.
        return int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value
    if type(value) is dict:
        return {name: _with_integers(item) for name, item in value.items()}
    return [_with_integers(item) for item in value] if type(value) is list else value


def is_empty(value: object) -> bool:
    """Whether a value is null, "", {} or []."""
    return value is None or (isinstance(value, _MAY_BE_EMPTY) and not value)


# A tuple: a union would be made anew at every one of millions of calls.
_MAY_BE_EMPTY: Final = (str, dict, list)
_TEXT: Final = frozenset({str})


# Between these bounds both write a non-integral double in plain digits; beyond them orjson's exponents differ.
_PLAIN_MIN: Final = 1e-4
_PLAIN_MAX: Final = 1e15
# More than any document that is ever read has.
_MOST_CONTAINERS: Final = 2_000_000


def is_plain(value: object) -> bool:
    """Whether orjson is known to write the bytes that RFC 8785 asks for; then it is so for every part, and for what is
    made of plain parts, text, `true`, `false`, null and small integers under ASCII names.

    Not for non-ASCII member names (orjson sorts by UTF-8, JCS by UTF-16), integral or extreme doubles (`1.0`, `1e20`),
    integers beyond 2^53-1 (to be refused), or Python types that orjson would quietly convert.

    Raises:
        MaterialRefused: SVC_API_JSON_INVALID: it holds itself, or more objects and lists than any document has.
    """
    return plain_depth(value) is not None


def plain_depth(value: object, *, ascii_names: bool = False) -> int | None:
    """How many levels of objects and lists a plain value has; None where it is not plain, as `is_plain` has it.

    Args:
        value: The value.
        ascii_names: Whether all of its member names are known to be text in ASCII.

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
