"""Decision Packets `decision_packet_v1`: a decision with its reports, the reports about its policy, and its chain.

    packet = build_packet(record, executions, outcomes, exported_at="...", links=links)
    packet["packet_hash"] == packet_hash(packet)

Verifying a packet needs only the key that signed its record: see `gate.verify.packets.packet`.
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
"""The maximum number of execution receipts, of outcome records, and of chain links in a packet."""

MAX_PATTERNS: Final = 100
"""The maximum number of patterns in a packet."""

REPORT_HASHES: Final[Mapping[str, str]] = {
    "effectiveness": "effectiveness_hash",
    "confidence": "confidence_hash",
    "anomalies": "anomaly_hash",
    "benchmarks": "benchmark_hash",
}
"""The policy reports that `policy_intelligence` may have, each with the field of its hash."""


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
    """The packet of a decision, with its `packet_hash`.

    Args:
        record: The full record.
        executions: Its execution receipts, newest first, each with its `audit_chain`.
        outcomes: Its outcome records, newest first, each with its `audit_chain`.
        exported_at: The UTC timestamp.
        resolution: The resolution of a held decision, with its `audit_chain`, or None.
        intelligence: The part `policy_intelligence`, or None to omit it.
        links: The chain's consecutive links in ascending order, beginning with the decision's own. None omits
            `audit_chain`.
        checkpoint: A checkpoint of the chain up to the last of the links, or None.
        with_input: Whether the packet has `input`.
        request_body: The Decision Request for `input`, or None if it is not stored any more.
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
    """The correct `packet_hash` of a packet."""
    return content_hash({name: value for name, value in packet.items() if name != "packet_hash"})


def links_to_retain(
    links: Sequence[Link],
    executions: Sequence[Report],
    outcomes: Sequence[Report],
) -> Sequence[Link]:
    """The links of a chain that a packet with these reports can retain.

    Because of limits, a packet may show a report beyond its links, but omit an older report whose link it has. A forger
    who replaces a genuine report with an invented one would make the same packet, and a verifier could not tell the
    difference. The links therefore end before the link of the first omitted report.

    Args:
        links: Consecutive and ascending links, beginning with the decision's own, which is always retained.
        executions: The execution receipts in the packet, each with its `audit_chain`.
        outcomes: The outcome records in the packet, each with its `audit_chain`.
    """
    # After links were cut because of one kind, a report of the other kind can be beyond them.
    for kind, reports in ((EXECUTIONS, executions), (OUTCOMES, outcomes), (EXECUTIONS, executions)):
        positions = [report["audit_chain"]["chain_position"] for report in reports]
        if any(position > links[-1]["chain_position"] for position in positions):
            hidden = hidden_reports(links, kind, links[0]["decision_id"], positions)
            links = [link for link in links if not hidden or link["chain_position"] < hidden[0]]
    return links


def hidden_reports(links: Sequence[Link], kind: Kind, decision_id: str, positions: Collection[int]) -> list[int]:
    """The positions of links to a decision's reports that are not among the given positions, in order."""
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
    """Texts about verifying the parts of a packet. They are the same in every packet of a chain."""
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
