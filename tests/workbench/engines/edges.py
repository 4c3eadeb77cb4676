"""Snapshots of a few entries, and hostile text as a browser would show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.errors import OperatorError
from gate.ids import timestamp
from tests.independent import recount
from workbench.columns import schema
from workbench.lake.manifest import Manifest
from workbench.lake.reader import Snapshot

POLICY: Final = "refunds"

MONDAY: Final = datetime(2026, 6, 8, tzinfo=UTC)

HOSTILE: Final = "<script>alert(\"1\")</script>&<img src=x onerror='a()'>"

TAGS: Final = {"div", "style", "h3", "h4", "p", "small", "table", "thead", "tbody", "tr", "th", "td"}
"""The tags that reports are made of."""

Entry = dict[str, Any]


def decision(
    number: int, *, version: str = "1", verdict: str = "yes", policy_id: str = POLICY, hours: int = 0
) -> Entry:
    """What of a record is counted."""
    return {
        "decision_id": f"dec_{number}",
        "created_at": timestamp(MONDAY + timedelta(hours=hours)),
        "policy_id": policy_id,
        "policy_version": version,
        "verdict": verdict,
        "action": "refund",
        "evidence": ["CODE", "rule:default"],
    }


def outcome(number: int, status: str = "succeeded", *, hours: int = 0, **body: Any) -> Entry:
    """What of an outcome is counted; it is about the decision of that number."""
    told = {"outcome_id": f"out_{number}", "decision_id": f"dec_{number}", "outcome_status": status, **body}
    return {**told, "reported_at": timestamp(MONDAY + timedelta(hours=hours))}


def chained(entries: Sequence[Entry]) -> list[Entry]:
    """Entries with leaves of their own."""
    return [{**entry, "audit_chain": {"leaf_hash": f"{position:064x}"}} for position, entry in enumerate(entries, 1)]


def snapshot_of(entries: Sequence[Entry], lake: Path) -> Snapshot:
    """A chain of such entries, of which the lake holds nothing yet."""
    decisions: list[Entry] = []
    outcomes: list[Entry] = []
    places: dict[str, Entry] = {}
    for position, entry in enumerate(entries, 1):
        row = {"scope_id": "s1", "position": position, **entry}
        if "outcome_id" in entry:
            of = places[entry["decision_id"]]
            metrics = entry.get("observed_metrics")
            row["observed_metrics"] = metrics and [{"name": name, "value": value} for name, value in metrics.items()]
            policy = {name: of[name] for name in ("policy_id", "policy_version")}
            outcomes.append({**row, "decision_position": of["position"], **policy})
        else:
            row["rule"] = entry["evidence"][1]
            decisions.append(row)
            places[entry["decision_id"]] = row
    tail = {"decisions": _frame("decisions", decisions), "outcomes": _frame("outcomes", outcomes)}
    return Snapshot(lake, Manifest("s1", "acme", "chain_1"), len(entries), recount.root_of(entries), tail)


def _frame(table: str, rows: Sequence[Entry]) -> pl.DataFrame:
    types = schema(table)
    columns = {
        name: pl.Series(name, [row.get(name) for row in rows], pl.String if dtype == pl.Datetime else dtype)
        for name, dtype in types.items()
    }
    times = [
        pl.col(name).str.to_datetime(time_unit="ms", time_zone="UTC") for name in types if types[name] == pl.Datetime
    ]
    return pl.DataFrame(columns).with_columns(times)


class Seen(HTMLParser):
    """The tags that a browser would make of some HTML, and the text that it would show."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert attrs in ([], *([("class", name)] for name in ("gate-report", "facts", "number")))

    def handle_data(self, data: str) -> None:
        self.text += data


def refused(ask: Callable[[], object]) -> str:
    """The sentence that an argument is refused with."""
    with pytest.raises(OperatorError) as caught:
        ask()
    assert caught.value.code == "ENGINE_ARGUMENT_INVALID"
    assert caught.value.message.endswith(".")
    return caught.value.message
