"""Verifies the resolution of a held decision in a packet: its fields, its signature, and its place in the chain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from gate.proof import chain
from gate.records.reports.resolution import GRANTED, RESOLUTIONS, resolution_link
from gate.verify.faults import Fault, differing
from gate.verify.packets.packet_result import STEPS, PacketVerification
from gate.verify.resolution import OPTIONAL, REQUIRED, is_resolution, judge_resolution, resolution_faults
from gate.verify.result import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gate.encoding.strict_json import JsonObject
    from gate.proof.chain import Link
    from gate.records.documents import Cited, Resolution
    from gate.verify.members import ReadablePacket, ReadableRecord

_PLACE: Final = "resolution"


def check_resolution(
    result: PacketVerification,
    packet: ReadablePacket,
    record: ReadableRecord,
    trust: Trust,
    untrusted_key: str | None,
) -> tuple[Resolution | None, tuple[str, str] | None]:
    """Step 3: the packet's resolution, and its signature.

    Returns:
        The resolution, or None if the packet has no readable one; and the code and the sentence if its key is not
        trusted, otherwise None.
    """
    step, sent = STEPS[2], packet.get("resolution")
    if sent is None:
        return None, None
    if not result.examine(step, f"{_PLACE}.members", [] if _is_linked(sent) else [Fault(f"{_PLACE}.members")]):
        return None, None
    resolution = cast("Resolution", sent)
    result.note_unknown(f"{_PLACE}.unknown_members", _PLACE, sent.keys() - REQUIRED.keys() - OPTIONAL.keys())
    result.examine(step, _PLACE, resolution_faults(sent, record, _PLACE))
    # A single key without an id is the record's key, which may have been rotated since.
    another = resolution.get("key_id") != record.get("receipt_key_id")
    own = replace(trust, public_key=None) if trust.public_key is not None and another else trust
    found = judge_resolution(resolution, own, untrusted_key)
    if found is None:
        # Receipt signing was off, or somebody removed the signature; it permits nothing either way.
        result.checks[f"{_PLACE}.signature"] = result.checks[f"{_PLACE}.key"] = None
        return resolution, None
    result.note(step, f"{_PLACE}.signature", found.holds)
    result.note(step, f"{_PLACE}.key", found.trusted)
    return resolution, None if found.error is None else (found.error, found.message or "")


def granted_position(resolution: Resolution | None) -> int | None:
    """The chain position after which receipts of a held action are approved, or None without a signed grant."""
    if resolution is None or resolution["resolution"] != GRANTED or "signature" not in resolution:
        return None
    return resolution["audit_chain"]["chain_position"]


def check_resolution_place(
    result: PacketVerification, packet: ReadablePacket, record: ReadableRecord, resolution: Resolution | None
) -> None:
    """Step 4: the resolution agrees with its retained link, and no retained link shows an omitted resolution."""
    part = packet.get("audit_chain")
    links = part.get("retained_links") if part is not None else None
    if result.checks.get("audit_chain.retained_links") is not True or not isinstance(links, list):
        return
    of_decision = [
        link
        for link in cast("list[Link]", links)
        if (link["entry_type"], link["decision_id"]) == (RESOLUTIONS.entry_type, record["decision_id"])
    ]
    if resolution is None and not of_decision:
        return
    result.examine(STEPS[3], f"{_PLACE}.link", _place_faults(of_decision, record, resolution))
    if resolution is not None and not of_decision:
        # Its link is beyond the retained ones; its own signature still protects it.
        result.checks[f"{_PLACE}.link"] = None


def _place_faults(links: list[Link], record: ReadableRecord, resolution: Resolution | None) -> Iterator[Fault]:
    if resolution is None or len(links) > 1:
        yield Fault(f"{_PLACE}.link")
        return
    for link in links:
        yield from differing(f"{_PLACE}.audit_chain", chain.record_link(link), dict(resolution["audit_chain"]))
        entry = resolution_link(resolution, cast("Cited", record))
        members = {name: getattr(entry, name) for name in entry._fields}
        of_link: Mapping[str, Any] = link
        for name, value in members.items():
            yield from differing(f"{_PLACE}.audit_chain.link.{name}", value, of_link[name])


def _is_linked(resolution: JsonObject) -> bool:
    """Whether it is a resolution with a chain position, which a packet's always has."""
    link = resolution.get("audit_chain")
    return (
        isinstance(link, dict)
        and type(position := link.get("chain_position")) is int
        and position > 0
        and is_resolution(resolution)
    )
