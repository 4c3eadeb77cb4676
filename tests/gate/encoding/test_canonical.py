"""Canonical JSON equals RFC 8785, on whatever values there are."""

from __future__ import annotations

import math
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from gate.encoding.canonical import canonical, compact, content_hash, with_integers
from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused
from tests.reference.strategies import json_values
from tests.support.samples import sample_rulebook


@given(json_values(max_depth=4))
@example(1.0)
@example(1e21)
@example(1e-7)
@example(-0.0)
@example(5e-324)
@example(9007199254740991)
@example({"\U0001f600": 1, "\ufb33": 2, "é": 3, "\u0000": 4, "": 5})
@example({"b": [1e15, 1e16, 123456789012345680.0, 0.0001, 0.00001], "a": '\u2028\u007f\\/"\b'})
def test_canonical_bytes_are_those_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_written_as_rfc_8785_writes_it(value: float) -> None:
    assert canonical([value]) == rfc8785.dumps([value])


@given(json_values(max_depth=3))
def test_canonical_bytes_read_back_as_the_same_value(value: Any) -> None:
    assert parse(canonical(value)) == value
    assert canonical(parse(canonical(value))) == canonical(value)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 2**53, -(2**53), "\ud800", {"\udc00": 1}, {1: 2}, (1, 2), b"x", {"a": {1, 2}}],
    ids=repr,
)
def test_what_is_no_json_has_no_canonical_bytes(value: Any) -> None:
    if isinstance(value, tuple):
        assert canonical(value) == b"[1,2]"
        return
    for shape in (value, [value], {"a": value}):
        with pytest.raises(MaterialRefused, match="no canonical JSON"):
            canonical(shape)


@given(json_values(max_depth=4))
@example({"é": [4.0, -0.0, 9007199254740991.0, 9007199254740992.0, 1e300, 0.5, True, None, "1.0"]})
def test_integers_in_place_of_integral_doubles_are_the_same_json(value: Any) -> None:
    same = with_integers(value)
    assert canonical(same) == canonical(value)
    stack = [same]
    while stack:
        item = stack.pop()
        stack += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        assert not (isinstance(item, float) and item.is_integer() and abs(item) < 2**53)


def test_true_is_not_one_and_one_is_one_point_zero() -> None:
    assert content_hash(True) != content_hash(1)
    assert content_hash(1) == content_hash(1.0)


def test_the_vectors_of_the_wire_format_hold() -> None:
    assert content_hash(sample_rulebook()) == "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee"
    facts = {"discount_percent": 10, "margin_percent": 22}
    assert content_hash(facts) == "7bf6d37013a2e6dbdd6133995dbb0cb196fadf93b46277d09874916e8b3e3e4e"
    assert content_hash({"margin_percent": 22.0, "discount_percent": 10.0}) == content_hash(facts)


def test_compact_drops_what_is_empty_at_every_depth_and_keeps_false_and_zero() -> None:
    value: dict[str, Any] = {
        "null": None,
        "text": "",
        "object": {},
        "array": [],
        "hollow": {"a": {"b": [None, {}, ""]}},
        "false": False,
        "zero": 0,
        "items": [0, None, {"x": ""}, False, "kept"],
    }
    assert compact(value) == {"false": False, "zero": 0, "items": [0, False, "kept"]}
    assert compact({}) == {}
