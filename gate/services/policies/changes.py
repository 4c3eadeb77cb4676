"""What changed from one policy table to the next, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypeAlias, TypedDict, cast

from gate.services.policies.table import Entry, PolicyTable


class ChangedEntry(TypedDict):
    """An entry that was added, removed or changed; `members` names what changed in it."""

    vendor: str
    region: str
    plan: str
    members: NotRequired[list[str]]


class TableChange(TypedDict):
    """What changed in a table."""

    added: list[ChangedEntry]
    removed: list[ChangedEntry]
    changed: list[ChangedEntry]


_Key: TypeAlias = tuple[str, str, str]


def change(before: PolicyTable, after: PolicyTable) -> TableChange:
    """The changes from a table to its successor. Each list is sorted by vendor, region, and plan."""
    old, new = _by_key(before), _by_key(after)
    return {
        "added": [_named(key) for key in sorted(new.keys() - old.keys())],
        "removed": [_named(key) for key in sorted(old.keys() - new.keys())],
        "changed": [
            {**_named(key), "members": members}
            for key in sorted(new.keys() & old.keys())
            if (members := _changed_members(old[key], new[key]))
        ],
    }


def _by_key(table: PolicyTable) -> dict[_Key, Entry]:
    return {(entry["vendor"], entry["region"], entry["plan"]): entry for entry in table.entries}


def _named(key: _Key) -> ChangedEntry:
    vendor, region, plan = key
    return {"vendor": vendor, "region": region, "plan": plan}


def _changed_members(old: Entry, new: Entry) -> list[str]:
    before, after = cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", new)
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
