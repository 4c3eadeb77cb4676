"""Decision Packets `decision_packet_v1`: a decision with its reports, what its policy's outcomes say, and its chain.

    packet = build_packet(record, executions, outcomes, exported_at="...", links=links)
    packet["packet_hash"] == packet_hash(packet)

A packet verifies by itself, up to the key that signed its record; `gate.verify.packets.packet` verifies one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gate.encoding.canonical import content_hash
from gate.labels import PACKET
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES, Kind

if TYPE_CHECKING:
    from gate.proof.chain import Link
    from gate.proof.checkpoint import Checkpoint
    from gate.records.documents import (
        Packet,
        PacketChain,
        PacketMaterial,
        PacketParts,
        PolicyIntelligence,
        Record,
        Report,
        Resolution,
        VerificationHints,
    )

MAX_ITEMS: Final = 1000
"""How many execution receipts, outcome records and chain links a packet holds at most, of each."""

MAX_PATTERNS: Final = 100
"""How many patterns a packet holds at most."""

REPORT_HASHES: Final[Mapping[str, str]] = {
    "effectiveness": "effectiveness_hash",
    "confidence": "confidence_hash",
    "anomalies": "anomaly_hash",
    "benchmarks": "benchmark_hash",
}
"""The policy reports that `policy_intelligence` may hold, each with the member that tells its hash."""


def build_packet(
    record: Record,
    executions: Sequence[Report],
    outcomes: Sequence[Report],
    *,
    exported_at: str,
    resolution: Resolution | None = None,
    intelligence: PolicyIntelligence | None = None,
    links: Sequence[Link] | None = None,
    checkpoint: Checkpoint | None = None,
    with_input: bool = False,
    request_body: object = None,
) -> Packet:
    """The packet of a decision, with its packet_hash.

    Args:
        record: The full record.
        executions: Its execution receipts, newest first, each with its audit_chain.
        outcomes: Its outcome records, likewise.
        exported_at: UTC timestamp.
        resolution: The resolution of a held decision, with its audit_chain; the packet has none where None.
        intelligence: `policy_intelligence`; the packet has none where None.
        links: The chain's links, consecutive and ascending, the first of them the decision's own; the packet has no
            `audit_chain` where None.
        checkpoint: A checkpoint of the chain up to the last of the links, where there is one.
        with_input: Whether the packet has `input`.
        request_body: The Decision Request, for `input`; None where it is no longer kept.
    """
    packet: PacketParts = {
        "decision_packet_version": PACKET,
        "decision_id": record["decision_id"],
        "record_hash": record["record_hash"],
        "receipt_hash": record["receipt_hash"],
        "decision_record": record,
        "execution_receipts": executions,
        "outcome_records": outcomes,
    }
    if resolution is not None:
        packet["resolution"] = resolution
    if intelligence is not None:
        packet["policy_intelligence"] = intelligence
    if links is not None:
        packet["audit_chain"] = _audit_chain(links, checkpoint)
    if with_input:
        packet["input"] = request_body
    material: PacketMaterial = {**packet, "exported_at": exported_at}
    return {**material, "packet_hash": packet_hash(material)}


def packet_hash(packet: Mapping[str, object]) -> str:
    """What a packet's `packet_hash` should be."""
    return content_hash({name: value for name, value in packet.items() if name != "packet_hash"})


def links_to_retain(
    links: Sequence[Link],
    executions: Sequence[Report],
    outcomes: Sequence[Report],
) -> Sequence[Link]:
    """As many of a chain's links as a packet with these reports can retain.

    Limits can show a report that lies beyond the links and leave an older one out whose link is among them. So would
    somebody who put an invented report in the place of a true one, and a verifier could not tell the two apart. The
    links therefore end before that of the first report that is left out.

    Args:
        links: Consecutive and ascending, the first of them the decision's own, which is always retained.
        executions: The execution receipts that the packet shows, each with its audit_chain.
        outcomes: The outcome records, likewise.
    """
    # What is cut for one kind can leave a report of the other beyond the links.
    for kind, reports in ((EXECUTIONS, executions), (OUTCOMES, outcomes), (EXECUTIONS, executions)):
        positions = [report["audit_chain"]["chain_position"] for report in reports]
        if any(position > links[-1]["chain_position"] for position in positions):
            hidden = hidden_reports(links, kind, links[0]["decision_id"], positions)
            links = [link for link in links if not hidden or link["chain_position"] < hidden[0]]
    return links


def hidden_reports(links: Sequence[Link], kind: Kind, decision_id: str, positions: Collection[int]) -> list[int]:
    """Where links, in their order, tell of reports of a decision that are at none of the positions shown."""
    shown = frozenset(positions)
    return [
        link["chain_position"]
        for link in links
        if (link["entry_type"], link["decision_id"]) == (kind.entry_type, decision_id)
        and link["chain_position"] not in shown
    ]


def _audit_chain(links: Sequence[Link], checkpoint: Checkpoint | None) -> PacketChain:
    last = links[-1]
    hints = verification_hints(last["chain_id"])
    return {
        "chain_id": last["chain_id"],
        "chain_size": last["chain_position"],
        "merkle_root": last["merkle_root"],
        "retained_links": links,
        "verification_hints": hints if checkpoint is None else {**hints, "checkpoint": checkpoint},
    }


def verification_hints(chain_id: str) -> VerificationHints:
    """How the parts of a packet are verified, in words; the same in every packet of a chain."""
    return {
        "hash": "H(x) is the lower-case hex SHA-256 of the canonical JSON of x (RFC 8785).",
        "packet_hash": "H(the packet without packet_hash).",
        "retained_links": "Consecutive, from the decision's own link on; chain_size and merkle_root are those of the "
        "last one.",
        "leaf_hash": "H({decision_chain_version, entry_type, decision_id, record_hash, receipt_hash}).",
        "merkle_root": "At position 1 the leaf_hash; after that H({strategy: merkle_strategy, previous_merkle_root, "
        "leaf_hash, chain_position}).",
        "link_hash": "H(the link without link_hash); previous_link_hash is the link_hash of the link before.",
        "reports": "The link of an execution receipt or outcome record has its hash as record_hash.",
        "signature": "The checkpoint is signed over the canonical JSON of its other members, by a key of "
        "receipt_keys_url; it speaks for every retained link, and so for every report whose link is retained.",
        "verify_url": "/api/decision/packet/verify",
        "chain_url": f"/api/decision/chains/{chain_id}",
        "receipt_keys_url": "/api/decision/receipt-keys",
    }
