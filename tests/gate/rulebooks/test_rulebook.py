"""Rulebook v1: every limit with its code and place, its hash, advice to authors, and the cache."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from gate.encoding import resources
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import parse
from gate.errors import RulebookRefused
from gate.rulebooks.rulebook import RulebookCache, find_errors, load
from tests.reference.strategies import json_values, rulebooks
from tests.support.rulebooks import change
from tests.support.samples import cases, sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

EXISTS = {"field": "a", "operator": "exists"}


def with_rules(count: int, condition: dict[str, Any]) -> dict[str, Any]:
    body = sample_rulebook()
    body["rules"] = [{**body["rules"][0], "rule_id": f"rule_{n}", "condition": condition} for n in range(count)]
    return body


def nested(depth: int) -> dict[str, Any]:
    return EXISTS if depth == 1 else {"not": nested(depth - 1)}


def with_nodes(count: int) -> dict[str, Any]:
    """8 rules whose conditions together have `count` nodes, each within the limit of children."""
    body = with_rules(8, {"all": [EXISTS] * 31})
    body["rules"][0]["condition"] = {"all": [EXISTS] * (31 + count - 8 * 32)}
    return body


def altered(case: dict[str, Any]) -> Any:
    if "replace" in case:
        return case["replace"]
    if "rules" in case:
        return with_rules(case["rules"], EXISTS)
    if "nodes" in case:
        return with_nodes(case["nodes"])
    if "depth" in case:
        return with_rules(1, nested(case["depth"]))
    if "children" in case:
        return with_rules(1, {"all": [EXISTS] * case["children"]})
    body = sample_rulebook()
    for path, value in case.get("set", {}).items():
        change(body, path, value)
    for path, (text, times) in case.get("repeat", {}).items():
        change(body, path, text * times)
    for path in case.get("unset", []):
        change(body, path, remove=True)
    return body


@pytest.mark.parametrize("case", cases("rulebook_invalid"), ids=lambda case: case["name"])
def test_an_invalid_rulebook_is_refused_with_code_and_place(case: dict[str, Any]) -> None:
    with pytest.raises(RulebookRefused) as refusal:
        load(altered(case))
    assert refusal.value.code == "RULEBOOK_INVALID"
    assert (case["field"], case["code"]) in [(error.field, error.code) for error in refusal.value.errors]
    assert all(error.message.endswith(".") for error in refusal.value.errors)


def test_places_are_named_below_the_root_they_are_given() -> None:
    (error,) = find_errors({**sample_rulebook(), "title": "x"}, root="rulebook")
    assert error.field == "rulebook.title"
    (error,) = find_errors([], root="rulebook")
    assert error.field == "rulebook"


@pytest.mark.parametrize(
    "body",
    [
        with_rules(100, EXISTS),
        with_nodes(256),
        with_rules(1, nested(8)),
        with_rules(1, {"any": [EXISTS] * 32}),
        {**sample_rulebook(), "rulebook_id": "p" * 120, "version": "v" * 80},
        {**sample_rulebook(), "version": "\u0000 1"},
    ],
    ids=["100 rules", "256 nodes", "8 levels", "32 children", "long names", "version with U+0000"],
)
def test_the_limits_themselves_are_allowed(body: dict[str, Any]) -> None:
    assert find_errors(body) == []


def test_a_hostile_rulebook_gets_a_bounded_answer() -> None:
    body = sample_rulebook() | {f"x{n}": n for n in range(10_000)}
    assert len(find_errors(body)) == 50


@settings(max_examples=examples(size(50, 100)), deadline=None)
@given(rulebooks())
def test_generated_rulebooks_are_valid_and_so_says_the_second_validator(body: dict[str, Any]) -> None:
    body = parse(canonical(body))
    assert find_errors(body) == []
    jsonschema.Draft202012Validator(resources.schema("rulebook-v1")).validate(body)


@settings(max_examples=examples(size(80, 200)), deadline=None)
@given(json_values())
def test_any_json_value_is_judged_alike_by_two_validators(value: Any) -> None:
    body = {**sample_rulebook(), "rules": [{**sample_rulebook()["rules"][0], "condition": value}]}
    oracle = jsonschema.Draft202012Validator(resources.schema("rulebook-v1"))
    shape_errors = [error for error in find_errors(body) if error.code != "too_deep"]
    assert (not shape_errors) == oracle.is_valid(body)


def test_the_schema_is_a_valid_schema() -> None:
    for name in ("rulebook-v1", "decision-request"):
        jsonschema.Draft202012Validator.check_schema(resources.schema(name))


def test_a_rulebook_knows_its_names_and_its_hash() -> None:
    rulebook = load(sample_rulebook())
    assert rulebook.reference == {
        "schema_version": "rulebook_v1",
        "id": "pricing_exception",
        "version": "2026-06-11",
        "hash": "c986eb64d4d724d7a86436458d3d6502a97fea01ef1f7f37c015d94426fb56ee",
    }


def test_the_cache_serves_equal_rulebooks_and_stays_within_its_bytes() -> None:
    cache = RulebookCache(max_bytes=3000)
    first = cache.load(sample_rulebook())
    same = copy.deepcopy(sample_rulebook())
    same["rules"][0]["priority"] = 100.0
    assert cache.load(same) is first
    for n in range(20):
        cache.load({**sample_rulebook(), "version": f"v{n}"})
    assert cache.get(first.hash) is None
    large = with_rules(100, EXISTS)
    assert cache.load(large).hash == load(large).hash, "a rulebook larger than the cache still loads"


def test_the_cache_refuses_what_load_refuses() -> None:
    cache = RulebookCache()
    for _ in range(2):
        with pytest.raises(RulebookRefused):
            cache.load({**sample_rulebook(), "version": 7})
