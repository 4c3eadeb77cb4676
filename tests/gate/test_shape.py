"""What is said of values that break a schema: sentences for people, which show nothing of the schema's language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gate import resources
from gate.errors import FieldError
from gate.receipts import KINDS
from gate.shape import FORMS, shape, to_mend

SCHEMAS = (
    "decision-request",
    "rulebook-v1",
    "replay-request",
    "counterfactuals-request",
    *(kind.request for kind in KINDS),
)


def patterns(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(pattern := node.get("pattern"), str):
            yield pattern
        for value in node.values():
            yield from patterns(value)
    elif isinstance(node, list):
        for item in node:
            yield from patterns(item)


def test_every_pattern_of_a_request_is_put_into_words() -> None:
    assert {pattern for name in SCHEMAS for pattern in patterns(resources.schema(name))} == FORMS.keys()


SCENARIO = {"scenario_id": "thin", "label": "Thin", "context_patch": {}}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "crm-sync-request",
            {"crm_record_url": "crm.example"},
            "It must be a web address that begins with http:// or ",
        ),
        ("crm-sync-request", {"crm_object_id": 7}, "It must be a string, and is an integer."),
        ("crm-sync-request", {"crm_object_id": ""}, "It must have at least 1 character."),
        ("crm-sync-request", {"mapped_fields": {}}, "It must have at least 1 member."),
        ("outcome-request", {"observed_metrics": {f"m{n}": n for n in range(65)}}, "It must have at most 64 members."),
        ("outcome-request", {"action_executed": None}, "It must be true or false, and is null."),
        ("execution-request", {"evidence_refs": []}, "It must have at least 1 item."),
        ("counterfactuals-request", {"scenarios": []}, "It must have at least 1 item."),
        (
            "counterfactuals-request",
            {"scenarios": [{**SCENARIO, "scenario_id": "more margin"}]},
            "It must be 1 to 120 characters of A-Z a-z 0-9 _ . : -, a letter or digit first.",
        ),
        ("replay-request", [], "It must be an object, and is an array."),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(name: str, value: Any, said: str) -> None:
    told = [error.message for error in shape(name).errors(value) if error.code != "required"]
    assert len(told) == 1
    assert told[0].startswith(said)
    assert told[0].endswith(".")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ([""], "the body"),
        (["a"], "a"),
        (["a", "b", "a"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    ],
)
def test_a_refusal_names_the_first_members_to_mend(fields: list[str], named: str) -> None:
    errors = [FieldError(field, "type", "It is wrong.") for field in fields]
    assert to_mend("The body is not an outcome", errors) == f"The body is not an outcome; mend {named} (see errors)."
