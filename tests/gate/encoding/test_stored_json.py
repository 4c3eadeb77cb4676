"""Stored JSON is read fast, and never otherwise than the strict parser reads it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding.canonical import canonical, is_plain, plain_depth
from gate.encoding.stored_json import parse_plain, parse_stored
from gate.encoding.strict_json import MAX_VERIFY_DEPTH, parse_document
from gate.errors import MaterialRefused
from tests.support.samples import same_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) - 2, 2**53 + 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1e20, 1e-5, 5e-324])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)

ODD = [
    b"",
    b"nothing",
    b"\xff",
    b'{"a":1,"a":2}',
    b'{"a": 1}',
    b"9007199254740993",
    b"-9007199254740992",
    b"18446744073709551616",
    b"1e400",
    b"1e-400",
    b"1E2",
    b"1.50",
    b"9.9999999999999999999",
    b"-0",
    b"-0.0",
    b"NaN",
    b'"\\ud800"',
    b'"\\u00e9"',
    b'{"\\u00e9":1.5}',
    b"[" * MAX_VERIFY_DEPTH + b"]" * MAX_VERIFY_DEPTH,
    b"[" * (MAX_VERIFY_DEPTH + 1) + b"]" * (MAX_VERIFY_DEPTH + 1),
    b"[1.0," + b"[" * MAX_VERIFY_DEPTH + b"]" * MAX_VERIFY_DEPTH + b"]",
    b"[" * 300 + b"]" * 300,
]


def read(parse: Any, body: bytes) -> Any:
    try:
        return parse(body)
    except MaterialRefused as error:
        return error.code, error.message


def agrees(body: bytes) -> None:
    strict, stored = read(parse_document, body), read(parse_stored, body)
    assert same_json(stored, strict) or stored == strict, body
    plain = read(parse_plain, body)
    if isinstance(plain, tuple) and isinstance(plain[1], bool):
        assert canonical(plain[0]) == canonical(strict)
        assert plain[1] == is_plain(plain[0])
    else:
        assert plain == strict


@given(VALUES)
def test_what_was_written_is_read_as_the_strict_parser_reads_it(value: Any) -> None:
    agrees(orjson.dumps(value))


@given(st.binary(max_size=12) | st.text(alphabet='{}[]",:0123456789.eE-+ \\u', max_size=12).map(str.encode))
def test_what_was_not_written_by_the_service_is_left_to_the_strict_parser(body: bytes) -> None:
    agrees(body)


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_odd_texts_are_read_as_the_strict_parser_reads_them(body: bytes) -> None:
    agrees(body)


def test_how_deep_a_plain_value_nests_is_told() -> None:
    values: list[Any] = [1, [], [[]], {"a": {"b": [1.5]}}, [1.0], {"\u00e9": 1}]
    assert list(map(plain_depth, values)) == [0, 1, 2, 3, None, None]
