"""What is said of values that break a schema: sentences for people, which show nothing of the schema's language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from gate.adapters.registry import registered
from gate.encoding import resources
from gate.encoding.shapes import FORMATS, FORMS, Shape, shape, to_mend
from gate.errors import FieldError
from gate.records.reports.receipts import KINDS

SCHEMAS = (
    "decision-request",
    "rulebook-v1",
    "replay-request",
    "counterfactuals-request",
    *(kind.request for kind in KINDS),
)


DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
"""No schema of a request has it; adapters that are to come may."""


def asked_for(keyword: str, node: Any) -> Iterator[str]:
    """What a keyword says anywhere in a schema."""
    if isinstance(node, dict):
        if isinstance(found := node.get(keyword), str):
            yield found
        for value in node.values():
            yield from asked_for(keyword, value)
    elif isinstance(node, list):
        for item in node:
            yield from asked_for(keyword, item)


def of_requests(keyword: str) -> set[str]:
    """What a keyword says anywhere in what callers send, to adapters too, and in what authors write."""
    schemas = [resources.schema(name) for name in (*SCHEMAS, "resolution-request", "rulebook-migration-v1")]
    return set(asked_for(keyword, [*schemas, *(adapter.manifest["input_schema"] for adapter in registered())]))


def test_every_pattern_of_a_request_is_put_into_words() -> None:
    assert of_requests("pattern") | {DAY} == FORMS.keys()


def test_every_format_of_a_request_is_put_into_words() -> None:
    assert {"date"} <= of_requests("format") <= FORMATS.keys()


SCENARIO = {"scenario_id": "thin", "label": "Thin", "context_patch": {}}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "crm-sync-request",
            {"crm_record_url": "crm.example"},
            "It must be a web address that begins with http:// or ",
        ),
        ("crm-sync-request", {"crm_object_id": 7}, "It must be a string, but is an integer."),
        ("crm-sync-request", {"crm_object_id": ""}, "It must have at least 1 character."),
        ("crm-sync-request", {"mapped_fields": {}}, "It must have at least 1 field."),
        ("outcome-request", {"observed_metrics": {f"m{n}": n for n in range(65)}}, "It must have at most 64 fields."),
        ("outcome-request", {"action_executed": None}, "It must be true or false, but is null."),
        ("execution-request", {"evidence_refs": []}, "It must have at least 1 item."),
        ("counterfactuals-request", {"scenarios": []}, "It must have at least 1 item."),
        (
            "counterfactuals-request",
            {"scenarios": [{**SCENARIO, "scenario_id": "more margin"}]},
            "It must be 1 to 120 characters of A-Z a-z 0-9 _ . : -, starting with a letter or digit.",
        ),
        ("replay-request", [], "It must be an object, but is an array."),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(name: str, value: Any, said: str) -> None:
    told = [error.message for error in shape(name).errors(value) if error.code != "required"]
    assert len(told) == 1
    assert told[0].startswith(said)
    assert told[0].endswith(".")


@pytest.mark.parametrize(
    ("asked", "sent", "said"),
    [
        ({"format": "date"}, "2026-02-30", "It must be a calendar date, written YYYY-MM-DD."),
        ({"format": "date"}, "31.07.2026", "It must be a calendar date, written YYYY-MM-DD."),
        (
            {"format": "date-time"},
            "2026-07-31",
            "It must be a time with a time zone, written as 2026-07-31T09:30:00Z.",
        ),
        ({"format": "idn-hostname"}, "-", "It must be of the format idn-hostname."),
        ({"pattern": "^[A-Z]{3}$"}, "eur", "It must be three capital letters."),
        ({"pattern": DAY}, "2026-7-1", "It must be a day written YYYY-MM-DD."),
        ({"pattern": "^[0-9]{1,18}$"}, "x", "It must be text that matches the pattern ^[0-9]{1,18}$."),
    ],
)
def test_a_text_of_the_wrong_form_is_told_the_form(asked: dict[str, str], sent: str, said: str) -> None:
    (error,) = Shape({"type": "string", **asked}).errors(sent)
    assert (error.code, error.message) == (next(iter(asked)), said)


@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_year_has_no_sign(sign: str) -> None:
    for form, rest in (("date", ""), ("date-time", "T09:30:00Z")):
        assert Shape({"format": form}).errors(f"2026-07-31{rest}") == []
        assert len(Shape({"format": form}).errors(f"{sign}026-07-31{rest}")) == 1
        assert len(Shape({"format": form}).errors(f"2026-02-30{rest}")) == 1


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_that_has_words_is_one_that_is_checked(name: str) -> None:
    (error,) = Shape({"format": name}).errors("!")
    assert error.message == f"It must be {FORMATS[name]}."


def test_what_is_said_of_moments_and_times_gives_an_example_that_is_taken() -> None:
    examples = {name: said.rpartition(" written as ")[2] for name, said in FORMATS.items() if " written as " in said}
    assert examples.keys() == {"date-time", "time", "duration"}
    assert all(Shape({"format": name}).errors(example) == [] for name, example in examples.items())


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
    assert to_mend("The body is not an outcome", errors) == f"The body is not an outcome; correct {named} (see errors)."
