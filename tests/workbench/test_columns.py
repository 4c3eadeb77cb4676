"""docs/lake.md lists every table and column as they are defined."""

from __future__ import annotations

import re
from typing import Any, Final

import polars as pl

from gate.records.reports.receipts import KINDS
from tests.end_to_end.support import ROOT
from tests.support.documentation import rows, section
from workbench.columns import BENCHMARKS, ENTRY_TABLES, TABLES, TIME_COLUMNS, personal_columns, schema

PAGE: Final = (ROOT / "docs" / "lake.md").read_text()
NAMES: Final = {pl.String: "text", pl.Int64: "integer", pl.Float64: "number", pl.Boolean: "boolean", pl.Date: "date"}


def type_name(dtype: Any) -> str:
    """What docs/lake.md calls a type."""
    if isinstance(dtype, pl.Enum):
        return "enum"
    if isinstance(dtype, pl.Datetime):
        return "time"
    if isinstance(dtype, pl.List):
        if isinstance(dtype.inner, pl.Struct):
            return f"list of {{{', '.join(field.name for field in dtype.inner.fields)}}}"
        return f"list of {type_name(dtype.inner)}"
    return next(name for of, name in NAMES.items() if dtype == of)


def test_the_page_lists_every_table_with_its_columns() -> None:
    listed: dict[str, list[tuple[str, ...]]] = {}
    for name, table in re.findall(r"^### (\w+)\n\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE):
        rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()[2:]]
        listed[name] = [(column.strip("`"), kind, meaning) for column, kind, meaning in rows]
    assert listed == {
        name: [
            (column, type_name(of.dtype), f"{of.meaning} *" if of.personal else of.meaning)
            for column, of in table.items()
        ]
        for name, table in TABLES.items()
    }


def test_the_page_of_benchmarks_lists_what_is_frozen() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    listed = [row[:3] for row in rows(section(page, "## What is frozen")) if len(row) == 3]
    assert listed == [[f"`{name}`", type_name(of.dtype), of.meaning] for name, of in BENCHMARKS.items()]


def test_every_table_begins_with_its_scope_and_has_a_column_that_tells_its_month() -> None:
    for name in TABLES:
        assert list(schema(name))[:2] == ["scope_id", "position"]
        assert isinstance(schema(name)[TIME_COLUMNS[name]], pl.Datetime)


def test_there_is_a_table_for_every_type_of_entry() -> None:
    others = {"decision", "resolution", "erasure", "migration", "route"}
    assert set(ENTRY_TABLES) == others | {*(kind.entry_type for kind in KINDS)}


def test_what_proves_a_row_cannot_be_left_out() -> None:
    kept = {"position", "decision_id", "record_hash", "receipt_hash", "leaf_hash", "merkle_root", "link_hash"}
    assert personal_columns().isdisjoint(kept | {"scope_id", "policy_id", "verdict", "outcome_status", "created_at"})
