"""Strict JSON: a corpus from RFC 8259's grammar and RFC 7493's rules, what is refused, and what is read as what."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gate.encoding.strict_json import (
    MAX_REQUEST_DEPTH,
    MAX_REQUEST_VALUES,
    MAX_VALUES,
    parse,
    parse_document,
    parse_with_any_number,
)
from gate.errors import MaterialRefused
from tests.reference.strategies import json_values
from tests.support.samples import case_bytes, cases, same_json


@pytest.mark.parametrize("case", cases("json/accepted"), ids=lambda case: case["name"])
def test_a_text_is_read_as_its_value(case: dict[str, Any]) -> None:
    text = case_bytes(case)
    value = parse(text, max_depth=case.get("max_depth", MAX_REQUEST_DEPTH))
    assert same_json(value, case.get("value", value))
    # json.loads is no judge of what is JSON, but reads what is; its integers are of any length.
    assert value == json.loads(text, parse_int=float)


@pytest.mark.parametrize("case", cases("json/refused"), ids=lambda case: case["name"])
def test_a_text_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(MaterialRefused) as refusal:
        parse(case_bytes(case), max_depth=case.get("max_depth", MAX_REQUEST_DEPTH))
    assert refusal.value.code == "SVC_API_JSON_INVALID"
    assert case["says"] in refusal.value.message
    assert len(refusal.value.message) < 300


def test_no_case_stands_twice_in_the_corpus() -> None:
    corpus = [*cases("json/accepted"), *cases("json/refused")]
    texts = [(case_bytes(case), case.get("max_depth")) for case in corpus]
    assert len({case["name"] for case in corpus}) == len(corpus)
    assert len(set(texts)) == len(texts)


@given(json_values())
def test_every_json_value_is_read_as_itself(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_a_double_is_read_as_itself_however_exactly_it_is_written(value: float, zeros: int) -> None:
    """Whatever a correct printer makes of it: the shortest form, 17 significant digits or more, 20 decimals or more."""
    exact = format(Decimal(value), "f")
    exponent = format(Decimal(value), "e")
    shortest = repr(value) if "." in repr(value) else repr(value).replace("e", ".0e")
    mantissa, e, power = shortest.partition("e")
    texts = [
        shortest,
        f"{mantissa}{'0' * zeros}{e}{power}",
        f"{value:.17g}",
        f"{value:.{17 + zeros}g}",
        f"{value:.21e}",
    ]
    texts += [text for text in (exact, exponent) if len(text) <= 1100]
    # As integers these have a rule of their own, and rounded to nothing they are no longer this double.
    texts = [text for text in texts if set(text) & set(".e")]
    texts += [f"{value:.{20 + zeros}f}"] if abs(value) >= 1e-4 and len(f"{value:.60f}") < 1100 else []
    for text in texts:
        assert parse(text.encode()) == value, text


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,24})\.[0-9]{1,40}([eE][+-]?[0-9]{1,3})?", fullmatch=True))
@example("9.9999999999999999999")
@example("-1.0e-400")
@example("9007199254740991.4")
def test_a_number_is_read_exactly_when_it_lost_no_digit(token: str) -> None:
    value, number = float(token), Fraction(token)
    if math.isinf(value):
        lossless = False
    else:
        digits = Decimal(token).normalize(Context(prec=200)).as_tuple()
        assert isinstance(digits.exponent, int)
        lossless = number == 0 or (value != 0 and abs(number - Fraction(value)) <= Fraction(10) ** digits.exponent / 2)
    try:
        read = parse(token.encode())
    except MaterialRefused:
        assert not lossless
    else:
        assert lossless
        assert read == value


@pytest.mark.parametrize(
    ("read", "most"), [(parse, MAX_REQUEST_VALUES), (parse_document, MAX_VALUES)], ids=["request", "document"]
)
@pytest.mark.parametrize(
    ("before", "repeated", "values", "after"),
    [
        (b"[", b"0,", 1, b"0]"),
        (b"[", b"[],{},", 4, b"0]"),
        (b'{"a":"', b",", 1, b'"}'),
        (b'{"a":"', b"\\u002c", 1, b'"}'),
        (b'{"a":"', b"\\u005B\\u007b", 2, b'"}'),
    ],
    ids=["numbers", "arrays and objects", "commas in a string", "escaped commas", "escaped brackets"],
)
def test_a_body_is_refused_for_more_values_than_memory_should_hold(
    read: Callable[[bytes], Any], most: int, before: bytes, repeated: bytes, values: int, after: bytes
) -> None:
    read(before + repeated * ((most - 1) // values) + after)
    with pytest.raises(MaterialRefused, match=f"more than {most} commas and brackets"):
        read(before + repeated * (most // values) + after)


@pytest.mark.parametrize("token", ["9" * 300, "-" + "9" * 300, "9" * 5000, "1e400", "0." + "3" * 300, "1e-400"])
def test_a_number_that_parse_refuses_can_be_read_as_the_nearest_double(token: str) -> None:
    with pytest.raises(MaterialRefused):
        parse(token.encode())
    assert parse_with_any_number(token.encode()) == float(token)


@given(json_values())
def test_what_parse_reads_is_read_alike_with_any_number(value: Any) -> None:
    text = json.dumps(value).encode()
    assert same_json(parse_with_any_number(text), parse(text))


@pytest.mark.parametrize("case", cases("json/refused"), ids=lambda case: case["name"])
def test_with_any_number_all_else_is_still_refused(case: dict[str, Any]) -> None:
    with pytest.raises(MaterialRefused) as refusal:
        parse(case_bytes(case), max_depth=case.get("max_depth", MAX_REQUEST_DEPTH))
    if "max_depth" not in case and not any(word in refusal.value.message for word in _ABOUT_NUMBERS):
        with pytest.raises(MaterialRefused):
            parse_with_any_number(case_bytes(case))


_ABOUT_NUMBERS = ("would lose digits", "too large for a double", "would be changed", "characters; write it")
