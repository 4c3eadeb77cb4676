"""Policy alerts as an Atom feed (RFC 4287): an entry for each open anomaly and for each change of a policy table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

_ATOM: Final = "http://www.w3.org/2005/Atom"
_FEED_PATH: Final = "/api/policy-alerts.atom"
_NEVER: Final = "1970-01-01T00:00:00.000Z"
# What XML 1.0 cannot hold, not even escaped: an id that a caller chose may have it.
_UNFIT: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(alerts: Mapping[str, Any], base_url: str) -> bytes:
    """The feed of a report of policy alerts.

    Args:
        alerts: The report, with `policy_changes` if there are any.
        base_url: Where callers reach the service, without a trailing slash.
    """
    as_of = alerts["coverage"]["as_of"] or _NEVER
    entries = [_anomaly(alert, base_url) for alert in alerts["alerts"]]
    entries += [_change(change, base_url) for change in alerts.get("policy_changes", [])]
    feed = Element("feed", xmlns=_ATOM)
    _text(feed, "id", f"{base_url}{_FEED_PATH}")
    _text(feed, "title", "Policy alerts")
    _text(feed, "updated", max((entry["updated"] for entry in entries), default=as_of))
    SubElement(SubElement(feed, "author"), "name").text = "Decision Gate"
    SubElement(feed, "link", rel="self", href=f"{base_url}{_FEED_PATH}")
    for entry in sorted(entries, key=lambda entry: (entry["updated"], entry["id"]), reverse=True):
        element = SubElement(feed, "entry")
        for name in ("id", "title", "updated"):
            _text(element, name, entry[name])
        SubElement(element, "link", rel="alternate", href=_fit(entry["href"]))
        _text(element, "content", entry["content"])
    written: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _anomaly(alert: Mapping[str, Any], base_url: str) -> dict[str, str]:
    anomaly = alert["anomaly"]
    return {
        "id": f"urn:decision-gate:anomaly:{anomaly['anomaly_id']}",
        "title": f"{alert['policy_id']}: {anomaly['summary']}",
        "updated": anomaly["window"]["to"],
        "href": f"{base_url}{alert['report']}",
        "content": f"Severity {anomaly['severity']}. Reasons: {', '.join(anomaly['reasons'])}.",
    }


def _change(change: Mapping[str, Any], base_url: str) -> dict[str, str]:
    parts = [f"{len(change[what])} {what}" for what in ("added", "removed", "changed") if change[what]]
    lines = [line for what in ("added", "removed", "changed") for line in _entries(what, change[what])]
    return {
        "id": f"urn:decision-gate:policy-table:{change['service']}:{change['number']}:{change['table_hash']}",
        "title": f"Policy table {change['service']}: {', '.join(parts) or 'no entry changed'}",
        "updated": change["changed_at"],
        "href": f"{base_url}/rules/policy-tables/{change['service']}.json",
        "content": "\n".join(lines) or "The table changed, but no entry did.",
    }


def _entries(what: str, entries: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for entry in entries:
        members = f": {', '.join(entry['members'])}" if "members" in entry else ""
        yield f"{what} {entry['vendor']}, region {entry['region']}, plan {entry['plan']}{members}"


def _text(parent: Element, name: str, text: str) -> None:
    element = SubElement(parent, name)
    if name == "content":
        element.set("type", "text")
    element.text = _fit(text)


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
