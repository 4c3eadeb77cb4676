"""Strict JSON: what is refused, and what is read as which value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gate.errors import MaterialRefused
from gate.strict_json import MAX_VERIFY_DEPTH, parse
from tests.reference.strategies import json_values
from tests.support import cases


def _bytes(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "repeat" in case:
        return str(case["repeat"][0] * case["repeat"][1]).encode()
    if "nest" in case:
        opening, closing, depth = case["nest"]
        return str(opening * depth + case.get("middle", "") + closing * depth).encode()
    return str(case["text"]).encode()


@pytest.mark.parametrize("case", cases("strict_json"), ids=lambda case: case["name"])
def test_a_text_is_read_or_refused(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(MaterialRefused) as refusal:
            parse(_bytes(case))
        assert refusal.value.code == "SVC_API_JSON_INVALID"
        assert case["refused"] in refusal.value.message
        assert len(refusal.value.message) < 300
    else:
        value = parse(_bytes(case))
        if "value" in case:
            assert value == case["value"]
            assert type(value) is type(case["value"])


def test_verification_admits_twice_the_depth() -> None:
    text = b"[" * MAX_VERIFY_DEPTH + b"]" * MAX_VERIFY_DEPTH
    parse(text, max_depth=MAX_VERIFY_DEPTH)
    with pytest.raises(MaterialRefused, match="deeper than 64"):
        parse(b"[" + text + b"]", max_depth=MAX_VERIFY_DEPTH)


@given(json_values())
def test_every_json_value_is_read_as_itself(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value
