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
from tests.workbench.history.importing import DATA, small_map
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
