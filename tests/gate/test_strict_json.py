"""Strict JSON: a corpus from RFC 8259's grammar and RFC 7493's rules, what is refused, and what is read as what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gate.errors import MaterialRefused
from gate.strict_json import MAX_REQUEST_DEPTH, MAX_VALUES, parse
from tests.reference.strategies import json_values
from tests.support import case_bytes, cases, same_json


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


@pytest.mark.parametrize(
    ("fits", "one_more"),
    [
        (b"[" + b"0," * (MAX_VALUES - 1) + b"0]", b"[" + b"0," * MAX_VALUES + b"0]"),
        (b"[" + b"[],{}," * ((MAX_VALUES - 1) // 4) + b"0]", b"[" + b"[],{}," * (MAX_VALUES // 4) + b"0]"),
        (b'{"a":"' + b"," * (MAX_VALUES - 1) + b'"}', b'{"a":"' + b"," * MAX_VALUES + b'"}'),
    ],
    ids=["numbers", "arrays and objects", "commas in a string"],
)
def test_a_body_is_refused_for_more_values_than_memory_should_hold(fits: bytes, one_more: bytes) -> None:
    parse(fits)
    with pytest.raises(MaterialRefused, match="more than 1000000 commas and brackets"):
        parse(one_more)
