"""Two texts that began as one, merged line by line, as version control does it.

    merged = merge(base, mine, theirs)
    merged.text, merged.conflicts

If only one author changed a stretch of lines, the merge takes the change. If both changed the same lines in different
ways, the text contains both, each below a line with its author. Such a text is not a rulebook until its author has
chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

MINE: Final = "<<<<<<< yours"
MIDDLE: Final = "======="
THEIRS: Final = ">>>>>>> theirs"
"""The lines around what both changed."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge.

    Attributes:
        text: The text.
        conflicts: How many stretches of lines both changed, each in another way.
    """

    text: str
    conflicts: int


def merge(base: str, mine: str, theirs: str) -> Merged:
    """Merges two texts.

    Args:
        base: The text that both began with.
        mine: The one.
        theirs: The other.
    """
    if mine == theirs or theirs == base:
        return Merged(mine, 0)
    if mine == base:
        return Merged(theirs, 0)
    lines = base.splitlines(keepends=True), mine.splitlines(keepends=True), theirs.splitlines(keepends=True)
    told: list[str] = []
    conflicts = 0
    for was, one, other in _stretches(*lines):
        if one == other or other == was:
            told += one
        elif one == was:
            told += other
        else:
            conflicts += 1
            told += [f"{MINE}\n", *_ended(one), f"{MIDDLE}\n", *_ended(other), f"{THEIRS}\n"]
    return Merged("".join(told), conflicts)


def _stretches(
    base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[Sequence[str], Sequence[str], Sequence[str]]]:
    """The texts cut where all three agree: stretches that they have alike, and what lies between these."""
    at = (0, 0, 0)
    for start, in_mine, in_theirs, length in _common(base, mine, theirs):
        yield base[at[0] : start], mine[at[1] : in_mine], theirs[at[2] : in_theirs]
        same = base[start : start + length]
        yield same, same, same
        at = (start + length, in_mine + length, in_theirs + length)
    yield base[at[0] :], mine[at[1] :], theirs[at[2] :]


def _common(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches of lines that all three have: where they begin in each, and how long they are."""
    ones, others = (SequenceMatcher(a=base, b=lines, autojunk=False).get_matching_blocks() for lines in (mine, theirs))
    first = second = 0
    while first < len(ones) and second < len(others):
        one, other = ones[first], others[second]
        begin, end = max(one.a, other.a), min(one.a + one.size, other.a + other.size)
        if begin < end:
            yield begin, one.b + begin - one.a, other.b + begin - other.a, end - begin
        if one.a + one.size < other.a + other.size:
            first += 1
        else:
            second += 1


def _ended(lines: Sequence[str]) -> Sequence[str]:
    # A text may end without the end of a line.
    return lines if not lines or lines[-1].endswith("\n") else [*lines[:-1], f"{lines[-1]}\n"]
