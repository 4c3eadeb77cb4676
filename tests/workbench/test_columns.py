"""Every table and column of the lake is described where it is defined, and the pages of the reference list them."""

from __future__ import annotations

import re
from typing import Final

import polars as pl
import pytest

from docs.tools.reference.workbench.lake import pages
from gate.records.reports.receipts import KINDS
from tests.support.documentation import rows
from workbench.columns import BENCHMARKS, ENTRY_TABLES, MEANINGS, TABLES, TIME_COLUMNS, personal_columns, schema

SENTENCE: Final = re.compile(r"[A-Z`].*[.]", re.DOTALL)


def test_every_table_and_column_is_described_in_sentences() -> None:
    assert list(MEANINGS) == [*TABLES, "benchmarks"]
    columns = [column.meaning for table in (*TABLES.values(), BENCHMARKS) for column in table.values()]
    assert [meaning for meaning in (*MEANINGS.values(), *columns) if not SENTENCE.fullmatch(meaning)] == []


@pytest.mark.parametrize("name", MEANINGS)
def test_the_page_of_a_table_lists_its_columns(name: str) -> None:
    listed = [cells[0] for cells in rows(pages()[f"lake/{name}.md"])]
    assert listed == [f"`{column}`" for column in {**TABLES, "benchmarks": BENCHMARKS}[name]]


def test_the_index_lists_every_table() -> None:
    assert re.findall(r"\(lake/(\w+)\.md\)", pages()["lake.md"]) == list(MEANINGS)


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
