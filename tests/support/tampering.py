"""Changing documents: every change to every place, and what a forger recomputes to hide one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from gate.encoding.canonical import content_hash
from gate.proof import chain
from gate.proof.checkpoint import sign_checkpoint
from gate.proof.signing import Ed25519Signer
from gate.records.envelope import envelope, integrity, receipt_material, receipt_payload
from gate.records.packet import REPORT_HASHES, packet_hash
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES, Kind, flags, report_hash

Path = tuple[Any, ...]

COLLECTIONS: dict[str, Kind] = {"execution_receipts": EXECUTIONS, "outcome_records": OUTCOMES}


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every member and item, at any depth, each before those inside of it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield (*path, step)
        yield from places(item, (*path, step))


def at(value: Any, path: Path) -> Any:
    """What stands at a path."""
    for step in path:
        value = value[step]
    return value


def other_values(value: Any) -> list[Any]:
    """Values that differ from one: empty ones, other types, and neighbours."""
    others: list[Any] = [None, "", {}, [], 0, False, True, 1, "x", {"x": 1}, [1]]
    if isinstance(value, str):
        others += [f"{value}x", f"{value} ", value[:-1], value.upper(), value[:-1] + chr(ord(value[-1:] or "a") ^ 1)]
    if isinstance(value, int | float):
        others += [value + 1, -value - 1, value + 0.5, str(value)]
    if isinstance(value, list):
        others += [[*value, "x"], [*value, None], value[1:], value[::-1], [*value, *value[:1]]]
    if isinstance(value, dict):
        others += [{**value, "x": 1}, {**value, "x": None}, {**value, "x": ""}, {**value, "x": {}}]
    return [other for other in others if content_hash(other) != content_hash(value)]


def neighbour(value: Any) -> Any:
    """One value of the same type that differs from one, and is as likely."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        # A great double has no neighbour at that distance.
        return value + 1 if value + 1 != value else value / 2
    if isinstance(value, str):
        return f"{value[:-1]}{'1' if value.endswith('0') else '0'}"
    if isinstance(value, list):
        return value[1:] if value else ["0"]
    return {**value, "note": "0"} if isinstance(value, dict) else "0"


def _copy(document: Any) -> Any:
    # A tenth of the time of a deep copy, of which there are thousands.
    return orjson.loads(orjson.dumps(document))


def with_value(document: Any, path: Path, value: Any) -> Any:
    """A copy that has another value at a path."""
    copied = _copy(document)
    at(copied, path[:-1])[path[-1]] = value
    return copied


def without(document: Any, path: Path) -> Any:
    """A copy that has nothing at a path."""
    copied = _copy(document)
    del at(copied, path[:-1])[path[-1]]
    return copied


def as_doubles(value: Any) -> Any:
    """The same JSON value, with doubles for integers."""
    if type(value) is int:
        return float(value)
    if isinstance(value, dict):
        return {name: as_doubles(item) for name, item in value.items()}
    return [as_doubles(item) for item in value] if isinstance(value, list) else value


def changed(document: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """Each change to what stands at a path, described, and the changed copy."""
    for other in other_values(at(document, path)):
        yield f"{path} = {other!r}", with_value(document, path, other)
    yield f"{path} removed", without(document, path)


def changed_likely(document: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """A likely other value in the place of what stands at a path, null, its removal, and in lists an addition."""
    value = at(document, path)
    others = [neighbour(value), *([] if value in ("", None, [], {}) else [None])]
    if isinstance(value, list):
        others.append([*value, *value[:1]] if value else [None])
    for other in others:
        yield f"{path} = {other!r}", with_value(document, path, other)
    yield f"{path} removed", without(document, path)


class Forger:
    """Recomputes what depends on a change to a packet, as far as it goes without a key that is trusted."""

    def __init__(self, packet: dict[str, Any]) -> None:
        """Takes a packet, of which it changes a copy."""
        self.packet: dict[str, Any] = _copy(packet)

    def edit(self, edit: dict[str, Any]) -> None:
        """Makes an edit: {set: path, to: value}, {remove: path}, {reverse: path of a list}, {repeat: path of an item,
        with: members}, which puts a copy with other members before it, or {move: path of the chain, by: positions},
        which moves all links, and what stands at them.
        """
        ((verb, path),) = ((name, path) for name, path in edit.items() if name not in ("to", "with", "by"))
        holder, last = at(self.packet, path[:-1]), path[-1]
        if verb == "set":
            holder[last] = edit["to"]
        elif verb == "remove":
            del holder[last]
        elif verb == "reverse":
            holder[last].reverse()
        elif verb == "move":
            reports = [report for collection in COLLECTIONS for report in self.packet[collection]]
            for place in [*holder[last]["retained_links"], *(report["audit_chain"] for report in reports)]:
                place["chain_position"] += edit["by"]
        else:
            holder.insert(last, _copy({**holder[last], **edit["with"]}))

    def recompute(self, parts: list[str], signer: Ed25519Signer) -> None:
        """Recomputes parts, in the order given: record, receipt, confidence, reports, intelligence, links, checkpoint,
        packet_hash. What is signed, is by the signer.
        """
        for part in parts:
            if part in ("receipt", "checkpoint"):
                getattr(self, part)(signer)
            else:
                getattr(self, part)()

    def record(self) -> None:
        """The record's hashes."""
        record = self.packet["decision_record"]
        record["record_hash"] = content_hash(envelope(record))
        record["receipt_hash"] = content_hash(receipt_material(record))
        record["audit_chain"]["leaf_hash"] = chain.leaf(
            "decision", record["decision_id"], record["record_hash"], record["receipt_hash"]
        )
        self.packet |= {name: record[name] for name in ("decision_id", "record_hash", "receipt_hash")}

    def receipt(self, signer: Ed25519Signer) -> None:
        """The receipt's signature, with the name and fingerprint of its key."""
        record = self.packet["decision_record"]
        record |= {
            "receipt_key_id": signer.key_id,
            "receipt_signature": signer.sign(receipt_payload(record, signer.key_id)),
            "receipt_public_key_fingerprint": signer.fingerprint,
        }
        record["integrity"] = integrity(record)

    def confidence(self) -> None:
        """The hash of the record's decision_confidence."""
        record = self.packet["decision_record"]
        stated = {name: value for name, value in record["decision_confidence"].items() if name != "confidence_hash"}
        record["confidence_hash"] = content_hash(stated)
        record["decision_confidence"]["confidence_hash"] = record["confidence_hash"]

    def reports(self) -> None:
        """What reports repeat of the record, and all that follows from their members."""
        record = self.packet["decision_record"]
        for collection, kind in COLLECTIONS.items():
            for report in self.packet[collection]:
                repeated = {"decision_record_hash": "record_hash", "decision_receipt_hash": "receipt_hash"}
                report |= {name: record[of_record] for name, of_record in repeated.items()}
                if kind is EXECUTIONS:
                    report["action_binding_hash"] = content_hash(report["action_binding"])
                    report["flags"] = flags(report, record)
                report[kind.hash_member] = report_hash(kind, report)
                leaf_hash = chain.leaf(kind.entry_type, report["decision_id"], report[kind.hash_member], None)
                report["audit_chain"]["leaf_hash"] = leaf_hash

    def intelligence(self) -> None:
        """The hashes of policy reports and patterns."""
        said = self.packet["policy_intelligence"]
        hashed = [(said[name], member) for name, member in REPORT_HASHES.items() if name in said]
        for document, member in [*hashed, *((pattern, "pattern_hash") for pattern in said["patterns"])]:
            document[member] = content_hash({name: value for name, value in document.items() if name != member})

    def links(self) -> None:
        """Every retained link, from what record and reports say by now, and what repeats of the links."""
        part, record = self.packet["audit_chain"], self.packet["decision_record"]
        first = part["retained_links"][0]
        placed = {first["chain_position"]: (record, record["record_hash"], record["created_at"])}
        for collection, kind in COLLECTIONS.items():
            for report in self.packet[collection]:
                told = (report, report[kind.hash_member], report["reported_at"])
                placed[report["audit_chain"]["chain_position"]] = told
        head, links = chain.head_before(first), []
        for link in part["retained_links"]:
            if link["chain_position"] in placed:
                document, hash_, created_at = placed[link["chain_position"]]
                names = ("decision_id", "policy_id", "policy_version")
                link |= {name: document[name] for name in names}
                link |= {"record_hash": hash_, "created_at": created_at}
            if link["entry_type"] == "decision" and link["chain_position"] in placed:
                link["receipt_hash"] = record["receipt_hash"]
            links.append(chain.append(head, chain.entry_of(link)))
            head = chain.head_of(links[-1])
            if link["chain_position"] in placed:
                placed[link["chain_position"]][0]["audit_chain"] = chain.record_link(links[-1])
        part |= {
            "retained_links": links,
            "chain_id": head.chain_id,
            "chain_size": head.size,
            "merkle_root": head.merkle_root,
        }

    def checkpoint(self, signer: Ed25519Signer) -> None:
        """The checkpoint of the last link, signed anew."""
        part = self.packet["audit_chain"]
        last = chain.head_of(part["retained_links"][-1])
        hints = part["verification_hints"]
        hints["checkpoint"] = sign_checkpoint(last, hints["checkpoint"]["issued_at"], signer)

    def packet_hash(self) -> None:
        """The packet's own hash."""
        self.packet["packet_hash"] = packet_hash(self.packet)
