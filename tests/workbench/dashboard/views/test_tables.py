"""Tables of numbers as values, and as HTML."""

from __future__ import annotations

import pytest

from workbench.dashboard.views.html import points
from workbench.dashboard.views.tables import Cell, Column, table


def test_columns_of_numbers_are_marked_and_texts_are_cells() -> None:
    made = table("Rates", "Of a month.", ("Rate", "#Yours"), [("Success", "90%"), (Cell("Approval", "/policy"), "50%")])
    assert made.columns == (Column("Rate"), Column("Yours", number=True))
    assert made.rows[0] == (Cell("Success"), Cell("90%"))
    assert made.rows[1][0].url == "/policy"


@pytest.mark.parametrize(
    ("share", "shown"), [(0.044611, "+4.5"), (-0.00917, "-0.9"), (0.0, "+0.0"), (1.0, "+100.0"), (None, "-")]
)
def test_differences_are_told_in_percentage_points(share: float | None, shown: str) -> None:
    assert points(share) == shown
