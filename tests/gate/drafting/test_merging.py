"""A merge loses nothing that either changed, and says where both did."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gate.drafting.merging import MIDDLE, MINE, THEIRS, merge

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=12)


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_what_only_one_changed_is_taken() -> None:
    base = text(["a", "b", "c", "d", "e"])
    mine = text(["a", "B", "c", "d", "e"])
    theirs = text(["a", "b", "c", "new", "d"])
    merged = merge(base, mine, theirs)
    assert (merged.text, merged.conflicts) == (text(["a", "B", "c", "new", "d"]), 0)


def test_what_both_changed_stands_in_the_text_twice() -> None:
    merged = merge("a\nb\nc\n", "a\nmine\nc\n", "a\ntheirs\nc")
    assert merged.conflicts == 1
    assert merged.text == f"a\n{MINE}\nmine\nc\n{MIDDLE}\ntheirs\nc\n{THEIRS}\n"


def test_the_same_change_is_no_conflict() -> None:
    assert merge("a\nb\nc\n", "x\nb\nc\n", "x\nb\nd\n").text == "x\nb\nd\n"


@given(LINES, LINES)
def test_where_one_changed_nothing_the_other_is_the_result(base: list[str], changed: list[str]) -> None:
    for merged in (
        merge(text(base), text(changed), text(base)),
        merge(text(base), text(base), text(changed)),
        merge(text(base), text(changed), text(changed)),
    ):
        assert (merged.text, merged.conflicts) == (text(changed), 0)


@given(LINES, LINES, LINES)
def test_a_merge_loses_no_line_that_either_added(base: list[str], mine: list[str], theirs: list[str]) -> None:
    merged = merge(text(base), text(mine), text(theirs))
    lines = merged.text.splitlines()
    for added in ({*mine} - {*base}, {*theirs} - {*base}):
        assert added <= {*lines}
    assert (merged.conflicts > 0) == (MINE in lines)
    # Turned around, the same is in conflict.
    assert merge(text(base), text(theirs), text(mine)).conflicts == merged.conflicts
