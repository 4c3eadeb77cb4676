"""Files of past cases: what is read of each kind, and which sentence a hostile one gets, in bounded memory."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import OperatorError
from tests.support.torture import size
from tests.workbench.history.importing import imported, plan_of, refusals, rehearsed, small_map, write_csv
from workbench.history.accounts.summary import columns_of
from workbench.history.csv_source import CsvSource
from workbench.history.importing import rehearse
from workbench.history.mapping import load_map
from workbench.history.sources import Cursor, examine, opened

GOOD = b"id,when,n\r\na,2024-01-01,1\r\n"

UNUSABLE = {
    "utf16": ("id,when,n\r\n".encode("utf-16"), "UTF-16"),
    "latin1": (GOOD + "b,2024-01-01,\xe9\r\n".encode("latin-1"), r"is not UTF-8.*line 3"),
    "nul": (GOOD + b"b,2024-01-01,\0\r\n", r"NUL byte.*line 3"),
    "carriage_return": (GOOD + b"b,2024-01-01,1\rc,2024-01-01,1\r\n", r"carriage return.*line 3"),
    "open_quote": (GOOD + b'b,"2024-01-01,1\r\n', r"unclosed quote.*line 3"),
    "quote_within": (GOOD + b'b,20"24-01"-01,1\r\n', r"quote inside a cell.*line 3"),
    "quote_then_text": (GOOD + b'"b"x,2024-01-01,1\r\n', r"quote inside a cell.*line 3"),
    "empty": (b"", "has no header"),
    "blank": (b"\r\n", "has no header"),
    "twice": (b"id,when,n,n\r\n", "the column 'n' twice"),
    "workbook": (b"PK\x03\x04 etc", "workbook"),
    "packed": (b"\x1f\x8b etc", "gzip"),
    "long_row": (GOOD + b"b," + b"x" * 1_100_000 + b",1\r\n", r"more than 1,048,576 bytes.*line 3"),
    "long_header": (b"x" * 1_100_000, r"more than 1,048,576 bytes"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_csv_file_that_cannot_be_read_says_where_and_why(tmp_path: Path, name: str) -> None:
    content, sentence = UNUSABLE[name]
    file = tmp_path / "past.csv"
    file.write_bytes(content)
    with pytest.raises(OperatorError, match=sentence) as error:
        rehearsed(tmp_path, [file])
    assert error.value.code == "HISTORY_SOURCE_UNUSABLE"
    assert str(file) in error.value.message


def test_a_missing_column_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "past.csv", [], header=("id", "whem", "n"))
    with pytest.raises(OperatorError, match=r"no column 'when'.*Did you mean 'whem'") as error:
        rehearsed(tmp_path, [file])
    assert error.value.code == "HISTORY_COLUMN_MISSING"


def test_semicolons_are_recognized_and_not_read(tmp_path: Path) -> None:
    file = tmp_path / "past.csv"
    file.write_bytes(b"id;when;n\r\na;2024-01-01;1\r\n")
    with pytest.raises(OperatorError, match="semicolons"):
        rehearsed(tmp_path, [file])


def test_each_bad_row_is_refused_with_its_place_and_reason(tmp_path: Path) -> None:
    rows = [
        ("a", "2024-01-01", "1"),
        ("b", "2024-01-01", "n/a"),
        ("c", "31.12.2024", "1"),
        ("a", "2024-01-02", "1"),
        ("", "2024-01-02", "1"),
        ("d", "2024-01-02", "007"),
        ("e", "2024-01-02", "1e999"),
        ("f", "2024-01-02", "12345678901234567890"),
        ("g", "2024-01-02", ""),
    ]
    file = write_csv(tmp_path / "past.csv", rows)
    with file.open("ab") as opened_:
        opened_.write(b"h,2024-01-03\r\n")
    done = rehearsed(tmp_path, [file])
    assert refusals(done) == [
        (2, "n", "n/a", "number"),
        (3, "when", "31.12.2024", "time"),
        (4, "id", "a", "duplicate_id"),
        (5, "id", "", "missing"),
        (6, "n", "007", "number"),
        (7, "n", "1e999", "number"),
        (8, "n", "12345678901234567890", "number"),
        (10, None, None, "cells"),
    ]
    assert done.account is not None
    assert (done.account.read, done.account.rows, done.account.refused) == (10, 2, 8)
    assert done.account.tallies["facts.n"].absent == 1


def test_a_null_value_of_the_map_is_no_fact_and_no_fault(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "past.csv", [("a", "2024-01-01", "n/a"), ("b", "2024-01-01", "2")])
    history = imported(plan_of(tmp_path / "lake", [file], small_map(null_values=["", "n/a"])))
    facts = history.facts(["n"]).sort("position").collect()
    assert facts["inputs"].to_list() == ["{}", '{"n":2}']
    assert facts["n:type"].to_list() == ["absent", "number"]


def test_a_cell_that_looks_like_a_formula_is_text_and_is_never_shown_raw(tmp_path: Path) -> None:
    formula = "=cmd|' /C calc'!A0"
    rows = [
        ("a", "2024-01-01", formula),
        (formula, "2024-01-01", "1"),
        ("-5", formula, "1"),
        ("b\x1b[2J", "2024-01-01", "1"),
    ]
    done = rehearsed(tmp_path, [write_csv(tmp_path / "past.csv", rows)])
    assert done.account is not None
    shown = json.dumps(done.account.to_dict())
    assert '"=cmd' not in shown
    assert "\"'=cmd" in shown
    assert "\\u001b" not in shown
    assert [code for _, _, _, code in refusals(done)] == ["number", "time", "id"]
    text = {"facts": {"n": {"column": "n", "type": "string"}}}
    file = write_csv(tmp_path / "text.csv", [("a", "2024-01-01", formula)])
    history = imported(plan_of(tmp_path / "lake", [file], small_map(**text)))
    assert json.loads(history.facts(["n"]).collect()["inputs"][0]) == {"n": formula}


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, sentence in (("pipe.csv", "not a regular file"), ("folder.csv", "."), ("none.csv", "cannot be read")):
        with pytest.raises(OperatorError, match=sentence) as error:
            examine(tmp_path / name, None)
        assert error.value.code == "HISTORY_SOURCE_UNUSABLE"
    with pytest.raises(OperatorError, match="does not end in"):
        examine(write_csv(tmp_path / "past.txt", []), None)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "past.csv", [("a", "2024-01-01", "1")])
    plan = plan_of(tmp_path / "lake", [file])
    with file.open("ab") as more:
        more.write(b"b,2024-01-01,2\r\n")
    with pytest.raises(OperatorError) as error:
        rehearse(plan)
    assert error.value.code == "HISTORY_SOURCE_CHANGED"


# --- Other kinds ------------------------------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"id": "a", "when": "2024-01-01", "n": 1.5},
    {"id": "b", "when": "2024-01-02", "n": None},
    {"id": "c", "when": "2024-01-03", "n": 3},
]


def test_every_kind_of_file_gives_the_same_cases(tmp_path: Path) -> None:
    write_csv(tmp_path / "past.csv", [(of["id"], of["when"], "" if of["n"] is None else str(of["n"])) for of in ROWS])
    (tmp_path / "past.jsonl").write_text("\ufeff" + "\n\n".join(map(json.dumps, ROWS)))
    pl.DataFrame(ROWS, strict=False).with_columns(pl.col("when").str.to_date()).write_parquet(tmp_path / "past.parquet")
    read = []
    for kind in ("csv", "jsonl", "parquet"):
        history = imported(plan_of(tmp_path / f"lake-{kind}", [tmp_path / f"past.{kind}"]))
        read.append(history.cases().join(history.facts(["n"]), on="position").sort("position").collect())
    assert read[0].equals(read[1])
    assert read[0].equals(read[2])
    assert read[0]["inputs"].to_list() == ['{"n":1.5}', "{}", '{"n":3}']


def test_a_bad_line_of_json_is_a_refused_row(tmp_path: Path) -> None:
    file = tmp_path / "past.jsonl"
    lines = ['{"id": "a", "when": "2024-01-01", "n": 1}', "{", "[]", '{"id": "b", "when": "2024-01-01", "n": {"x": 1}}']
    file.write_text("\n".join(lines))
    assert [(row, code) for row, _, _, code in refusals(rehearsed(tmp_path, [file]))] == [
        (2, "json"),
        (3, "json"),
        (4, "nested"),
    ]


def test_a_member_that_stands_twice_in_a_line_refuses_the_row(tmp_path: Path) -> None:
    file = tmp_path / "past.jsonl"
    lines = [
        '{"id": "a", "when": "2024-01-01", "n": 1}',
        '{"id": "b", "when": "2024-01-01", "n": 1, "n": 2}',
        '{"id": "c", "when": "2024-01-01", "n" : 1, "x": {"y": ":", "y": 2}}',
        '{"id": "d:e", "when": "2024-01-01", "n": 3, "\\u003a": ":"}',
    ]
    file.write_text("\n".join(lines))
    found = rehearsed(tmp_path, [file])
    assert [(row, code) for row, _, _, code in refusals(found)] == [(2, "json"), (3, "json")]


def test_members_within_objects_are_columns_by_their_path(tmp_path: Path) -> None:
    file = tmp_path / "past.jsonl"
    file.write_text(json.dumps({"id": 7, "when": "2024-01-01", "order": {"total": 12.5}}))
    facts = {"order.total": {"column": "order.total", "type": "number"}}
    history = imported(plan_of(tmp_path / "lake", [file], small_map(facts=facts)))
    assert history.facts(["order.total"]).collect()["inputs"][0] == '{"order":{"total":12.5}}'
    assert history.cases().collect()["decision_id"].to_list() == ["row:7"]


def parquet(file: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), file)
    return file


DAY = date(2024, 6, 30)
LATE = "2024-06-30T16:00:00.000Z"
NOON = datetime(2024, 6, 30, 12, 0, 0, 250_000)  # noqa: DTZ001 - as a file without zones has it
TWICE = datetime(2024, 10, 27, 1, 30)  # noqa: DTZ001


@pytest.mark.parametrize("format_", [None, "iso8601", "date", "%d.%m.%Y", "unix_seconds"])
@pytest.mark.parametrize(
    ("cell", "type_", "moment"),
    [
        (DAY, pa.date32(), "2024-06-29T15:00:00.000Z"),
        (DAY, pa.date64(), "2024-06-29T15:00:00.000Z"),
        (NOON.replace(microsecond=0), pa.timestamp("s"), "2024-06-30T03:00:00.000Z"),
        *((NOON, pa.timestamp(unit), "2024-06-30T03:00:00.250Z") for unit in ("ms", "us", "ns")),
        *((NOON, pa.timestamp(unit, "UTC"), "2024-06-30T12:00:00.250Z") for unit in ("ms", "us", "ns")),
        (
            NOON.replace(microsecond=0, tzinfo=ZoneInfo("America/New_York")),
            pa.timestamp("us", "America/New_York"),
            LATE,
        ),
    ],
)
def test_dates_and_times_of_parquet_are_understood_whatever_their_unit_and_the_format(
    cell: date, type_: pa.DataType, moment: str, format_: str | None, tmp_path: Path
) -> None:
    file = parquet(tmp_path / "past.parquet", id=["a", "b"], when=pa.array([cell, None], type_), n=[1, 2])
    column = {"column": "when", "zone": "Asia/Tokyo", **({} if format_ is None else {"format": format_})}
    done = rehearsed(tmp_path, [file], small_map(occurred_at=column))
    assert done.account is not None
    assert (done.account.first, done.account.last) == (moment, moment)
    assert refusals(done) == [(2, "when", None, "missing")]


def test_a_time_of_parquet_that_a_clock_showed_twice_or_that_has_no_year_is_refused(tmp_path: Path) -> None:
    twice = parquet(tmp_path / "twice.parquet", id=["a"], when=pa.array([TWICE], pa.timestamp("us")), n=[1])
    far = parquet(
        tmp_path / "far.parquet", id=["a"], when=pa.array([253_402_300_800], pa.int64()).cast(pa.timestamp("s")), n=[1]
    )
    map_ = small_map(occurred_at={"column": "when", "zone": "Europe/Lisbon"})
    for file, start in ((twice, "The clock in Europe/Lisbon showed this time twice."), (far, "There is no such day")):
        done = rehearsed(tmp_path, [file], map_)
        assert done.account is not None
        assert [of["reason"][: len(start)] for of in done.account.shown] == [start]


@pytest.mark.parametrize("kind", [None, "csv"])
@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (b"PK\x03\x04", "is a workbook or zip archive, which cannot be read: save each sheet as CSV"),
        (b"\xd0\xcf\x11\xe0", "is an old Excel workbook"),
        (b"\x1f\x8b", "is compressed with gzip; unpack it first"),
    ],
)
def test_a_workbook_or_a_compressed_file_is_refused_with_what_to_do(
    start: bytes, sentence: str, kind: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "past.xlsx"
    file.write_bytes(start + b"...")
    with pytest.raises(OperatorError, match=sentence) as error:
        examine(file, kind)
    assert error.value.code == "HISTORY_SOURCE_UNUSABLE"


def test_a_parquet_file_that_unpacks_to_too_much_is_refused_by_its_footer(tmp_path: Path) -> None:
    rows = 70_000
    texts = pa.array(["x" * 8_000] * rows, pa.large_string())
    file = tmp_path / "bomb.parquet"
    table = pa.table({"id": texts, "when": ["2024-01-01"] * rows, "n": ["1"] * rows})
    pq.write_table(table, file, compression="zstd", use_dictionary=False)
    assert file.stat().st_size < 1_000_000
    with pytest.raises(OperatorError, match=r"row group that unpacks to 5\d\d,\d{3},\d{3} bytes"):
        rehearsed(tmp_path, [file])


def test_a_long_text_in_a_dictionary_is_measured_before_it_is_unpacked(tmp_path: Path) -> None:
    rows = 100_000
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 900_000])
    file = parquet(tmp_path / "bomb.parquet", id=texts, when=["2024-01-01"] * rows, n=["1"] * rows)
    with pytest.raises(OperatorError, match="unpack to more than can be read"):
        rehearsed(tmp_path, [file])


def test_a_parquet_file_cut_short_or_of_lists_is_refused(tmp_path: Path) -> None:
    file = parquet(tmp_path / "past.parquet", id=["a"], when=["2024-01-01"], n=[[1]])
    with pytest.raises(OperatorError, match="lists or structs"):
        rehearsed(tmp_path, [file])
    (tmp_path / "short.parquet").write_bytes(file.read_bytes()[:-20])
    with pytest.raises(OperatorError, match="not a complete Parquet file"):
        rehearsed(tmp_path, [tmp_path / "short.parquet"])


# --- Memory -----------------------------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
from pathlib import Path
from gate.errors import OperatorError
from tests.workbench.history.importing import rehearsed
from workbench.history import csv_source, row_sources
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    rehearsed(Path(sys.argv[1]).parent, [Path(sys.argv[1])])
except OperatorError as error:
    print(error.code)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_cell_of_a_gigabyte_is_refused_in_bounded_memory(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"past.{kind}"
    with file.open("wb") as opened_:
        opened_.write(b'id,when,n\r\na,2024-01-01,"' if kind == "csv" else b'{"id": "')
        for _ in range(size(128, 1024)):
            opened_.write(b"x" * 1024 * 1024)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(file)], capture_output=True, text=True, check=True)
    code, grown = done.stdout.split()
    assert code == "HISTORY_SOURCE_UNUSABLE"
    assert int(grown) < 100 * 1024


# --- CSV as Python writes it ------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
WRITTEN = st.tuples(
    TEXT,
    st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    st.one_of(st.none(), st.integers(-(2**53) + 1, 2**53 - 1)),
    st.one_of(st.none(), st.booleans()),
)
TYPES = {
    "text": {"column": "text", "type": "string"},
    "of.number": {"column": "number", "type": "number"},
    "of.whole": {"column": "whole", "type": "integer"},
    "truth": {"column": "truth", "type": "boolean"},
}


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(WRITTEN, min_size=1, max_size=12), ending=st.sampled_from(["\r\n", "\n"]))
def test_whatever_python_writes_as_csv_comes_back_as_facts(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], ending: str
) -> None:
    tmp_path = tmp_path_factory.mktemp("written")
    file = tmp_path / "past.csv"
    told: dict[Any, str] = {None: "", True: "true", False: "false"}
    with file.open("w", newline="", encoding="utf-8") as opened_:
        # With line feeds alone, Python does not quote a carriage return, which then ends a line for some readers.
        if ending == "\r\n":
            writer = csv.writer(opened_)
        else:
            writer = csv.writer(opened_, lineterminator=ending, quoting=csv.QUOTE_ALL)
        writer.writerow(["id", "when", "text", "number", "whole", "truth"])
        for at, (text, number, whole, truth) in enumerate(rows):
            numbers = ["" if of is None else repr(of) for of in (number, whole)]
            writer.writerow([f"r{at}", "2024-01-01", text, *numbers, told[truth]])
    history = imported(plan_of(tmp_path / "lake", [file], small_map(facts=TYPES)))
    facts = history.facts([]).sort("position").collect()["inputs"].to_list()
    expected = []
    for text, number, whole, truth in rows:
        within = {name: value for name, value in (("number", number), ("whole", whole)) if value is not None}
        of = {"of": within or None, "text": text or None, "truth": truth}
        expected.append({name: value for name, value in of.items() if value is not None})
    assert [json.loads(of, parse_int=float) for of in facts] == expected


def test_batches_depend_on_where_they_begin_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.history.csv_source._BLOCK", 4_096)
    monkeypatch.setattr("workbench.history.csv_source.MAX_RECORD", 1_024)
    monkeypatch.setattr("workbench.history.csv_source.MAX_ROWS", 50)
    text = io.StringIO()
    csv.writer(text).writerows([("id", "n"), *((f"r{at}", 'a "b"\r\n' * (at % 7)) for at in range(900))])
    file = tmp_path / "past.csv"
    file.write_bytes(text.getvalue().encode())
    with opened(file) as opened_:
        every = list(CsvSource(file, opened_, ["id", "n"]).batches(Cursor()))
        assert len(every) > 10
        assert sum(batch.rows for batch in every) == 900
        for number, batch in enumerate(every[:-1]):
            after = next(CsvSource(file, opened_, ["id", "n"]).batches(batch.cursor), None)
            assert after is not None
            assert after.frame.equals(every[number + 1].frame)
            assert after.cursor == every[number + 1].cursor
        whole = pl.concat([batch.frame for batch in every])
    read = list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1:]
    assert whole.select("id", "n").rows() == [tuple(row) for row in read]


def test_each_column_has_as_many_refused_cells_as_its_reasons_say(tmp_path: Path) -> None:
    rows = [
        ("a", "2024-01-01", "1"),
        ("a", "2024-01-02", "2"),
        ("a", "2024-01-03", "3"),
        ("b", "tomorrow", "x"),
        ("c", "", "x"),
        ("", "2024-01-04", "4"),
        ("d", "2024-01-05"),
    ]
    map_ = small_map(metrics={"n": {"column": "n"}})
    done = rehearsed(tmp_path, [write_csv(tmp_path / "x.csv", rows)], map_)
    assert done.account is not None
    body = done.account.to_dict()
    found = {
        of["member"]: (of["values"], of["absent"], of["refused"])
        for of in columns_of(done.account, load_map(map_, "map"))
    }
    assert found == {"id": (3, 0, 3), "occurred_at": (4, 0, 2), "metrics.n": (4, 0, 2), "facts.n": (4, 0, 2)}
    reasons = [(of["column"], of["code"], of["rows"]) for of in body["reasons"]]
    assert sorted(reasons, key=str) == [
        ("id", "duplicate_id", 2),
        ("id", "missing", 1),
        ("n", "number", 2),
        ("when", "missing", 1),
        ("when", "time", 1),
        (None, "cells", 1),
    ]
    assert (body["read"], body["rows"], body["refused"], len(body["first_refused"])) == (7, 1, 6, 6)
