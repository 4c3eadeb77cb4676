"""Policy alerts as an Atom feed."""

from __future__ import annotations

import json
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from api.feeds import atom
from gate.encoding import resources

ATOM = "{http://www.w3.org/2005/Atom}"
CHANGE = {
    "service": "refund",
    "number": 3,
    "changed_at": "2026-11-20T09:00:00.000Z",
    "origin": "operator",
    "previous_hash": "a" * 64,
    "table_hash": "b" * 64,
    "added": [{"vendor": "north-books", "region": "*", "plan": "*"}],
    "removed": [],
    "changed": [{"vendor": "south-apps", "region": "US", "plan": "*", "members": ["last_verified", "windows"]}],
}


def alerts(**members: Any) -> dict[str, Any]:
    found = json.loads(resources.path("schemas", "examples", "policy-alerts.json").read_bytes())
    return {**found, "policy_changes": [CHANGE], **members}


def feed(**members: Any) -> Element:
    return fromstring(atom(alerts(**members), "https://gate.example"))  # noqa: S314


def text(element: Element, name: str) -> str:
    return element.findtext(f"{ATOM}{name}") or ""


def test_each_alert_and_each_change_is_an_entry_the_newest_first() -> None:
    found = feed()
    entries = found.findall(f"{ATOM}entry")
    assert len(entries) == 3
    assert [text(entry, "updated") for entry in entries] == sorted(
        (text(entry, "updated") for entry in entries), reverse=True
    )
    assert text(found, "updated") == text(entries[0], "updated")
    assert len({text(entry, "id") for entry in entries}) == 3
    change = entries[0]
    assert text(change, "title") == "Policy table refund: 1 added, 1 changed"
    assert text(change, "content").splitlines() == [
        "added north-books, region *, plan *",
        "changed south-apps, region US, plan *: last_verified, windows",
    ]
    links = {entry.find(f"{ATOM}link").get("href") for entry in entries}  # type: ignore[union-attr]
    assert "https://gate.example/rules/policy-tables/refund.json" in links
    assert all(str(link).startswith("https://gate.example/") for link in links)


def test_a_feed_without_entries_is_valid() -> None:
    found = feed(alerts=[], policy_changes=[])
    assert found.findall(f"{ATOM}entry") == []
    assert text(found, "updated")
    never = feed(alerts=[], policy_changes=[], coverage={"as_of": None})
    assert text(never, "updated") == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("</title><script>", "</title><script>"),
        ("&amp;]]>", "&amp;]]>"),
        ("\x00\x1b[31m", "\ufffd\ufffd[31m"),
        ("\ufffe", "\ufffd"),
        ("\U0001f4a5", "\U0001f4a5"),
    ],
)
def test_a_hostile_name_stays_text(hostile: str, shown: str) -> None:
    found = alerts()
    found["alerts"][0]["policy_id"] = hostile
    titles = [text(entry, "title") for entry in feed(alerts=found["alerts"]).findall(f"{ATOM}entry")]
    assert any(title.startswith(f"{shown}: ") for title in titles)
