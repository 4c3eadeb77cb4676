"""YAML 1.2 that holds JSON: what is read, what is refused and where, and writing that every reader takes alike."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gate.encoding.canonical import canonical
from gate.encoding.yaml_text import MAX_YAML, read_yaml, rewrite_yaml, write_yaml
from gate.errors import MaterialRefused
from tests.support.samples import cases, same_json
from tests.support.tiers import examples
from tests.support.torture import size

TRAPS = [
    "no", "Yes", "on", "y", "~", "null", "", " a", "a ", "1e3", "012", "0x1", "12:30", "2026-01-01", "# x", "a: b",
    "- a", "x\ny", "x\u2028y", "\x85", "\ufeff", "\x7f", "\x00", "\U0001f600", "é", "'", '"', "\\", "!x", "&x", "*x",
    "<<", "=", "?",
]  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(TRAPS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(TRAPS) | st.text("abc", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("case", cases("yaml/accepted"), ids=lambda case: case["name"])
def test_what_json_can_hold_is_read(case: Any) -> None:
    assert same_json(read_yaml(case["yaml"].encode()).value, case["value"])


@pytest.mark.parametrize("case", cases("yaml/refused"), ids=lambda case: case["name"])
def test_what_json_cannot_hold_is_refused_with_its_line(case: Any) -> None:
    with pytest.raises(MaterialRefused) as refused:
        read_yaml(case["yaml"].encode())
    assert (refused.value.code, refused.value.details) == ("YAML_INVALID", {"line": case["line"]})
    assert case["message"] in refused.value.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "It is empty."),
        (b"# only a comment", "It is empty."),
        (b"a: \xff", "It is not valid UTF-8."),
        (b"x" * (MAX_YAML + 1), f"a YAML file may have {MAX_YAML}"),
        (b"[" * 20_000, "nests deeper than 32"),
        (b"- " * 20_000, "nests deeper than 32"),
        (b"[" + b"1," * 200 + b"1]", "more than 100 values"),
    ],
)
def test_sizes_are_bounded(body: bytes, message: str) -> None:
    with pytest.raises(MaterialRefused) as refused:
        read_yaml(body, max_values=100 if b"1," in body else 125_000)
    assert message in refused.value.message


def test_each_member_and_item_has_its_line() -> None:
    read = read_yaml(b"# about\na:\n  - x: 1\n    y: [2,\n      3]\nb: {c: 4} # end\n")
    assert read.lines == {
        "": 1, "a": 2, "a[0]": 3, "a[0].x": 3, "a[0].y": 4, "a[0].y[0]": 4, "a[0].y[1]": 5, "b": 6, "b.c": 6,
    }  # fmt: skip
    assert read.comments == {1: "# about", 6: "# end"}


@settings(max_examples=examples(size(150, 3_000)), deadline=None)
@given(VALUES)
def test_a_value_that_is_written_is_read_again(value: Any) -> None:
    written = write_yaml(value)
    assert canonical(read_yaml(written.encode()).value) == canonical(value)
    assert canonical(read_yaml(rewrite_yaml(written).encode()).value) == canonical(value)


@settings(max_examples=examples(size(100, 2_000)), deadline=None)
@given(st.lists(st.sampled_from(TRAPS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_texts_are_texts_to_a_reader_of_yaml_1_1_too(texts: list[str]) -> None:
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)
    value: Any = {"texts": texts}
    assert reader.load(io.StringIO(write_yaml(value))) == value


PIECES = [
    "a: 1\n", "b: [1, 2]\n", "  - x\n", "- y\n", "{a: 1, b: c}", "'q'", '"d\\n"', ": ", "- ", "# c\n", "\n", "  ",
    "    ", "|\n", "> \n", "|-\n", "key", "x: y", ",", "]", "[", "{", "}", "no", "1.5", "~", "-", "a:1", "a::b",
    "[a:1]", "{a:1}", '{"a":1}', "x#y", " #z", "\\", "''", '""', "é", "\U0001f600", "a? b", "- - 1\n", "|2\n", "|+\n",
    "-1", "1:2", "c:\n",
]  # fmt: skip


@settings(max_examples=examples(size(300, 20_000)), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map(lambda pieces: "k:\n  " + "".join(pieces)))
def test_what_is_read_is_what_another_reader_of_yaml_1_2_reads(text: str) -> None:
    try:
        value = read_yaml(text.encode()).value
    except MaterialRefused:
        return
    assert same_json(YAML(typ="safe", pure=True).load(io.StringIO(text)), value)


def test_comments_and_the_spelling_of_values_survive_a_rewrite() -> None:
    text = "# about a\na: 1.50 # of it\nb:\n- 'x' # one\n# before c\nc: {d: no}\n"
    written = rewrite_yaml(text)
    assert list(read_yaml(written.encode()).comments.values()) == ["# about a", "# of it", "# one", "# before c"]
    assert "a: 1.50 # of it" in written
    assert "  - 'x' # one" in written


def test_a_comment_that_would_be_lost_is_named() -> None:
    with pytest.raises(MaterialRefused) as refused:
        rewrite_yaml("a: 1\nb: {c: 1, # about d\n  d: 2}\n")
    assert refused.value.details == {"line": 2}
    assert "The comment would be lost" in refused.value.message
