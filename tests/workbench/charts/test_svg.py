"""A chart as part of a page: shapes, texts and links alone, whatever callers named and whatever a chart contains."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import Element, fromstring

import polars as pl
import pytest

from gate.policy.effectiveness import Standing
from tests.support.reports import report_of_versions
from tests.workbench.charts.frames import MONDAY, charts, leads, mix, reasons
from tests.workbench.hostile import NAMES, TAGS
from workbench.charts.colours import VARIABLES, variable
from workbench.engines.effectiveness import EffectivenessReport

if TYPE_CHECKING:
    import altair as alt

_SVG: Final = "{http://www.w3.org/2000/svg}"
_ELEMENTS: Final = {"svg", "g", "a", "title", "text", "tspan", "path", "rect", "line"}
_STATUSES: Final = ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")

Chart: TypeAlias = "alt.LayerChart | alt.FacetChart"


def weekly(**more: Any) -> Chart:
    """The chart of a version that succeeded in 33 of 52 cases of one week."""
    counts = dict.fromkeys(_STATUSES, 0) | {"succeeded": 33, "failed": 19}
    rates = {"decisions": 52, "success_rate": 33 / 52, "low": 0.5, "high": 0.75, "terminal_coverage": 1.0}
    rows = pl.DataFrame([{"week": MONDAY, "policy_version": "2026-07-20", **counts, **rates}])
    body = report_of_versions({"2026-07-20": Standing(succeeded=33, failed=19)})
    return EffectivenessReport(body, pl.DataFrame(), rows, "acme").plot(**more)


def drawn(chart: Chart, **more: Any) -> Element:
    from workbench.charts.svg import to_svg

    return parsed(to_svg(chart, **more))


def parsed(svg: str) -> Element:
    # The renderer's, in this process.
    return fromstring(svg)  # noqa: S314


def tag(element: Element) -> str:
    return element.tag.removeprefix(_SVG)


def links(svg: Element) -> Iterator[Element]:
    return svg.iter(f"{_SVG}a")


def texts(svg: Element) -> list[str]:
    """The texts that are seen."""
    return ["".join(of.itertext()) for of in svg.iter(f"{_SVG}text")]


@pytest.fixture(scope="module", params=NAMES, ids=["tags", "texts"])
def hostile(request: pytest.FixtureRequest) -> dict[str, str]:
    """Charts in which everything is named so that it would run, as SVG of the narrow width."""
    from workbench.charts.svg import to_svg

    return {name: to_svg(chart, width=350) for name, chart in charts(request.param).items()}


def test_hostile_names_become_nothing_but_text(hostile: dict[str, str]) -> None:
    for svg in hostile.values():
        root = parsed(svg)
        assert {tag(element) for element in root.iter()} <= _ELEMENTS
        for element in root.iter():
            assert not [name for name in element.attrib if name.startswith(("on", "{")) or name == "style"]
            values = [value for name, value in element.attrib.items() if name != "aria-label"]
            assert not [value for value in values if "//" in value or "javascript:" in value]
        # No other namespace, and no address but its own.
        assert svg.count("xmlns") == 1


def test_every_mark_that_leads_somewhere_is_a_link_with_a_label(hostile: dict[str, str]) -> None:
    for svg in hostile.values():
        root = parsed(svg)
        assert root.attrib["role"] == "group"
        found = list(links(root))
        assert found
        for link in found:
            assert link.attrib["href"].startswith("/decisions?")
            assert link.attrib["aria-label"].endswith("; shows these decisions")
            assert link.findtext(f"{_SVG}title") == link.attrib["aria-label"]


def test_a_link_says_what_its_mark_shows_and_leads_to_the_row_as_it_was_named() -> None:
    (link,) = links(drawn(weekly(link=leads), width=880))
    assert link.attrib["aria-label"] == (
        "Version 2026-07-20, week of 1 June 2026: 63% of 52 cases; shows these decisions"
    )
    asked = parse_qs(urlsplit(link.attrib["href"]).query)
    assert (asked["week"], asked["policy_version"]) == (["2026-06-01"], ["2026-07-20"])


def test_a_name_of_markup_arrives_whole_in_the_link() -> None:
    from workbench.charts.counts import reasons as plotted

    svg = drawn(plotted(reasons(TAGS), "Reasons", [], link=leads))
    asked = [parse_qs(urlsplit(link.attrib["href"]).query) for link in links(svg)]
    assert [of["reason_code"] for of in asked] == [[TAGS], [TAGS]]
    assert sorted(of["verdict"] for of in asked) == [["review"], ["yes"]]


def test_without_links_a_chart_is_one_picture_with_a_label() -> None:
    svg = drawn(weekly(), width=880)
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"].startswith("p succeeded in 63% of 52 let-through cases. Policy p in scope acme. ")
    assert list(links(svg)) == []


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "https://evil.example/",
        "//evil.example/",
        "https://workbench.invalid//evil.example/",
        "https://workbench.invalid/\\evil.example/",
        "https://workbench.invalid.evil.example/",
        "https://workbench.invalid",
        "/decisions",
    ],
)
def test_of_a_charts_links_only_those_of_the_own_server_are_kept(address: str) -> None:
    import altair as alt

    rows = pl.DataFrame({"at": [1, 2], "href": ["https://workbench.invalid/decisions?a=1&b=%22", address]})
    marks = alt.Chart(rows).mark_point().encode(x=alt.X("at:Q"), href=alt.Href("href:N"))
    assert [link.attrib["href"] for link in links(drawn(alt.layer(marks)))] == ["/decisions?a=1&b=%22"]


@pytest.mark.parametrize(
    "path", ["//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a b", '/"><script>']
)
def test_a_link_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        weekly(link=lambda _: path)


def test_a_mark_whose_link_is_none_leads_nowhere() -> None:
    svg = drawn(weekly(link=lambda _: None))
    assert (svg.attrib["role"], list(links(svg))) == ("img", [])


@pytest.mark.parametrize("width", [880, 350])
def test_a_chart_is_as_wide_as_it_is_asked_for_with_texts_at_their_size(width: int) -> None:
    for chart in charts("a_rather_long_name_of_a_version_or_a_rule").values():
        svg = drawn(chart, width=width, titled=False)
        assert svg.attrib["width"] == str(width)
        assert svg.attrib["viewBox"].split()[2] == str(width)
        assert {of.attrib["font-size"] for of in svg.iter(f"{_SVG}text")} == {"11px"}


def test_a_page_may_write_the_titles_itself() -> None:
    from workbench.charts.svg import titles

    chart = weekly()
    finding, notes = titles(chart)
    assert finding == "p succeeded in 63% of 52 let-through cases"
    assert notes[0] == "Policy p in scope acme."
    assert finding in texts(drawn(chart, width=880))
    without = drawn(chart, width=880, titled=False)
    assert finding not in " ".join(texts(without))
    assert without.attrib["aria-label"].startswith(finding)


def test_the_titles_of_a_narrow_chart_are_broken_into_more_lines() -> None:
    from workbench.charts.drawing import titled

    def lines(width: int) -> int:
        chart = titled([], "Words " * 20, [], width=680, height=100)
        return len(list(drawn(chart, width=width).iter(f"{_SVG}tspan")))

    assert lines(350) > lines(880) > 0


def test_all_colours_are_variables_of_the_page() -> None:
    known = {"none", "transparent", *(variable(colour) for colour in VARIABLES)}
    for chart in [*charts("name").values(), weekly()]:
        for element in drawn(chart).iter():
            assert {element.attrib[of] for of in ("fill", "stroke") if of in element.attrib} <= known


def test_equal_charts_make_equal_texts_and_charts_share_no_id() -> None:
    import altair as alt

    from workbench.charts.svg import to_svg

    assert to_svg(weekly(link=leads), width=350) == to_svg(weekly(link=leads), width=350)
    rows = pl.DataFrame({"x": [0, 5]})
    clipped = alt.layer(alt.Chart(rows).mark_line(clip=True).encode(x=alt.X("x:Q")))
    first, again, other = (to_svg(clipped, width=width) for width in (350, 350, 880))
    assert first == again
    ids = [re.findall(r' id="([^"]+)"', svg) for svg in (first, other)]
    assert len({*ids[0], *ids[1]}) == 2
    assert all(f"url(#{id_})" in svg for svg, (id_,) in zip((first, other), ids, strict=True))


def test_long_names_stand_above_their_rows_and_lose_their_middle_where_there_is_no_room() -> None:
    from workbench.charts.counts import reasons as plotted

    long = f"BEGIN_{'OF_A_LONG_NAME_' * 4}END"
    chart = plotted(reasons(long, "B"), "Reasons", [])
    wide, narrow = (texts(drawn(chart, width=width)) for width in (880, 350))
    assert long in wide
    (short,) = [text for text in narrow if text.startswith("BEGIN")]
    assert "…" in short
    assert short.endswith("END")
    assert "20 (67%)" not in narrow
    assert "40 (80%)" in narrow


def test_labels_that_overlap_are_left_out() -> None:
    from workbench.charts.weekly import verdicts

    wide, narrow = (
        [text for text in texts(drawn(verdicts(mix(8), "Verdicts", []), width=width)) if text.endswith(" 2026")]
        for width in (880, 350)
    )
    assert 0 < len(narrow) < len(wide) <= 8
    # Mondays, as the weeks begin.
    assert wide[0] == "1 Jun 2026"


def test_a_chart_of_facets_is_refused() -> None:
    import altair as alt

    from workbench.charts.svg import to_svg

    chart = alt.Chart(pl.DataFrame({"a": ["x"]})).mark_point().facet("a:N")
    with pytest.raises(ValueError, match="faceted"):
        to_svg(chart)


def test_moments_are_drawn_in_utc_wherever_the_machine_is() -> None:
    from workbench.charts.drawing import rows

    moment = datetime(2026, 1, 1, 3, tzinfo=UTC)
    frame = pl.DataFrame({"at": [moment], "there": [moment]})
    frame = frame.with_columns(pl.col("there").dt.convert_time_zone("Asia/Tokyo"))
    spec: dict[str, Any] = rows(frame).mark_point().to_dict()
    ((row,),) = spec["datasets"].values()
    # Without a zone: one that is stated would be moved to that of the machine.
    assert row == {"at": "2026-01-01T03:00:00", "there": "2026-01-01T03:00:00"}


def test_it_waits_for_no_grammar_of_addresses() -> None:
    """Jsonschema, which Altair loads, builds one for seconds where it can."""
    assert find_spec("lark"), "Nothing is shown where it is not installed."
    code = "import sys, workbench.charts.svg; assert 'lark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
