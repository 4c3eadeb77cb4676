"""CSV that a spreadsheet reads and does not run."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding.csv_text import csv_row
from tests.support.samples import cases


@pytest.mark.parametrize("case", cases("csv_cells"), ids=lambda case: ascii(case["text"]))
def test_a_cell_is_quoted_and_a_formula_begins_with_an_apostrophe(case: dict[str, Any]) -> None:
    assert csv_row([case["text"]]) == case["cell"] + "\r\n"


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_reader_finds_each_text_again(cells: list[str]) -> None:
    (read,) = csv.reader(io.StringIO(csv_row(cells), newline=""), strict=True)
    assert [found in (text, f"'{text}") for found, text in zip(read, cells, strict=True)] == [True] * len(cells)
    assert not [
        found
        for found in read
        if found.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    ]
