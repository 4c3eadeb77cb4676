"""The colors of all charts: one for each meaning, distinct for people with any color vision.

A notebook shows these colors unchanged. On a page, each color is a CSS variable with one value on white and one on dark
(`VARIABLES`). On both, marks have a contrast of at least 3, and texts of at least 4.5.

Meanings have colors of the palette of Okabe and Ito. Policy versions and reason codes have no meaning of their own.
They have the "muted" colors of Paul Tol, each with a shape, so that no version looks like a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

_GREEN: Final = "#009e73"
_VERMILION: Final = "#d55e00"
_SKY: Final = "#56b4e9"

OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Verdicts, and the outcomes that answer to them.
        "yes": _GREEN,
        "no": _VERMILION,
        "review": _SKY,
        "succeeded": _GREEN,
        "partial": "#e69f00",
        "failed": _VERMILION,
        "reverted": "#cc79a7",
        "pending": "#8c8c8c",
        "unreported": "#8c8c8c",
        # Severities, from dark to light.
        "high": "#7f2704",
        "medium": "#d94801",
        "low": "#fdae6b",
    }
)
"""The color of each verdict, outcome status and severity. `review` is one meaning, as a verdict and as an outcome."""

FIGURE: Final = "#0072b2"
"""The scope's own numbers, where they are no verdict or outcome."""

REFERENCE: Final = "#404040"
"""What the own numbers are compared with: other scopes, earlier weeks, usual values, a score."""

FEW: Final = "#b8b8b8"
"""Rates of too few cases."""

WINDOW: Final = "#f0e442"
"""The time that an anomaly is about."""

NAMES: Final = ("#332288", "#44aa99", "#882255", "#999933", "#aa4499", "#88ccee", "#117733", "#ddcc77")
"""Versions and other names, in their order."""

SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)
"""For each of them a shape, so that nothing depends on color alone."""


def of_names(names: Sequence[str]) -> list[str]:
    """The color of each name: that of its meaning, or else the next of `NAMES`; at most as many as there are."""
    free = iter(NAMES)
    return [OF.get(name) or next(free) for name in names]


class Variable(NamedTuple):
    """A color of a page.

    Attributes:
        name: The CSS variable.
        light: Its value on white.
        dark: Its value on dark.
    """

    name: str
    light: str
    dark: str


VARIABLES: Final[Mapping[str, Variable]] = MappingProxyType(
    {
        # Surface and text, which Vega calls white and black.
        "#ffffff": Variable("--chart-surface", "#ffffff", "#14181f"),
        "#000000": Variable("--chart-text", "#1b1f26", "#e6e9ee"),
        "#888888": Variable("--chart-axis", "#767b84", "#838b97"),
        "#dddddd": Variable("--chart-grid", "#dfe2e7", "#2f3640"),
        REFERENCE: Variable("--chart-reference", "#404040", "#c5ccd6"),
        FIGURE: Variable("--chart-figure", "#0072b2", "#4ba3e3"),
        FEW: Variable("--chart-few", "#939393", "#6f7783"),
        WINDOW: Variable("--chart-window", "#f0e442", "#8a8220"),
        OF["yes"]: Variable("--chart-yes", "#008a64", "#2bbd92"),
        OF["no"]: Variable("--chart-no", "#c95600", "#ef7d33"),
        OF["review"]: Variable("--chart-review", "#2c8fcb", "#6cc0f0"),
        OF["partial"]: Variable("--chart-partial", "#b07a00", "#e8ab2b"),
        OF["reverted"]: Variable("--chart-reverted", "#b9618f", "#d98db8"),
        OF["pending"]: Variable("--chart-pending", "#858585", "#9a9fa8"),
        # What is severe stands out: it is the darkest on white, and the lightest on dark.
        OF["high"]: Variable("--chart-high", "#7f2704", "#ffb592"),
        OF["medium"]: Variable("--chart-medium", "#d94801", "#ea7a45"),
        OF["low"]: Variable("--chart-low", "#dd7526", "#a8603a"),
        **{
            colour: Variable(f"--chart-name-{number}", *values)
            for number, (colour, values) in enumerate(
                zip(
                    NAMES,
                    (
                        ("#332288", "#9b8cf2"),
                        ("#2f9383", "#44aa99"),
                        ("#882255", "#d4649a"),
                        ("#8a8a2a", "#b5b54a"),
                        ("#aa4499", "#cf6fc0"),
                        ("#3f97bf", "#88ccee"),
                        ("#117733", "#3aa860"),
                        ("#a38a2c", "#ddcc77"),
                    ),
                    strict=True,
                ),
                1,
            )
        },
    }
)
"""The variable of each color that charts are drawn in."""


THEMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "light": MappingProxyType({of.name: of.light for of in VARIABLES.values()}),
        "dark": MappingProxyType({of.name: of.dark for of in VARIABLES.values()}),
    }
)
"""The values of all variables, by theme."""


def variable(colour: str) -> str:
    """A color of a chart as a page writes it: its variable, with the value on white where a page sets none."""
    of = VARIABLES[colour]
    return f"var({of.name}, {of.light})"


def stylesheet() -> str:
    """The values of all variables, as CSS.

    The dark ones apply where the reader's system is dark, unless the root element's `data-theme` is `light`, and where
    that is `dark`; paper is always light.
    """
    light, dark = ("".join(f"{name}:{value};" for name, value in THEMES[theme].items()) for theme in ("light", "dark"))
    return (
        f":root{{{light}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n'
    )
