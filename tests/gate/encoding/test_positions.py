"""Lines: where a member of a JSON text stands, and where what is refused does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.encoding.positions import line_of_refusal, lines_of
from gate.encoding.shapes import dotted
from tests.reference.strategies import json_values
from tests.support.tiers import examples

TEXT = """{
  "a": [1,
    {"b": "x\\n{",
      "c": {}}, []],
  "d.e": {"f": 1}, "g": 2
}"""


def test_a_member_stands_where_its_name_is_and_an_item_where_it_begins() -> None:
    lines = {"": 1, "a": 2, "a[0]": 2, "a[1]": 3, "a[1].b": 3, "a[1].c": 4, "a[2]": 4, "d.e": 5, "d.e.f": 5, "g": 5}
    assert lines_of(TEXT, lines) == lines


def test_what_is_missing_stands_where_it_should_be() -> None:
    lines = {"h": 1, "a[1].z": 3, "a[9]": 2, "a[1].c.z.y": 4, "d": 1, "d.e.z": 5}
    assert lines_of(TEXT, lines) == lines


def paths(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield steps
    for step, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(item, (*steps, step))


def counted(value: Any, line: int) -> Iterator[int]:
    """The lines on which json.dumps with an indent puts a value and what is in it, in the order of `paths`."""
    yield line
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    at = line
    for item in items:
        inner = list(counted(item, at + 1))
        yield from inner
        at = inner[0] + json.dumps(item, indent=1).count("\n")


@settings(max_examples=examples(150), deadline=None)
@given(json_values())
def test_every_member_of_any_value_is_found(value: Any) -> None:
    text = json.dumps(value, indent=1)
    named = [dotted(value, steps) for steps in paths(value)]
    expected: dict[str, int] = {}
    for path, line in zip(named, counted(value, 1), strict=True):
        # A name with a dot can stand for two places; the first counts.
        expected.setdefault(path, line)
    assert lines_of(text, named) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1,\n"b": {"a": 2},\n"a": 3}', 3),
        ('{"a": 1,\n"\\u0061": 3}', 2),
        ("[1,\n2,\n1e400]", 3),
        ('[1,\n"\\ud800"]', 2),
        ("[1, 2]", None),
        ("", None),
    ],
)
def test_what_is_refused_is_found(text: str, line: int | None) -> None:
    assert line_of_refusal(text) == line


@settings(max_examples=examples(100), deadline=None)
@given(st.text() | st.text(alphabet='{}[]",:\\ \n1e'))
def test_no_text_is_fallen_over(text: str) -> None:
    line_of_refusal(text)
