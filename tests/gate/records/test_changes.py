"""Entries about migrations and routes: frozen, and hashed alike by an implementation that shares no code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding import resources
from gate.proof import chain
from gate.records.changes import (
    CAUSES,
    EVENTS,
    MIGRATIONS,
    ROUTES,
    EntryKind,
    entry_link,
    find_fault,
    migration_entry,
    route_entry,
)
from tests.independent import verifier
from tests.support.migrations import Example
from tests.support.samples import VECTORS
from tests.support.tampering import with_value, without

FROZEN: Final[list[dict[str, Any]]] = json.loads((VECTORS / "changes.json").read_text())["entries"]
ENTRIES: Final = [each["entry"] for each in FROZEN]
SCHEMAS: Final = {MIGRATIONS: "decision-migration", ROUTES: "decision-routes"}

hashes = st.text("0123456789abcdef", min_size=64, max_size=64)
versions = st.fixed_dictionaries({"version": st.text(), "hash": hashes})
actors = st.fixed_dictionaries({"type": st.sampled_from(["user", "key", "service"]), "id": st.text()})
common = {"entry_id": st.text(), "migration_id": st.text(), "evidence_hash": hashes, "actor": actors, "note": st.text()}


def kind_of(entry: dict[str, Any]) -> EntryKind:
    return ROUTES if "route_hash" in entry else MIGRATIONS


def remade(entry: dict[str, Any]) -> Any:
    """An entry made again of its members."""
    names = ("migration_id", "evidence_hash", "actor", "note", "recorded_at")
    shared: dict[str, Any] = {name: entry[name] for name in names}
    if kind_of(entry) is MIGRATIONS:
        own = {name: entry[name] for name in ("event", "manifest_hash", "candidates")}
        return migration_entry(entry_id=entry["migration_entry_id"], **own, **shared)
    own = {name: entry[name] for name in ("rulebook_id", "cause", "approval_hash")}
    ends = {"before": entry["from"], "after": entry["to"]}
    return route_entry(entry_id=entry["route_entry_id"], **ends, **own, **shared)


def is_refused(entry: dict[str, Any]) -> bool:
    """Whether the product takes a document for no entry."""
    try:
        return find_fault(kind_of(entry), entry) is not None
    except (KeyError, TypeError, AttributeError):
        return True


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part of a document."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*at, name)
        yield from places(part, (*at, name))


def test_entries_and_their_links_are_what_they_always_were() -> None:
    head = chain.Head("chain_test")
    assert {kind_of(entry) for entry in ENTRIES} == {MIGRATIONS, ROUTES}
    for entry, link in ((each["entry"], each["link"]) for each in FROZEN):
        assert remade(entry) == entry
        assert chain.append(head, entry_link(kind_of(entry), entry)) == link
        assert not is_refused(entry)
        head = chain.head_of(link)


def test_another_implementation_finds_them_as_the_page_says() -> None:
    assert [verifier.change_failures(each["entry"], each["link"]) for each in FROZEN] == [[]] * len(FROZEN)
    assert verifier.link_failures([each["link"] for each in FROZEN]) == []


@pytest.mark.parametrize("number", range(len(FROZEN)))
def test_a_change_to_any_part_is_found_here_and_there(number: int) -> None:
    entry, link = FROZEN[number]["entry"], FROZEN[number]["link"]
    for place in places(entry):
        changed = [with_value(entry, place, value) for value in ("changed", 7, ["changed"], {"changed": True})]
        for forged in (*changed, without(entry, place)):
            assert forged != entry
            assert is_refused(forged), (place, forged)
            assert verifier.change_failures(forged, link) != [], (place, forged)
    added = {**entry, "decision": "yes"}
    assert is_refused(added)
    assert verifier.change_failures(added, link) != []


@pytest.mark.parametrize(
    "name", ["decision_id", "record_hash", "receipt_hash", "policy_id", "policy_version", "created_at"]
)
def test_an_entry_under_the_link_of_another_is_found(name: str) -> None:
    for each in FROZEN:
        assert verifier.change_failures(each["entry"], {**each["link"], name: "0" * 64}) != []


@given(
    st.fixed_dictionaries(
        {
            **common,
            "event": st.sampled_from(EVENTS),
            "manifest_hash": hashes,
            "candidates": st.lists(
                st.fixed_dictionaries({"rulebook_id": st.text(), "version": st.text(), "hash": hashes}), max_size=3
            ),
        }
    )
)
def test_both_implementations_give_a_migration_the_same_hash(members: dict[str, Any]) -> None:
    entry = migration_entry(**members, recorded_at="2026-12-02T09:30:00.000Z")
    assert entry["migration_hash"] == verifier.migration_hash(entry)
    assert find_fault(MIGRATIONS, entry) is None


@given(
    st.fixed_dictionaries(
        {
            **common,
            "rulebook_id": st.text(),
            "before": st.none() | versions,
            "after": versions,
            "cause": st.sampled_from(CAUSES),
            "approval_hash": st.none() | hashes,
        }
    )
)
def test_both_implementations_give_a_route_the_same_hash(members: dict[str, Any]) -> None:
    entry = route_entry(**members, recorded_at="2026-12-02T09:30:00.000Z")
    assert entry["route_hash"] == verifier.route_hash(entry)
    assert find_fault(ROUTES, entry) is None


def test_the_entries_fit_the_published_schemas_which_are_closed() -> None:
    for entry in ENTRIES:
        schema = resources.schema(SCHEMAS[kind_of(entry)])
        validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/entry", "$defs": schema["$defs"]})
        validator.validate(entry)
        assert not validator.is_valid({**entry, "decision": "yes"})
        assert not [name for name in entry if validator.is_valid(without(entry, (name,)))]


def test_the_published_examples_have_the_members_of_the_frozen_entries() -> None:
    """Their hashes change with the wording of their evidence; those of the frozen entries never do."""
    made: list[Any] = Example().changes
    assert [kind_of(entry) for entry in made] == [kind_of(entry) for entry in ENTRIES]
    for entry, frozen in zip(made, ENTRIES, strict=True):
        assert list(entry) == list(frozen)
        assert remade(entry) == entry
        assert not is_refused(entry)
