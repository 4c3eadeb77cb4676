"""Maps of histories: strict, named by path, and times that mean one moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
import yaml

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.errors import OperatorError
from gate.ids import timestamp
from tests.workbench.history.importing import DATA, imported, plan_of, rehearsed, small_map, write_csv
from workbench.history.accounts.summary import warnings_of
from workbench.history.importing import rehearse
from workbench.history.mapping import load_map, read_map
from workbench.history.times import TimeFormat

CASES = Path(__file__).parents[2] / "cases"
MAPS = json.loads((CASES / "history_maps.json").read_text())
TIMES = json.loads((CASES / "history_times.json").read_text())


@pytest.mark.parametrize("case", MAPS, ids=lambda case: case["name"])
def test_a_wrong_member_is_named_by_its_path(case: dict[str, Any]) -> None:
    with pytest.raises(OperatorError) as error:
        load_map(small_map(**case["change"]), "map.yaml")
    assert error.value.code == "HISTORY_MAP_INVALID"
    assert (case["field"], case["code"]) in [(of.field, of.code) for of in error.value.errors]


@pytest.mark.parametrize("case", TIMES, ids=lambda case: f"{case['format']} {case['cell']!a}")
def test_a_time_is_one_moment_or_none(case: dict[str, Any]) -> None:
    written = TimeFormat(case["format"], case["zone"])
    found = pl.DataFrame({"cell": [None, case["cell"]]}).select(written.read(pl.col("cell"))).to_series().to_list()
    assert found[0] is None
    assert (None if found[1] is None else timestamp(found[1])) == case["moment"]


def test_the_sample_map_is_valid_by_the_published_schema() -> None:
    text = (DATA / "refunds.map.yaml").read_text()
    document = yaml.safe_load(text)
    jsonschema.Draft202012Validator(resources.schema("history-map-v1")).validate(document)
    assert read_map(text.encode(), "refunds.map.yaml").hash == content_hash(document)


def test_a_map_that_is_no_yaml_names_the_line() -> None:
    with pytest.raises(OperatorError, match="line 2"):
        read_map(b"id: {column: a}\nid: {column: b}\n", "map.yaml")


def test_comments_and_the_order_of_lines_are_no_part_of_the_hash() -> None:
    one = read_map(json.dumps(small_map()).encode(), "a.json")
    other = read_map(b"# a comment\n" + yaml.safe_dump(small_map()).encode(), "b.yaml")
    assert one.hash == other.hash


@pytest.mark.parametrize(
    ("column", "cell", "sentence"),
    [
        (
            {"column": "when", "format": "%d.%m.%Y %H:%M", "zone": "Europe/Lisbon"},
            "2024-06-30",
            "It does not match the format %d.%m.%Y %H:%M, for example 30.06.2024 12:00.",
        ),
        (
            {"column": "when", "format": "unix_seconds"},
            "yesterday",
            "It does not match the format unix_seconds, for example 1719748800.",
        ),
    ],
)
def test_a_time_that_does_not_fit_is_told_the_format_and_an_example(
    column: dict[str, str], cell: str, sentence: str, tmp_path: Path
) -> None:
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", [("a", cell, "1")])], small_map(occurred_at=column))
    assert done.account is not None
    assert [of["reason"] for of in done.account.shown] == [sentence]
    example = sentence.split("for example ")[1].removesuffix(".")
    other = rehearsed(tmp_path, [write_csv(tmp_path / "y.csv", [("a", example, "1")])], small_map(occurred_at=column))
    assert other.account is not None
    assert other.account.rows == 1


@pytest.mark.parametrize(
    ("column", "cell", "sentence"),
    [
        ({"format": "date"}, "2023-02-29", "There is no such day or time in the years 1 to 9999."),
        ({}, "2024-06-30T24:00Z", "There is no such day or time in the years 1 to 9999."),
        ({}, "0001-01-01T00:00+01:00", "There is no such day or time in the years 1 to 9999."),
        ({"zone": "Asia/Tokyo"}, "0001-01-01T00:00", "There is no such day or time in the years 1 to 9999."),
        (
            {"format": "unix_seconds"},
            "999999999999",
            "It does not match the format unix_seconds, for example 1719748800.",
        ),
        ({"format": "unix_milliseconds"}, "-99999999999999", "There is no such day or time"),
        (
            {"format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin"},
            "29.03.2026 02:30",
            "The clock in Europe/Berlin skipped this time. Correct it, or the time zone in the map.",
        ),
        (
            {"format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin"},
            "26.10.2025 02:30",
            "The clock in Europe/Berlin showed this time twice. Write times with their offset from UTC, and give the "
            "format %z.",
        ),
        (
            {"zone": "Europe/Berlin"},
            "2025-10-26T02:30",
            "The clock in Europe/Berlin showed this time twice. Write it with its offset from UTC, such as +01:00.",
        ),
    ],
)
def test_a_time_that_fits_the_format_is_refused_for_its_own_reason(
    column: dict[str, str], cell: str, sentence: str, tmp_path: Path
) -> None:
    map_ = small_map(occurred_at={"column": "when", **column})
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", [("a", cell, "1")])], map_)
    assert done.account is not None
    (reason,) = (of["reason"] for of in done.account.shown)
    assert reason.startswith(sentence)


def test_each_reason_of_a_column_of_times_is_counted_by_itself(tmp_path: Path) -> None:
    cells = ["2024-06-31", "tomorrow", "2023-02-29", "", "2024-06-30"]
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", [(f"r{at}", of, "1") for at, of in enumerate(cells)])])
    assert done.account is not None
    assert {of["reason"].split(" ")[0]: of["rows"] for of in done.account.to_dict()["reasons"]} == {
        "There": 2,
        "It": 1,
        "The": 1,
    }
    assert [of["reason"].split(" ")[0] for of in done.account.shown] == ["There", "It", "There", "The"]


NO_VALUE = "If it means that there is no value, add it to null_values in the map."


@pytest.mark.parametrize(
    ("kind", "cell", "sentence"),
    [
        *(("number", cell, f"It is not a number like 1250.5. {NO_VALUE}") for cell in ("two", "NaN", "-inf", "N/A")),
        *(("number", cell, "It is not a number like 1250.5. Remove") for cell in (".5", "5.", "+5", "7 ", "1,5", "01")),
        ("integer", "NaN", f"It is not a whole number like 1250. {NO_VALUE}"),
        ("integer", "1250.5", "It is not a whole number like 1250. If it may have decimals, map it as a number."),
        ("integer", "5e-1", "It is not a whole number like 1250. If it may have decimals, map it as a number."),
        ("number", "9007199254740993", "It is beyond 2^53 - 1, which JSON cannot represent exactly."),
        ("integer", "1e300", "It is beyond 2^53 - 1"),
        ("number", "1e999", "It is beyond 2^53 - 1"),
    ],
)
def test_a_number_is_refused_for_its_own_reason(kind: str, cell: str, sentence: str, tmp_path: Path) -> None:
    map_ = small_map(facts={"n": {"column": "n", "type": kind}})
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", [("a", "2024-01-01", cell)])], map_)
    assert done.account is not None
    (refused,) = done.account.shown
    assert (refused["code"], refused["reason"][: len(sentence)]) == (kind, sentence)


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_a_number_with_thousands_separators_is_told_to_remove_them(kind: str, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "x.csv", [("a", "2024-01-01", "1,234.50"), ("b", "2024-01-01", "1,234")])
    done = rehearsed(tmp_path, [file], small_map(facts={"n": {"column": "n", "type": kind}}))
    assert done.account is not None
    assert all("Remove thousands separators" in of["reason"] for of in done.account.shown)
    assert len(done.account.shown) == 2


def test_a_yes_means_the_same_with_and_without_quotes() -> None:
    quoted, plain = ((DATA / "refunds.map.yaml").read_text().replace(*of) for of in (("", ""), ('"yes"', "yes")))
    assert plain != quoted
    assert read_map(plain.encode(), "a.yaml").document == read_map(quoted.encode(), "b.yaml").document


@pytest.mark.parametrize("verdict", ["yes", "no", "review"])
def test_a_constant_verdict_is_that_of_every_row(tmp_path: Path, verdict: str) -> None:
    file = write_csv(tmp_path / "x.csv", [("a", "2024-01-01", "1"), ("b", "2024-01-02", "2")])
    cases = imported(plan_of(tmp_path / "lake", [file], small_map(verdict=verdict))).cases().collect()
    assert cases["verdict"].to_list() == [verdict, verdict]


def test_an_empty_version_becomes_imported_and_the_rehearsal_says_so(tmp_path: Path) -> None:
    map_ = small_map(policy_version={"column": "v"})
    rows = [("a", "2024-01-01", "1", "A"), ("b", "2024-01-02", "2", "")]
    plan = plan_of(tmp_path / "lake", [write_csv(tmp_path / "x.csv", rows, ("id", "when", "n", "v"))], map_)
    account = rehearse(plan).account
    assert account is not None
    assert warnings_of(account, plan.map_) == [
        "1 cell of v is empty: a row without a version gets the version imported."
    ]
    assert imported(plan).cases().sort("position").collect()["policy_version"].to_list() == ["A", "imported"]
