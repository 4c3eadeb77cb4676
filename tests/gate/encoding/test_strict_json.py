"""Strict JSON: a corpus from RFC 8259's grammar and RFC 7493's rules, what is refused, and what is read as what."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES, MAX_VALUES, parse, parse_document
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
