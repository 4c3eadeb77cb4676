"""The audit chain `decision_chain_v1`: leaves, rolling Merkle roots and links.

One chain a scope; every stored record is an entry. A link binds the link before it, so that no entry can be changed,
dropped or moved without every later link changing. Signed checkpoints of a chain are in `checkpoint`.

    link = append(head, entry)         extends a chain
    find_break(links)                  says where retained links do not hold
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypedDict

from gate.encoding.canonical import content_hash
from gate.labels import CHAIN, MERKLE_STRATEGY


class LinkMaterial(TypedDict):
    """The members of a link that its own hash covers."""

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
    """A link of a chain, as docs/wire-format.md has it."""

    link_hash: str


class RecordLink(TypedDict):
    """The `audit_chain` that records and reports carry: the members that they repeat of their link."""

    decision_chain_version: str
    chain_id: str
    chain_position: int
    entry_type: str
    leaf_hash: str
    link_hash: str
    merkle_root: str


class Linked(TypedDict):
    """The members of a Decision Record that its link is made of."""

    decision_id: str
    record_hash: str
    receipt_hash: str
    policy_id: str
    policy_version: str
    created_at: str


class Head(NamedTuple):
    """The end of a chain: what the next link extends.

    Attributes:
        chain_id: The chain's name.
        size: How many links it has; 0 for an empty chain.
        merkle_root: The last link's rolling root; None for an empty chain.
        link_hash: The last link's hash; None for an empty chain.
    """

    chain_id: str
    size: int = 0
    merkle_root: str | None = None
    link_hash: str | None = None


class Entry(NamedTuple):
    """What a link is made of.

    Attributes:
        entry_type: One of `labels.ENTRY_TYPES`.
        decision_id: The decision it is about.
        record_hash: The decision's record_hash, or the entry's own hash.
        receipt_hash: The decision's receipt_hash; None for other entries.
        policy_id: The policy's id, or None.
        policy_version: The policy's version, or None.
        created_at: UTC timestamp of the entry.
    """

    entry_type: str
    decision_id: str
    record_hash: str
    receipt_hash: str | None
    policy_id: str | None
    policy_version: str | None
    created_at: str


def append(head: Head, entry: Entry, *, plain: bool = False) -> Link:
    """The link that extends a chain by an entry, with every member that its hash covers and `link_hash`.

    Args:
        head: The end of the chain.
        entry: The entry.
        plain: Whether head and entry are known to hold what their types say, and so are plain, as `canonical.is_plain`
            has it.
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
    # Over what came before as well, so that no link can change without every later one changing.
    return {**material, "link_hash": content_hash(material, plain=plain)}


def link_material(record: Linked) -> Entry:
    """What the chain link of a decision is made of."""
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
    """The head that a chain has after a link."""
    return Head(link["chain_id"], link["chain_position"], link["merkle_root"], link["link_hash"])


def entry_of(link: Link) -> Entry:
    """What a link says that it is made of."""
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
    """The head that a link says it extends."""
    return Head(link["chain_id"], link["chain_position"] - 1, link["previous_merkle_root"], link["previous_link_hash"])


def leaf(entry_type: str, decision_id: str, record_hash: str, receipt_hash: str | None, *, plain: bool = False) -> str:
    """leaf_hash of an entry. `receipt_hash` is null, and hashed as such, for what is no decision: it has no receipt."""
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
    """merkle_root at a position: the leaf itself at 1, the strategy's hash over the root before it after that.

    The position is hashed as well: the same leaf at another place gives another root.
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
"""The members of a link that records and reports repeat in `audit_chain`."""


def record_link(link: RecordLink) -> RecordLink:
    """The `audit_chain` that a record carries of its link."""
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
    """Where a chain does not hold.

    Attributes:
        position: The chain position of the first link that is wrong; None where what is wrong has no place in it.
        reason: What is wrong with it.
    """

    position: int | None
    reason: str


def find_break(links: Iterable[Link], *, start: Head | None = None, end: Head | None = None) -> Break | None:
    """The first place where consecutive links, in ascending order, do not hold; None where all do.

    Args:
        links: The links; read one at a time.
        start: The head they extend. Without it the first link's own word for what came before it is taken, unless it
            claims position 1.
        end: The head that they must lead to, where that is known.
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
            return Break(position, f"Its {', '.join(wrong)} is not what its entry and the link before it give.")
        head = head_of(link)
    if end is not None and end != (head or Head(end.chain_id)):
        return Break(end.size, "The chain's head is not what its last link gives.")
    return None
