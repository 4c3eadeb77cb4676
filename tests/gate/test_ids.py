"""Timestamps: what is read as a moment, and what is not."""

from __future__ import annotations

import pytest

from gate.ids import parse_timestamp, timestamp
from tests.support.samples import cases


@pytest.mark.parametrize(("text", "utc"), cases("timestamps"), ids=ascii)
def test_a_time_with_its_zone_is_read_and_nothing_else(text: str, utc: str | None) -> None:
    if utc is None:
        with pytest.raises(ValueError, match=r"\w"):
            parse_timestamp(text)
    else:
        assert timestamp(parse_timestamp(text)) == utc
