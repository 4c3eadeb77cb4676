"""The colours of a page: told apart from it in both themes, and from each other."""

from __future__ import annotations

import re

import pytest

from workbench.charts.colours import FEW, FIGURE, NAMES, OF, REFERENCE, THEMES, VARIABLES, stylesheet, variable

BACKGROUNDS = {"light": "#ffffff", "dark": "#14181f"}
MARKS = {"--chart-axis", *(VARIABLES[colour].name for colour in (*OF.values(), *NAMES, FIGURE, REFERENCE, FEW))}
TEXTS = {"--chart-text", "--chart-reference"}


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def over(colour: str, background: str, opacity: float) -> str:
    """A colour that lets the background through."""
    parts = [(int(colour[at : at + 2], 16), int(background[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(front * opacity + back * (1 - opacity)):02x}" for front, back in parts)


def test_the_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_marks_and_texts_are_seen_on_the_page(theme: str) -> None:
    values, background = THEMES[theme], BACKGROUNDS[theme]
    assert values["--chart-surface"] == background
    assert {name: contrast(values[name], background) for name in MARKS if contrast(values[name], background) < 3} == {}
    assert {name: values[name] for name in TEXTS if contrast(values[name], background) < 4.5} == {}


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_numbers_are_read_on_the_darkest_square_of_counterfactuals(theme: str) -> None:
    values = THEMES[theme]
    square = over(values["--chart-figure"], values["--chart-surface"], 0.5)
    assert contrast(values["--chart-text"], square) >= 4.5


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_no_two_colours_are_alike(theme: str) -> None:
    assert len({*THEMES[theme].values()}) == len(THEMES[theme]) == len(VARIABLES)


def test_every_colour_of_a_chart_has_a_variable() -> None:
    assert {*OF.values(), *NAMES, FIGURE, REFERENCE, FEW} <= {*VARIABLES}
    assert variable(FIGURE) == "var(--chart-figure, #0072b2)"


def test_the_stylesheet_sets_every_variable_for_both_themes_and_nothing_else() -> None:
    css = stylesheet()
    for theme, times in (("light", 1), ("dark", 2)):
        for name, value in THEMES[theme].items():
            assert css.count(f"{name}:{value};") >= times
    assert {*re.findall(r"[\w-]+(?=:#)", css)} == {*THEMES["light"]}
    assert css.count("{") == css.count("}") == 5
