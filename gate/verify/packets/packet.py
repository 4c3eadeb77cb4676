"""Verifies a Decision Packet in the specification's four steps, without any other source.

1. `packet_hash`: the fields, and the hash of all of them.
2. `decision_record`: everything that `verify_record` checks, and the fields of the record that the packet repeats.
3. `execution_and_outcome_hashes`: the resolution of a held decision, and each report with its hash, its record, and its
   order.
4. `intelligence_and_chain`: the hashes of policy reports and patterns, the retained links, the reports' places among
   them, and checkpoints.

Anybody can change unsigned parts and recompute their hashes. The page `docs/explanation/threat-model.md` explains the
consequences, and how to detect such changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeGuard, cast

from gate.encoding.canonical import content_hash
from gate.errors import MaterialRefused
from gate.labels import PACKET
from gate.records.envelope import erased_members, input_material
from gate.records.packet import MAX_ITEMS, MAX_PATTERNS, REPORT_HASHES, packet_hash
from gate.records.reports.receipts import EXECUTIONS, Kind, text
from gate.verify.faults import Fault, differing
from gate.verify.material import incomplete
from gate.verify.members import ReadablePacket, ReadableRecord
from gate.verify.packets.packet_chain import Readable, check_chain, check_kept_checkpoint, check_signed
from gate.verify.packets.packet_resolution import check_resolution, check_resolution_place, granted_position
from gate.verify.packets.packet_result import COLLECTIONS, MAX_FAILURES, STEPS, PacketVerification
from gate.verify.record import AUTHENTICITY, verify_record
from gate.verify.reports import UNBOUND, follows, lacks_action_flag, member_faults, report_faults, unknown_members
from gate.verify.result import MAX_UNKNOWN, Trust, Verification

if TYPE_CHECKING:
    from gate.encoding.strict_json import Json, JsonObject
    from gate.records.documents import Report, Resolution

MEMBERS: Final[Mapping[str, type]] = {
    "packet_hash": str,
    "decision_packet_version": str,
    "decision_id": str,
    "record_hash": str,
    "receipt_hash": str,
    "decision_record": dict,
    "execution_receipts": list,
    "outcome_records": list,
    "exported_at": str,
}
"""The fields of every packet, with their JSON types."""

OPTIONAL_MEMBERS: Final[Mapping[str, type]] = {
    "policy_intelligence": dict,
    "audit_chain": dict,
    "input": object,
    "resolution": dict,
}
"""The optional fields of a packet, with their JSON types."""

# What this release puts into every policy_intelligence.
_ALWAYS_SAID: Final = frozenset({"effectiveness", "confidence", "anomalies", "benchmarks", "patterns"})
_NAMED_IN_MESSAGE: Final = 10


def verify_packet(
    packet: object,
    trust: Trust,
    *,
    request_body: object = None,
    untrusted_key: str | None = None,
    checkpoint: object = None,
    require_signed_reports: bool = False,
) -> PacketVerification:
    """Verifies an exported packet.

    Args:
        packet: The parsed packet, with its integers as such (`canonical.with_integers`).
        trust: What the verifier trusts.
        request_body: The original Decision Request. Default: the packet's own `input`.
        untrusted_key: A PEM key that came with the packet. It helps to find the cause if no trusted key is known, and
            never makes a packet verified.
        checkpoint: A checkpoint of the chain that the verifier kept, and that the packet must agree with.
        require_signed_reports: Whether a signed checkpoint must cover all reports of a verified packet.

    Returns:
        The result. No content of a packet raises an exception.
    """
    result = PacketVerification()
    record: Verification | None = None
    key_fault: tuple[str, str] | None = None
    said: Mapping[str, object] = {}
    try:
        if _check_packet(packet, result):
            said = packet["decision_record"]
            record = _check_record(result, packet, trust, request_body, untrusted_key)
            if record.checks.get("members"):
                readable = _record_of(packet)
                resolution, resolution_fault = check_resolution(result, packet, readable, trust, untrusted_key)
                reports = _check_reports(result, packet, readable, resolution)
                _check_intelligence(result, packet, readable)
                key_fault = check_chain(result, packet, readable, reports, trust, untrusted_key)
                key_fault = resolution_fault or key_fault
                check_resolution_place(result, packet, readable, resolution)
                if checkpoint is not None:
                    kept = check_kept_checkpoint(result, packet, readable, checkpoint, trust, untrusted_key)
                    key_fault = kept or key_fault
                check_signed(result, packet, reports)
    except MaterialRefused as error:
        result.fail(STEPS[0], Fault("material"))
        result.error, result.message = error.code, error.message
    # If the record has a result, the packet has one.
    _conclude(result, record, key_fault, given=request_body is not None)
    if record is not None:
        _say_what_is_left(result, said, required=require_signed_reports)
    return result


def _check_packet(packet: object, result: PacketVerification) -> TypeGuard[ReadablePacket]:
    """Step 1. Whether the other steps can read the packet."""
    step, known = STEPS[0], {**MEMBERS, **OPTIONAL_MEMBERS}
    if not isinstance(packet, dict):
        return _unreadable(result, "PACKET_INVALID", "The packet is not a JSON object; export it again in full.")
    if missing := sorted(name for name in MEMBERS if name not in packet):
        return _unreadable(result, "PACKET_INCOMPLETE", incomplete(packet, missing, "Decision Packet"))
    if mistyped := [name for name in packet if name in known and not isinstance(packet[name], known[name])]:
        return _unreadable(
            result,
            "PACKET_INVALID",
            f"These fields have the wrong type: {', '.join(mistyped)}.",
        )
    if long := [name for name, _ in COLLECTIONS if len(packet[name]) > MAX_ITEMS]:
        return _unreadable(
            result,
            "PACKET_INVALID",
            f"A packet has at most {MAX_ITEMS} of a kind; this one has more {', '.join(long)}.",
        )
    patterns = packet.get("policy_intelligence", {}).get("patterns")
    if isinstance(patterns, list) and len(patterns) > MAX_PATTERNS:
        return _unreadable(
            result, "PACKET_INVALID", f"A packet has at most {MAX_PATTERNS} patterns; this one has more."
        )
    result.checks["members"] = True
    result.note_unknown("unknown_members", "", packet.keys() - known.keys())
    told = {"packet_hash": packet_hash(packet), "decision_packet_version": PACKET}
    for name, expected in told.items():
        result.examine(step, name, differing(name, expected, packet[name]))
    return True


def _unreadable(result: PacketVerification, code: str, message: str) -> bool:
    result.fail(STEPS[0], Fault("members"))
    result.error, result.message = code, message
    return False


def _check_record(
    result: PacketVerification, packet: ReadablePacket, trust: Trust, request_body: object, untrusted_key: str | None
) -> Verification:
    """Step 2."""
    step, record = STEPS[1], packet["decision_record"]
    body = packet.get("input") if request_body is None else request_body
    found = verify_record(record, trust, request_body=body, untrusted_key=untrusted_key)
    result.key_source = found.key_source
    of_record = [f"decision_record.{name}" for name in found.unknown]
    result.unknown += of_record[: MAX_UNKNOWN - len(result.unknown)]
    # Erased parts fail no check, but the record may still not be verified.
    result.steps[step].holds = found.verified or None
    for name, holds in found.checks.items():
        if holds is False:
            fault = Fault(f"record.{name}", found.expected.get(name), found.actual.get(name), name in found.expected)
            result.fail(step, fault, authenticity=name in AUTHENTICITY)
        else:
            result.checks[f"record.{name}"] = holds
    if found.checks.get("members"):
        _check_cited(result, packet, _record_of(packet))
    return found


def _record_of(packet: ReadablePacket) -> ReadableRecord:
    """The packet's record, once `verify_record` found nothing wrong with its members."""
    return cast("ReadableRecord", packet["decision_record"])


_CITED: Final[tuple[Literal["decision_id", "record_hash", "receipt_hash"], ...]] = (
    "decision_id",
    "record_hash",
    "receipt_hash",
)


def _check_cited(result: PacketVerification, packet: ReadablePacket, record: ReadableRecord) -> None:
    """Step 2: the fields of the record that the packet repeats, and its request."""
    for name in _CITED:
        result.examine(STEPS[1], name, differing(name, record[name], packet[name]))
    if "input" in packet:
        result.examine(STEPS[1], "input", _input_faults(packet["input"], record))


def _input_faults(input_: Json, record: ReadableRecord) -> Iterator[Fault]:
    """The faults of a packet's `input`: it may be null only if the record says that it was erased."""
    if input_ is not None:
        yield from differing("input", record["input_hash"], content_hash(input_material(input_)))
    elif "input" not in erased_members(record):
        yield Fault("input")


def _check_reports(
    result: PacketVerification, packet: ReadablePacket, record: ReadableRecord, resolution: Resolution | None
) -> Readable:
    """Step 3. Returns the reports that step 4 can read."""
    step, granted_at = STEPS[2], granted_position(resolution)
    readable: Readable = {}
    taken: set[int | str] = set()
    for collection, kind in COLLECTIONS:
        reports = packet[collection]
        wrong = [member_faults(kind, report, f"{collection}[{index}]") for index, report in enumerate(reports)]
        # `member_faults` found every member of these.
        sound = [(index, cast("Report", report)) for index, report in enumerate(reports) if not wrong[index]]
        faults = itertools.chain(*wrong, _collection_faults(kind, collection, sound, record, taken, granted_at))
        result.examine(step, collection, faults)
        check = f"{collection}.unknown_members"
        result.note_unknown(check, collection, ())
        for index, report in enumerate(reports):
            result.note_unknown(check, f"{collection}[{index}]", unknown_members(kind, report))
        if kind is EXECUTIONS:
            for index, receipt in sound:
                granted = follows(receipt, granted_at)
                if lacks_action_flag(cast("Mapping[str, object]", receipt), record, granted=granted):
                    result.note_unflagged(f"{collection}[{index}]")
        for index, shaped in sound:
            for name in sorted(UNBOUND[kind.name] & shaped.keys()):
                result.note_unbound(f"{collection}[{index}].{name}")
        readable[collection] = sound
    return readable


def _collection_faults(
    kind: Kind,
    collection: str,
    reports: list[tuple[int, Report]],
    record: ReadableRecord,
    taken: set[int | str],
    granted_at: int | None,
) -> Iterator[Fault]:
    """The faults of each report, and of their order: newest first, no id and no chain position twice."""
    above: int | None = None
    for index, report in reports:
        place = f"{collection}[{index}]"
        yield from report_faults(kind, report, record, place, granted_at=granted_at)
        position, id_ = report["audit_chain"]["chain_position"], text(report, kind.id_member)
        if position in taken or (above is not None and position > above):
            yield Fault(f"{place}.audit_chain.chain_position")
        if id_ in taken:
            yield Fault(f"{place}.{kind.id_member}")
        taken |= {position, id_}
        above = position


def _check_intelligence(result: PacketVerification, packet: ReadablePacket, record: ReadableRecord) -> None:
    """Step 4: the reports about the policy."""
    step, said = STEPS[3], packet.get("policy_intelligence")
    if said is None:
        result.checks["policy_intelligence"] = None
        return
    unknown = said.keys() - {*REPORT_HASHES, "patterns"}
    result.note_unknown("policy_intelligence.unknown_members", "policy_intelligence", unknown)
    for name, hash_member in REPORT_HASHES.items():
        if name in said:
            place = f"policy_intelligence.{name}"
            result.examine(step, place, _policy_report_faults(place, said[name], hash_member, record))
    if "patterns" in said:
        place = "policy_intelligence.patterns"
        result.examine(step, place, _pattern_faults(place, said["patterns"], record))
    for name in _ALWAYS_SAID - set(said):
        result.checks[f"policy_intelligence.{name}"] = None


def _policy_report_faults(place: str, report: Json, hash_member: str, record: ReadableRecord) -> Iterator[Fault]:
    if not isinstance(report, dict):
        yield Fault(place)
        return
    yield from differing(f"{place}.{hash_member}", _hash_without(report, hash_member), report.get(hash_member))
    yield from differing(f"{place}.policy_id", record["policy_id"], report.get("policy_id"))
    for name in _LOOKED_AT:
        if report.get(name) is not None:
            yield from differing(f"{place}.{name}", record[name], report[name])


# A report can be of one version, verdict and action, or of all of them, where it says null.
_LOOKED_AT: Final[tuple[Literal["policy_version", "verdict", "action"], ...]] = ("policy_version", "verdict", "action")


def _pattern_faults(place: str, patterns: Json, record: ReadableRecord) -> Iterator[Fault]:
    for index, pattern in enumerate(patterns if isinstance(patterns, list) else [patterns]):
        where = f"{place}[{index}]"
        if not isinstance(pattern, dict):
            yield Fault(where)
            continue
        yield from differing(
            f"{where}.pattern_hash", _hash_without(pattern, "pattern_hash"), pattern.get("pattern_hash")
        )
        yield from differing(f"{where}.policy_id", record["policy_id"], pattern.get("policy_id"))


def _hash_without(document: JsonObject, hash_member: str) -> str:
    return content_hash({name: value for name, value in document.items() if name != hash_member})


def _conclude(
    result: PacketVerification, record: Verification | None, key_fault: tuple[str, str] | None, *, given: bool
) -> None:
    """Sums up the checks, and sets the code with the highest priority: changes come before keys.

    `given` says whether the verifier gave the record's request. The packet then cannot have changed it.
    """
    result.integrity_valid = record is not None and record.integrity_valid and result.changed == 0
    result.authenticity_valid = record is not None and record.authenticity_valid and result.unauthentic == 0
    if result.error is not None:
        return
    of_record = (record.error, record.message) if record is not None else (None, None)
    if of_record[0] in _UNREADABLE:
        result.error = _UNREADABLE[of_record[0]]
        result.message = f"Its decision_record cannot be verified. {of_record[1]}"
    elif given and record is not None and of_record[0] == "INPUT_MISMATCH" and _is_only_of_record(result, record):
        result.error, result.message = of_record
    elif result.changed:
        result.error = "PACKET_INTEGRITY_FAILED"
        result.message = f"The packet was changed after it was made; these checks fail: {_named(result)}."
    elif of_record[0] not in (None, "RECORD_SIGNATURE_INVALID", "MATERIAL_ERASED"):
        result.error, result.message = of_record
    elif key_fault is not None:
        result.error, result.message = key_fault
    elif result.unauthentic:
        result.error = "PACKET_SIGNATURE_INVALID"
        result.message = f"The packet is not authentic; these checks fail: {_named(result)}."
    else:
        result.error, result.message = of_record


def _is_only_of_record(result: PacketVerification, record: Verification) -> bool:
    """Whether only checks of the record failed."""
    failed = sum(holds is False for holds in record.checks.values())
    return result.changed + result.unauthentic == failed


def _say_what_is_left(result: PacketVerification, record: Mapping[str, object], *, required: bool) -> None:
    """Says what a verified packet does not prove: erased parts, and reports that no signed checkpoint covers."""
    if not result.verified:
        return
    told = []
    if result.error == "MATERIAL_ERASED":
        confirmed = result.checks.get("audit_chain.erasure") is True
        if confirmed:
            result.checks["record.erasure"] = True
        told.append(_erasure(erased_members(record), confirmed=confirmed))
    if not result.checks.get("reports_signed"):
        # It has priority over an erasure, which the message mentions too.
        result.error = "REPORTS_UNSIGNED"
        told.append(_unsigned(result.unsigned))
        result.authenticity_valid = not required
    if told:
        result.message = " ".join(told)


def _erasure(erased: Collection[str], *, confirmed: bool) -> str:
    *others, last = sorted(erased)
    named = f"{', '.join(others)} and {last}" if others else last
    told = f"The record says that {named} {'was' if len(erased) == 1 else 'were'} erased"
    told += ", and a retained link confirms it." if confirmed else "; no retained link confirms it."
    if "adapter_facts" not in erased:
        return told
    return f"{told} Without adapter_facts, record_hash cannot be recomputed."


def _unsigned(places: Sequence[str]) -> str:
    if not places:
        return "The record is signed, but no signed checkpoint shows whether anything was reported about it."
    more = f" and {len(places) - _NAMED_IN_MESSAGE} more" if len(places) > _NAMED_IN_MESSAGE else ""
    return (
        f"The record is signed, but these reports are not: {', '.join(places[:_NAMED_IN_MESSAGE])}{more}. Only their "
        f"own hashes protect them, and anyone can compute those: no signed checkpoint covers their links."
    )


_UNREADABLE: Final = {"RECORD_INVALID": "PACKET_INVALID", "RECORD_INCOMPLETE": "PACKET_INCOMPLETE"}


def _named(result: PacketVerification) -> str:
    named = [name for step in result.steps.values() for name in step.failed][:_NAMED_IN_MESSAGE]
    failed = result.changed + result.unauthentic
    if failed == len(named):
        return ", ".join(named)
    # A part with too many faults was not read to its end.
    return f"{', '.join(named)} and {'at least ' if failed >= MAX_FAILURES else ''}{failed - len(named)} more"
