"""A line the size of a word."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, fromstring

import pytest

from tests.workbench.hostile import NAMES
from workbench.charts.sparkline import sparkline

_SVG: Final = "{http://www.w3.org/2000/svg}"


def drawn(values: list[float | None], label: str = "Success rate") -> Element:
    return fromstring(sparkline(values, label=label))  # noqa: S314 - made by this process


def lines(svg: Element) -> list[list[tuple[float, float]]]:
    """The points of each line."""
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in of.attrib["points"].split())]
        for of in svg.iter(f"{_SVG}polyline")
    ]


def last_dot(svg: Element) -> tuple[float, float]:
    *_, last = svg.iter(f"{_SVG}circle")
    return float(last.attrib["cx"]), float(last.attrib["cy"])


def test_it_goes_from_the_left_to_the_right_and_up_where_numbers_grow() -> None:
    svg = drawn([1, 2, 4])
    assert (svg.attrib["width"], svg.attrib["height"]) == ("120", "28")
    ((first, middle, last),) = lines(svg)
    assert first[0] < middle[0] < last[0] <= 120
    assert first[1] > middle[1] > last[1] >= 0
    assert last_dot(svg) == last


def test_a_number_that_is_missing_leaves_a_gap() -> None:
    svg = drawn([1, 2, None, 3, math.nan, 5, 6, None])
    assert [len(line) for line in lines(svg)] == [2, 2]
    # The single one is a dot, and the last that is known the larger dot.
    assert len(list(svg.iter(f"{_SVG}circle"))) == 2
    assert last_dot(svg) == lines(svg)[-1][-1]


def test_equal_numbers_make_a_level_line_in_the_middle() -> None:
    ((first, last),) = lines(drawn([3, 3]))
    assert first[1] == last[1] == 14


@pytest.mark.parametrize("values", [[], [None], [math.inf, None]])
def test_without_numbers_it_is_empty_and_still_labelled(values: list[float | None]) -> None:
    svg = drawn(values)
    assert list(svg) == []
    assert svg.attrib["aria-label"] == "Success rate"


@pytest.mark.parametrize("name", NAMES)
def test_its_label_is_text(name: str) -> None:
    label = "".join(character for character in name if character.isprintable())
    svg = drawn([1, 2], label)
    assert svg.attrib["aria-label"] == label
    assert {of.tag.removeprefix(_SVG) for of in svg.iter()} == {"svg", "polyline", "circle"}


def test_it_waits_for_no_altair() -> None:
    code = "import sys, workbench.charts.sparkline; assert 'altair' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
