"""The authoring form: comments in files, which change nothing that is hashed."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.contract.published import contract_index
from gate.encoding import resources
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import parse
from gate.rulebooks.authoring import MAX_ANNOTATIONS, annotated, read_authored
from gate.rulebooks.rulebook import find_errors, load
from tests.reference.strategies import rulebooks
from tests.support.rulebooks import change
from tests.support.samples import sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

TEXT = "A comment.\nOn two lines."


def described(body: Any, text: str = TEXT) -> Any:
    """A rulebook with a comment everywhere."""
    document = {"$schema": "rulebook-authoring-v1.schema.json", "description": text, **copy.deepcopy(body)}
    for rule in document["rules"]:
        rule["description"] = text
        rule["outcome"]["description"] = text
    document["default_outcome"]["description"] = text
    return document


@settings(max_examples=examples(size(20, 50)), deadline=None)
@given(rulebooks(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_comments_change_no_hash_and_are_kept(body: dict[str, Any], text: str) -> None:
    body = parse(canonical(body))
    document = described(body, text)
    jsonschema.Draft202012Validator(resources.schema("rulebook-authoring-v1")).validate(document)
    authored = read_authored(document)
    assert (authored.errors, authored.body) == ([], body)
    assert load(authored.body).hash == content_hash(body)
    about = {"description": text, "outcome": text}
    assert authored.annotations == {
        "schema": "rulebook-authoring-v1.schema.json",
        "description": text,
        "rules": {rule["rule_id"]: about for rule in body["rules"]},
        "default_outcome": text,
    }
    assert annotated(authored.body, authored.annotations) == document


def test_the_authoring_form_stands_in_the_order_in_which_authors_write() -> None:
    made = annotated(parse(canonical(sample_rulebook())), {"description": "About it."})
    assert list(made) == [
        "schema_version",
        "rulebook_id",
        "version",
        "description",
        "input_schema",
        "rules",
        "default_outcome",
    ]
    assert list(made["rules"][0]) == ["rule_id", "priority", "condition", "outcome"]  # type: ignore[index, arg-type]
    assert read_authored(made).body == sample_rulebook()


def test_a_rulebook_without_comments_is_its_own_authoring_form() -> None:
    authored = read_authored(sample_rulebook())
    assert (authored.body, authored.annotations, authored.errors) == (sample_rulebook(), {}, [])


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("$comment", "$comment"),
        ("rules.0.$schema", "rules[0].$schema"),
        ("rules.0.outcome.$schema", "rules[0].outcome.$schema"),
        ("rules.0.condition.description", "rules[0].condition.description"),
        ("input_schema.description", "input_schema.description"),
        ("input_schema.properties.margin_percent.description", "input_schema.properties.margin_percent.description"),
    ],
)
def test_comments_stand_nowhere_else(path: str, field: str) -> None:
    document = sample_rulebook()
    change(document, path, TEXT)
    assert (field, "unknown_field") in [(error.field, error.code) for error in read_authored(document).errors]


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("description", "", "too_short"),
        ("description", "x" * 2001, "too_long"),
        ("rules.0.description", ["x"], "type"),
        ("rules.0.outcome.description", 7, "type"),
        ("default_outcome.description", None, "type"),
        ("$schema", {}, "type"),
        ("rules.1.rule_id", "block_below_margin_floor", "duplicate"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(path: str, value: Any, code: str) -> None:
    document = described(sample_rulebook())
    change(document, path, value)
    found = read_authored(document)
    assert code in {error.code for error in found.errors}
    assert found.annotations == {}


def test_comments_and_rulebook_have_a_size() -> None:
    body = sample_rulebook()
    body["rules"] = [{**body["rules"][0], "rule_id": f"rule_{number}", "priority": number} for number in range(100)]
    assert [error.code for error in read_authored(described(body, "x" * 2000)).errors] == ["too_long"]
    assert len(canonical(read_authored(described(body, "x" * 200)).annotations)) <= MAX_ANNOTATIONS
    body = sample_rulebook()
    body["rules"][0]["condition"] = {"field": "note", "operator": "eq", "value": "x" * 1024 * 1024}
    (error,) = read_authored(body).errors
    assert (error.field, error.code) == ("", "too_long")


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, {"rules": 3}, {"rules": [3]}, {"rules": [{"outcome": 3}]}])
def test_any_json_value_is_refused_and_not_fallen_over(value: Any) -> None:
    assert read_authored(value).errors


def test_on_the_wire_comments_are_unknown_and_the_message_says_where_they_may_stand() -> None:
    errors = find_errors(described(sample_rulebook()), root="rulebook")
    assert {error.field for error in errors} == {
        "rulebook.$schema",
        "rulebook.description",
        "rulebook.default_outcome.description",
        *(f"rulebook.rules[{index}]{place}.description" for index in range(2) for place in ("", ".outcome")),
    }
    assert {error.code for error in errors} == {"unknown_field"}
    assert all("gate rulebook convert" in error.message for error in errors)
    body = sample_rulebook()
    body["rules"][0]["condition"]["description"] = TEXT
    assert not any("convert" in error.message for error in find_errors(body))


def test_the_authoring_schema_is_rulebook_v1_with_comments() -> None:
    authoring, wire = (copy.deepcopy(resources.schema(name)) for name in ("rulebook-authoring-v1", "rulebook-v1"))
    jsonschema.Draft202012Validator.check_schema(authoring)
    del authoring["properties"]["$schema"], authoring["properties"]["description"]
    for name in ("rule", "outcome"):
        del authoring["$defs"][name]["properties"]["description"]
    del authoring["$defs"]["description"], authoring["$defs"]["schema_address"]
    # For editors: they suggest what stands here, and anything is accepted.
    assert undescribed(authoring["$defs"]["condition"].pop("properties")) == {"all": {}, "any": {}, "not": {}}
    for document in (authoring, wire):
        del document["title"]
    assert undescribed(authoring) == undescribed(wire)


def undescribed(schema: Any) -> Any:
    """A schema without the descriptions that editors show, which accept and refuse nothing."""
    if isinstance(schema, dict):
        return {name: undescribed(item) for name, item in schema.items() if name != "description"}
    return [undescribed(item) for item in schema] if isinstance(schema, list) else schema


def test_the_authoring_schema_is_published() -> None:
    urls = {schema["name"]: schema["url"] for schema in contract_index()["schemas"]}
    assert urls["rulebook-authoring-v1"] == "/schemas/rulebook-authoring-v1.schema.json"
