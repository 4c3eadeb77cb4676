"""The audit chain: links for every entry type, tampering with every member."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.labels import ENTRY_TYPES
from gate.proof import chain
from gate.proof.chain import Entry, Head
from tests.independent import verifier


def entry(number: int) -> Entry:
    kind = ENTRY_TYPES[number % len(ENTRY_TYPES)]
    return Entry(
        entry_type=kind,
        decision_id=f"dec_{number // 5}",
        record_hash=f"{number:064x}",
        receipt_hash="f" * 64 if kind == "decision" else None,
        policy_id=None if kind == "erasure" else "pricing_exception",
        policy_version=None if kind == "erasure" else "2026-06-11",
        created_at=f"2026-06-11T12:00:{number:02d}.000Z",
    )


def links(count: int) -> list[Any]:
    head, made = Head("chain_test"), []
    for number in range(count):
        made.append(chain.append(head, entry(number)))
        head = chain.head_of(made[-1])
    return made


def test_every_entry_type_is_linked_and_an_independent_verifier_agrees() -> None:
    made = links(10)
    assert {link["entry_type"] for link in made} == set(ENTRY_TYPES)
    assert [link["chain_position"] for link in made] == list(range(1, 11))
    assert verifier.link_failures(made) == []
    assert verifier.link_failures(made[4:8]) == []
    assert chain.find_break(made) is None
    assert chain.find_break(made[4:8]) is None


def test_a_link_carries_exactly_the_members_that_its_hash_covers() -> None:
    assert set(links(1)[0]) == {
        "decision_chain_version",
        "chain_id",
        "chain_position",
        "previous_link_hash",
        "previous_merkle_root",
        "leaf_hash",
        "merkle_root",
        "merkle_strategy",
        "entry_type",
        "decision_id",
        "record_hash",
        "receipt_hash",
        "policy_id",
        "policy_version",
        "created_at",
        "link_hash",
    }


def test_the_first_root_is_the_leaf_and_later_roots_roll() -> None:
    first, second = links(2)
    assert first["merkle_root"] == first["leaf_hash"]
    assert first["previous_link_hash"] is first["previous_merkle_root"] is None
    assert second["previous_link_hash"] == first["link_hash"]
    assert second["previous_merkle_root"] == first["merkle_root"]
    assert second["merkle_root"] != second["leaf_hash"]


@pytest.mark.parametrize("name", sorted(links(1)[0]))
@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_change_of_any_member_of_any_link_is_found(name: str, at: int) -> None:
    made = links(5)
    value = made[at][name]
    made[at][name] = value + 1 if isinstance(value, int) else f"{value or ''}0"
    found = chain.find_break(made, start=Head("chain_test"))
    assert found is not None
    assert found.position in (at + 1, at + 2)
    assert verifier.link_failures(made) != []


@pytest.mark.parametrize(
    ("what", "position"),
    [
        (lambda made: made.pop(2), 3),
        (lambda made: made.insert(2, copy.deepcopy(made[1])), 3),
        (lambda made: made.insert(1, made.pop(2)), 2),
        (lambda made: made.pop(0), 1),
    ],
    ids=["dropped", "doubled", "swapped", "first dropped"],
)
def test_a_missing_doubled_or_moved_link_is_found(what: Any, position: int) -> None:
    made = links(5)
    what(made)
    found = chain.find_break(made, start=Head("chain_test"))
    assert found is not None
    assert found.position == position


def test_a_chain_cut_at_its_end_does_not_lead_to_its_head() -> None:
    made = links(5)
    end = chain.head_of(made[-1])
    assert chain.find_break(made, end=end) is None
    assert chain.find_break(made[:-1], end=end) is not None
    assert chain.find_break([], end=end) is not None
    assert chain.find_break([], end=Head("chain_test")) is None


def test_a_first_link_cannot_claim_a_link_before_it() -> None:
    forged = chain.append(Head("chain_test", 0, "a" * 64, "b" * 64), entry(0))
    assert chain.find_break([forged]) is not None


def test_a_record_carries_its_place_in_the_chain() -> None:
    link = links(1)[0]
    assert chain.record_link(link) == {
        name: link[name]
        for name in (
            "decision_chain_version",
            "chain_id",
            "chain_position",
            "entry_type",
            "leaf_hash",
            "link_hash",
            "merkle_root",
        )
    }


@given(st.lists(st.integers(min_value=0, max_value=59), min_size=1, max_size=12))
def test_any_sequence_of_entries_makes_a_chain_that_holds(numbers: list[int]) -> None:
    head, made = Head("chain_test"), []
    for number in numbers:
        made.append(chain.append(head, entry(number)))
        head = chain.head_of(made[-1])
    assert chain.find_break(made, start=Head("chain_test"), end=head) is None
    assert verifier.link_failures(made) == []
