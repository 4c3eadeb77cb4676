"""Step 4 of a packet's verification: the retained links, the reports' places among them, and checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, cast

from gate.encoding.canonical import canonical
from gate.labels import ENTRY_TYPES
from gate.proof import chain
from gate.proof.chain import link_material
from gate.proof.checkpoint import contradicts
from gate.records.packet import MAX_ITEMS, hidden_reports, verification_hints
from gate.records.reports.receipts import Kind, report_link
from gate.verify.checkpoint import is_checkpoint, judge_checkpoint
from gate.verify.faults import Fault, differing
from gate.verify.members import ReadableChain, ReadablePacket, ReadableRecord
from gate.verify.packets.packet_result import COLLECTIONS, STEPS, PacketVerification
from gate.verify.result import Trust

if TYPE_CHECKING:
    from gate.encoding.strict_json import JsonObject
    from gate.proof.chain import Link
    from gate.proof.checkpoint import Checkpoint
    from gate.records.documents import Report

_CHAIN_MEMBERS: Final[Mapping[str, type]] = {
    "chain_id": str,
    "chain_size": int,
    "merkle_root": str,
    "retained_links": list,
    "verification_hints": dict,
}

_TEXT_OR_NULL: Final = (str, type(None))
_LINK_MEMBERS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "decision_chain_version": str,
    "chain_id": str,
    "chain_position": int,
    "previous_link_hash": _TEXT_OR_NULL,
    "previous_merkle_root": _TEXT_OR_NULL,
    "leaf_hash": str,
    "merkle_root": str,
    "merkle_strategy": str,
    "entry_type": str,
    "decision_id": str,
    "record_hash": str,
    "receipt_hash": _TEXT_OR_NULL,
    "policy_id": _TEXT_OR_NULL,
    "policy_version": _TEXT_OR_NULL,
    "created_at": str,
    "link_hash": str,
}

_CHECKPOINT: Final = "audit_chain.verification_hints.checkpoint"

# By collection, the reports that can be looked at further, with their indexes.
Readable: TypeAlias = "dict[str, list[tuple[int, Report]]]"


def check_chain(
    result: PacketVerification,
    packet: ReadablePacket,
    record: ReadableRecord,
    readable: Readable,
    trust: Trust,
    untrusted_key: str | None,
) -> tuple[str, str] | None:
    """Step 4: the retained links, the reports' places among them, and the packet's own checkpoint.

    Returns:
        The code and the sentence if the checkpoint's key is not trusted, otherwise None.
    """
    step, sent = STEPS[3], packet.get("audit_chain")
    if sent is None:
        result.checks["audit_chain"] = None
        for collection in readable:
            for index, _ in readable[collection]:
                result.note_unlinked(f"{collection}[{index}]")
        return None
    result.note_unknown("audit_chain.unknown_members", "audit_chain", sent.keys() - _CHAIN_MEMBERS.keys())
    if not result.examine(step, "audit_chain.members", _chain_member_faults(sent)):
        return None
    part = _read(sent)
    links, last = part["retained_links"], part["retained_links"][-1]
    result.examine(step, "audit_chain.retained_links", _link_faults(links, record))
    if not {link["entry_type"] for link in links} <= set(ENTRY_TYPES):
        # Links with an unknown entry type are checked like all others; their meaning is not.
        result.checks["audit_chain.entry_types"] = None
    told = {"chain_id": last["chain_id"], "chain_size": last["chain_position"], "merkle_root": last["merkle_root"]}
    for name, value in told.items():
        result.examine(step, f"audit_chain.{name}", differing(f"audit_chain.{name}", value, sent[name]))
    for collection, kind in COLLECTIONS:
        _check_places(result, collection, kind, readable[collection], links, record["decision_id"])
    _check_erasure(result, record, links)
    hints = part["verification_hints"]
    guidance = {name: text for name, text in hints.items() if name != "checkpoint"}
    # Different wording is no fault: nothing authenticates it.
    same = canonical(guidance) == canonical(verification_hints(last["chain_id"]))
    result.checks["audit_chain.verification_hints"] = True if same else None
    if "checkpoint" not in hints:
        result.checks[_CHECKPOINT] = result.checks["exported_at"] = None
        return None
    document = hints["checkpoint"]
    if not _examine_checkpoint(document, result, _CHECKPOINT):
        return None
    place = "exported_at"
    result.examine(step, place, differing(place, document["issued_at"], packet["exported_at"]))
    result.examine(
        step,
        f"{_CHECKPOINT}.chain_size",
        differing(f"{_CHECKPOINT}.chain_size", last["chain_position"], document["chain_size"]),
    )
    return _check_seen(result, _CHECKPOINT, document, last, _trust_in(document, record, trust), untrusted_key)


def check_kept_checkpoint(
    result: PacketVerification,
    packet: ReadablePacket,
    record: ReadableRecord,
    document: object,
    trust: Trust,
    untrusted_key: str | None,
) -> tuple[str, str] | None:
    """Step 4: the checkpoint that the verifier kept. Returns the same as `check_chain`."""
    place, part = "checkpoint", packet.get("audit_chain")
    if not _examine_checkpoint(document, result, place):
        return None
    links = [] if part is None or list(_chain_member_faults(part)) else _read(part)["retained_links"]
    foreign = bool(links) and document["chain_id"] != links[0]["chain_id"]
    at_size = [link for link in links if link["chain_position"] == document["chain_size"]]
    seen = at_size[0] if at_size and not foreign else None
    trust = _trust_in(document, record, trust)
    key_fault = _check_seen(result, place, document, seen, trust, untrusted_key)
    if seen is not None:
        return key_fault
    # A verifier with a checkpoint wants to know that the packet agrees with it. An attacker must not be able to avoid
    # the comparison by moving the links to other positions, or by cutting them off before the checkpoint.
    result.fail(STEPS[3], Fault(f"{place}.chain_id" if foreign else f"{place}.chain"), authenticity=True)
    return key_fault or (_foreign(document, links) if foreign else _not_comparable(document, links))


def _foreign(document: Checkpoint, links: list[Link]) -> tuple[str, str]:
    return "CHECKPOINT_FOREIGN", (
        f"The checkpoint is of {document['chain_id']}, but the packet says that it is of {links[0]['chain_id']}; give "
        f"a checkpoint of that chain. If the packet should be of the checkpoint's chain, somebody changed it."
    )


def _not_comparable(document: Checkpoint, links: list[Link]) -> tuple[str, str]:
    held = f"links {links[0]['chain_position']} to {links[-1]['chain_position']}" if links else "no links"
    return "CHECKPOINT_NOT_COMPARABLE", (
        f"The checkpoint covers the link at position {document['chain_size']}, but the packet has {held}, so they "
        f"cannot be compared; export it again with a chain_limit that reaches the checkpoint, or give a later one."
    )


def check_signed(result: PacketVerification, packet: ReadablePacket, readable: Readable) -> None:
    """Step 4, at its end: whether a trusted signed checkpoint covers every report and the retained links.

    The record has its own signature. Its reports are signed only through the links that lead to a checkpoint. Anybody
    can make other links, so they confirm nothing.
    """
    unlinked = set(result.unlinked)
    for collection, reports in readable.items():
        for index, report in reports:
            place = f"{collection}[{index}]"
            if place in unlinked or report["audit_chain"]["chain_position"] > result.vouched:
                result.unsigned.append(place)
    result.checks["reports_signed"] = True if result.vouched and not result.unsigned else None
    links = _read(packet["audit_chain"])["retained_links"] if result.vouched else []
    if not links or links[-1]["chain_position"] > result.vouched:
        for collection in readable:
            _leave_open(result, f"{collection}.complete")
    if result.vouched < max((link["chain_position"] for link in links if link["entry_type"] == "erasure"), default=1):
        _leave_open(result, "audit_chain.erasure")


def _leave_open(result: PacketVerification, name: str) -> None:
    if result.checks.get(name):
        result.checks[name] = None


def _trust_in(document: Checkpoint, record: ReadableRecord, trust: Trust) -> Trust:
    """The trust for a checkpoint. A single key without an id is the record's key, which may have been rotated since."""
    another = document["key_id"] != record.get("receipt_key_id")
    return replace(trust, public_key=None) if trust.public_key is not None and another else trust


def _examine_checkpoint(document: object, result: PacketVerification, place: str) -> TypeGuard[Checkpoint]:
    name = f"{place}.members"
    return result.examine(STEPS[3], name, [] if is_checkpoint(document) else [Fault(name)])


def _check_seen(
    result: PacketVerification,
    place: str,
    document: Checkpoint,
    link: Link | None,
    trust: Trust,
    untrusted_key: str | None,
) -> tuple[str, str] | None:
    """Checks a checkpoint's signature, and compares it with the retained link at its size, if there is one."""
    step = STEPS[3]
    found = judge_checkpoint(document, trust, untrusted_key)
    result.note(step, f"{place}.signature", found.holds)
    result.note(step, f"{place}.key", found.trusted)
    signed = bool(found.holds and found.trusted)
    if link is not None and (signed or place == _CHECKPOINT):
        wrong = contradicts(document, chain.head_of(link))
        # The packet is compared with a kept checkpoint; its own checkpoint is compared with the packet.
        seen: Mapping[str, object] = document
        held: Mapping[str, object] = link
        by_place = [(name, held[name], seen[name]) for name in wrong]
        told = by_place if place == _CHECKPOINT else [(name, saw, has) for name, has, saw in by_place]
        faults = [Fault(f"{place}.{name}", expected, actual, compared=True) for name, expected, actual in told]
        if result.examine(step, f"{place}.chain", faults) and signed:
            result.vouched = max(result.vouched, link["chain_position"])
    elif link is not None:
        # A checkpoint without a trusted signature proves nothing against a packet.
        result.checks[f"{place}.chain"] = None
    return None if found.error is None else (found.error, found.message or "")


def _read(part: JsonObject) -> ReadableChain:
    """The chain's part, after `_chain_member_faults` found no fault."""
    return cast("ReadableChain", part)


def _chain_member_faults(part: JsonObject) -> Iterator[Fault]:
    """The fields of the chain's part that are missing, of the wrong type, or not those of a link."""
    wrong = [
        name
        for name, type_ in _CHAIN_MEMBERS.items()
        if not isinstance(part.get(name), type_) or isinstance(part[name], bool)
    ]
    links = part.get("retained_links")
    if isinstance(links, list) and not 1 <= len(links) <= MAX_ITEMS:
        wrong.append("retained_links")
    yield from (Fault(f"audit_chain.{name}") for name in wrong)
    if isinstance(links, list) and "retained_links" not in wrong:
        for index, link in enumerate(links):
            if not _is_link(link):
                yield Fault(f"audit_chain.retained_links[{index}].members")


def _is_link(link: object) -> TypeGuard[Link]:
    return (
        isinstance(link, dict)
        and link.keys() == _LINK_MEMBERS.keys()
        and all(isinstance(link[name], type_) for name, type_ in _LINK_MEMBERS.items())
        and type(link["chain_position"]) is int
        and link["chain_position"] > 0
    )


def _link_faults(links: list[Link], record: ReadableRecord) -> Iterator[Fault]:
    """The faults of the retained links: the first must be the decision's, and each must follow from the one before."""
    where, first = "audit_chain.retained_links", links[0]
    yield from differing(f"{where}[0].audit_chain", record.get("audit_chain"), chain.record_link(first))
    entry = link_material(record)
    yield from _other_members(f"{where}[0]", _made_of(entry), first, entry._fields)
    head = chain.head_before(first) if first["chain_position"] > 1 else chain.Head(first["chain_id"])
    for index, link in enumerate(links):
        # Members of these types are plain.
        expected = chain.append(head, chain.entry_of(link), plain=True)
        yield from _other_members(f"{where}[{index}]", expected, link, expected)
        # From the link itself, not from the expected one, so that one wrong link does not make later ones wrong.
        head = chain.head_of(link)


def _made_of(entry: chain.Entry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in entry._fields}


def _other_members(
    place: str, expected: Mapping[str, object], actual: Mapping[str, object], names: Iterable[str]
) -> Iterator[Fault]:
    """A fault for each of the named fields (text, number or null) that differs from the expected value."""
    for name in names:
        if expected[name] != actual[name]:
            yield Fault(f"{place}.{name}", expected[name], actual[name], compared=True)


def _check_places(
    result: PacketVerification,
    collection: str,
    kind: Kind,
    reports: list[tuple[int, Report]],
    links: list[Link],
    decision_id: str,
) -> None:
    """Checks that each report agrees with its retained link, and that each retained link has its report.

    If a report's link is not retained, the first check is None, because only the report's own hash protects it. Such a
    report must not replace one with a retained link: then the second check fails.
    """
    step = STEPS[3]
    by_position = {link["chain_position"]: link for link in links}
    name = f"{collection}.links"
    sound = result.examine(step, name, _place_faults(kind, collection, reports, by_position))
    positions = [report["audit_chain"]["chain_position"] for _, report in reports]
    unlinked = [index for index, report in reports if report["audit_chain"]["chain_position"] not in by_position]
    for index in unlinked:
        result.note_unlinked(f"{collection}[{index}]")
    if sound and unlinked:
        result.checks[name] = None
    hidden = hidden_reports(links, kind, decision_id, positions)
    # A packet has the newest reports, and at least one if there are any. If an export shows a report without its link,
    # it retains no link of a report that it omits.
    oldest = min(positions, default=0)
    left_out = hidden if unlinked else [position for position in hidden if position > oldest]
    name = f"{collection}.complete"
    result.examine(step, name, [Fault(name, left_out, [], compared=True)] if left_out else [])
    if hidden and not left_out:
        # Nobody can tell whether a limit or somebody else omitted the older ones.
        result.checks[name] = None


def _place_faults(
    kind: Kind,
    collection: str,
    reports: list[tuple[int, Report]],
    by_position: Mapping[int, Link],
) -> Iterator[Fault]:
    for index, report in reports:
        link = by_position.get(report["audit_chain"]["chain_position"])
        if link is None:
            continue
        place, entry = f"{collection}[{index}].audit_chain", report_link(kind, report)
        yield from _other_members(place, link, report["audit_chain"], chain.RECORD_LINK_MEMBERS)
        yield from _other_members(f"{place}.link", _made_of(entry), link, entry._fields)


def _check_erasure(result: PacketVerification, record: ReadableRecord, links: list[Link]) -> None:
    """Checks that the record and the chain agree on an erasure of the decision."""
    name = "audit_chain.erasure"
    dates = {
        link["created_at"]
        for link in links
        if (link["entry_type"], link["decision_id"]) == ("erasure", record["decision_id"])
    }
    said = record.get("erased")
    told = said.get("erased_at") if isinstance(said, dict) else None
    if dates:
        result.examine(STEPS[3], name, [] if told in dates else [Fault(name)])
    elif "erased" in record:
        result.checks[name] = None
