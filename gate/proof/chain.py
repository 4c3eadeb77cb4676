"""The audit chain `decision_chain_v1`: leaves, rolling roots, and links.

Each scope has one chain, and every stored record is an entry. A link contains the hash of the link before it, so every
change, removal, or move of an entry changes all later links. `checkpoint` has the signed checkpoints of a chain.

    link = append(head, entry)         extends a chain
    find_break(links)                  finds the first wrong link
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypedDict

from gate.encoding.canonical import content_hash
from gate.labels import CHAIN, MERKLE_STRATEGY


class LinkMaterial(TypedDict):
    """The fields of a link that its own hash covers."""

    decision_chain_version: str
    chain_id: str
    chain_position: int
    previous_link_hash: str | None
    previous_merkle_root: str | None
    leaf_hash: str
    merkle_root: str
    merkle_strategy: str
    entry_type: str
    decision_id: str
    record_hash: str
    receipt_hash: str | None
    policy_id: str | None
    policy_version: str | None
    created_at: str


class Link(LinkMaterial):
    """A link of a chain. The page `docs/reference/wire-format/chain.md` defines it."""

    link_hash: str


class RecordLink(TypedDict):
    """The `audit_chain` of records and reports: the fields that they repeat from their link."""

    decision_chain_version: str
    chain_id: str
    chain_position: int
    entry_type: str
    leaf_hash: str
    link_hash: str
    merkle_root: str


class Linked(TypedDict):
    """The fields of a Decision Record that its link contains."""

    decision_id: str
    record_hash: str
    receipt_hash: str
    policy_id: str
    policy_version: str
    created_at: str


class Head(NamedTuple):
    """The end of a chain, which the next link extends.

    Attributes:
        chain_id: The id of the chain.
        size: The number of its links.
        merkle_root: The rolling root of the last link, or None for an empty chain.
        link_hash: The hash of the last link, or None for an empty chain.
    """

    chain_id: str
    size: int = 0
    merkle_root: str | None = None
    link_hash: str | None = None


class Entry(NamedTuple):
    """The values from which a link is computed.

    Attributes:
        entry_type: One of `labels.ENTRY_TYPES`.
        decision_id: The id of its decision.
        record_hash: The decision's `record_hash`, or the entry's own hash.
        receipt_hash: The decision's `receipt_hash`, or None for other entries.
        policy_id: The policy's id, or None.
        policy_version: The policy's version, or None.
        created_at: The UTC timestamp of the entry.
    """

    entry_type: str
    decision_id: str
    record_hash: str
    receipt_hash: str | None
    policy_id: str | None
    policy_version: str | None
    created_at: str


def append(head: Head, entry: Entry, *, plain: bool = False) -> Link:
    """The complete link that extends a chain by an entry.

    Args:
        head: The end of the chain.
        entry: The entry.
        plain: Whether head and entry are known to have the right types, so they are plain, as `canonical.is_plain`
            defines it.
    """
    leaf_hash = leaf(entry.entry_type, entry.decision_id, entry.record_hash, entry.receipt_hash, plain=plain)
    position = head.size + 1
    material: LinkMaterial = {
        "decision_chain_version": CHAIN,
        "chain_id": head.chain_id,
        "chain_position": position,
        "previous_link_hash": head.link_hash,
        "previous_merkle_root": head.merkle_root,
        "leaf_hash": leaf_hash,
        "merkle_root": rolling_root(head.merkle_root, leaf_hash, position, plain=plain),
        "merkle_strategy": MERKLE_STRATEGY,
        "entry_type": entry.entry_type,
        "decision_id": entry.decision_id,
        "record_hash": entry.record_hash,
        "receipt_hash": entry.receipt_hash,
        "policy_id": entry.policy_id,
        "policy_version": entry.policy_version,
        "created_at": entry.created_at,
    }
    # It also covers the link before, so that a changed link changes every later one.
    return {**material, "link_hash": content_hash(material, plain=plain)}


def link_material(record: Linked) -> Entry:
    """The entry for the chain link of a decision."""
    return Entry(
        entry_type="decision",
        decision_id=record["decision_id"],
        record_hash=record["record_hash"],
        receipt_hash=record["receipt_hash"],
        policy_id=record["policy_id"],
        policy_version=record["policy_version"],
        created_at=record["created_at"],
    )


def head_of(link: Link) -> Head:
    """The head of a chain after a link."""
    return Head(link["chain_id"], link["chain_position"], link["merkle_root"], link["link_hash"])


def entry_of(link: Link) -> Entry:
    """The entry that a link states."""
    return Entry(
        entry_type=link["entry_type"],
        decision_id=link["decision_id"],
        record_hash=link["record_hash"],
        receipt_hash=link["receipt_hash"],
        policy_id=link["policy_id"],
        policy_version=link["policy_version"],
        created_at=link["created_at"],
    )


def head_before(link: Link) -> Head:
    """The head before a link, as the link states it."""
    return Head(link["chain_id"], link["chain_position"] - 1, link["previous_merkle_root"], link["previous_link_hash"])


def leaf(entry_type: str, decision_id: str, record_hash: str, receipt_hash: str | None, *, plain: bool = False) -> str:
    """The `leaf_hash` of an entry. Only a decision has a receipt; other entries hash null as their `receipt_hash`."""
    return content_hash(
        {
            "decision_chain_version": CHAIN,
            "entry_type": entry_type,
            "decision_id": decision_id,
            "record_hash": record_hash,
            "receipt_hash": receipt_hash,
        },
        plain=plain,
    )


def rolling_root(previous: str | None, leaf_hash: str, position: int, *, plain: bool = False) -> str:
    """The `merkle_root` at a position: the leaf at position 1, and then a hash of the root before it and the leaf.

    The hash also covers the position, so the same leaf results in different roots at different positions.
    """
    if position == 1:
        return leaf_hash
    return content_hash(
        {
            "strategy": MERKLE_STRATEGY,
            "previous_merkle_root": previous,
            "leaf_hash": leaf_hash,
            "chain_position": position,
        },
        plain=plain,
    )


RECORD_LINK_MEMBERS: Final = tuple(RecordLink.__annotations__)
"""The fields of a link that records and reports repeat in `audit_chain`."""


def record_link(link: RecordLink) -> RecordLink:
    """The `audit_chain` of a record, from its link."""
    return {
        "decision_chain_version": link["decision_chain_version"],
        "chain_id": link["chain_id"],
        "chain_position": link["chain_position"],
        "entry_type": link["entry_type"],
        "leaf_hash": link["leaf_hash"],
        "link_hash": link["link_hash"],
        "merkle_root": link["merkle_root"],
    }


@dataclass(frozen=True, slots=True)
class Break:
    """The first wrong place of a chain.

    Attributes:
        position: The chain position of the first wrong link, or None if the fault has no position.
        reason: A sentence about the fault.
    """

    position: int | None
    reason: str


def find_break(links: Iterable[Link], *, start: Head | None = None, end: Head | None = None) -> Break | None:
    """Finds the first wrong link among consecutive links in ascending order; None if all are right.

    Args:
        links: The links. They are read one at a time.
        start: The head that they extend. Without it, the first link itself states the head before it, unless its
            position is 1.
        end: The head that they must lead to, if it is known.
    """
    head = start
    for link in links:
        position = link["chain_position"]
        if head is None:
            head = head_before(link)
            # Links that are retained from the middle of a chain cannot show what came before them; the first link can.
            if position == 1 and (head.merkle_root is not None or head.link_hash is not None):
                return Break(1, "The first link claims a link before it.")
        if position != head.size + 1:
            return Break(head.size + 1, f"The link at position {head.size + 1} is missing; {position} follows.")
        expected = append(head, entry_of(link))
        wrong = [name for name, value in expected.items() if link.get(name) != value]
        if wrong:
            return Break(position, f"Its {', '.join(wrong)} does not follow from its entry and the link before it.")
        head = head_of(link)
    if end is not None and end != (head or Head(end.chain_id)):
        return Break(end.size, "The chain's head does not follow from its last link.")
    return None
