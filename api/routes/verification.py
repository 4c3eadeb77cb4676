"""Verifies exported records and packets for everyone, and stored records for their scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flask import Blueprint, Response

from api.http.auth import authenticate
from api.http.requests import MAX_VERIFY_BODY, parse_body, read_body
from api.http.responses import json_response
from api.http.state import state
from gate.decisions.erasure import as_stored
from gate.decisions.stored import decision_not_found
from gate.decisions.verification import require_erasure, verify_decision
from gate.encoding.canonical import canonical, with_integers
from gate.encoding.strict_json import MAX_VALUES, MAX_VERIFY_DEPTH, Json
from gate.labels import CANONICALIZATION, HASH_ALGORITHM, PACKET, PROTOCOL, RECORD
from gate.proof.signing import ED25519, HMAC_SHA256
from gate.verify import Verification, verify_packet, verify_record
from gate.verify.material import PACKETS, RECORDS, Material, Subject, read_material, unusable

blueprint = Blueprint("verification", __name__)


@blueprint.get("/api/decision/verify")
def describe() -> Response:
    """The fields of the verify endpoint."""
    return _description(
        "/api/decision/verify",
        {"decision_record_version": RECORD},
        {
            "record": "A full Decision Record. The body may also be the record itself.",
            "input": "Optional: the original Decision Request. Its hashes are checked too.",
            "public_key": "Optional: a public key in PEM, for diagnosis. It never makes a record verified.",
        },
    )


@blueprint.get("/api/decision/packet/verify")
def describe_packets() -> Response:
    """The fields of the verify endpoint for packets."""
    return _description(
        "/api/decision/packet/verify",
        {"decision_packet_version": PACKET, "decision_record_version": RECORD},
        {
            "packet": "A Decision Packet. The body may also be the packet itself.",
            "input": "Optional: the original Decision Request; default: the packet's own input.",
            "public_key": "Optional: a public key in PEM, for diagnosis. It never makes a packet verified.",
            "checkpoint": "Optional: a checkpoint of the chain that you kept. The packet must agree with it.",
        },
    )


def _description(endpoint: str, versions: dict[str, str], accepts: dict[str, str]) -> Response:
    return json_response(
        {
            "ok": True,
            "endpoint": endpoint,
            "methods": ["GET", "POST"],
            "decision_protocol_version": PROTOCOL,
            **versions,
            "canonicalization": CANONICALIZATION,
            "hash_algorithm": HASH_ALGORITHM,
            "signature_algorithms": [ED25519, HMAC_SHA256],
            "accepts": accepts,
            "receipt_keys_url": "/api/decision/receipt-keys",
            "attestation_keys_url": "/.well-known/rulebook-attestation-keys.json",
        }
    )


@blueprint.post("/api/decision/verify")
def verify_exported() -> Response:
    """Verifies an exported record without looking it up."""
    return json_response(exported(_parsed(read_body(MAX_VERIFY_BODY))).to_dict())


def exported(document: Json) -> Verification:
    """Verifies an exported record without looking it up, for any protocol.

    Args:
        document: The record, or a wrapper with it, its request, and a key.

    Raises:
        GateError: The document has no record that could be verified.
    """
    sent = _material(document, RECORDS)
    return _verify(sent.subject, sent.input, sent.public_key)


@blueprint.post("/api/decision/packet/verify")
def verify_exported_packet() -> Response:
    """Verifies an exported packet without looking anything up."""
    sent = _material(_parsed(read_body(MAX_VERIFY_BODY)), PACKETS)
    result = verify_packet(
        sent.subject,
        state().instance.trust(),
        request_body=sent.input,
        untrusted_key=sent.public_key,
        checkpoint=sent.checkpoint,
    )
    return json_response(result.to_dict())


def _material(document: Json, of: Subject) -> Material:
    """What a body gives of a record or packet, which must be there."""
    sent = read_material(document, of)
    if sent.subject is None:
        raise unusable(of.name, f"It is missing; send {of.what}.", code="required")
    return sent


@blueprint.get("/api/decision/<decision_id>/verify")
def verify_stored(decision_id: str) -> Response:
    """Verifies the stored record of a decision with its request."""
    return json_response(stored(decision_id).to_dict())


def stored(decision_id: str) -> Verification:
    """Verifies the stored record of a decision with its request, for any protocol.

    Raises:
        GateError: The caller has no access, or there is no such decision.
    """
    authority = authenticate("read")
    instance = state().instance
    return verify_decision(instance.ledger, instance.trust(), authority.scope_id, decision_id)


@blueprint.post("/api/decision/<decision_id>/verify")
def verify_supplied(decision_id: str) -> Response:
    """Verifies that a supplied record belongs to a decision; without one, verifies the stored record."""
    sent = read_body(MAX_VERIFY_BODY)
    return json_response(supplied(decision_id, lambda: _parsed(sent) if sent else {}).to_dict())


def supplied(decision_id: str, read: Callable[[], Json]) -> Verification:
    """Verifies that a supplied record belongs to a decision, for any protocol; without one, verifies the stored record.

    Args:
        decision_id: The decision.
        read: Reads the supplied record, after the caller is known; raises `GateError`.

    Raises:
        GateError: The caller has no access, or there is nothing to verify.
    """
    authority = authenticate("read")
    body = read()
    gate = state().gate
    stored = gate.decision(authority, decision_id)
    given = read_material(body, RECORDS)
    public_key = given.public_key
    input_: object = given.input
    record: Mapping[str, object] | None = given.subject
    if record is None:
        record = stored
    if record is None:
        raise decision_not_found()
    if input_ is None and stored is not None:
        input_ = gate.request_body(authority, decision_id)
    result = _verify(record, input_, public_key)
    result.require("decision_id", record.get("decision_id") == decision_id)
    result.require(
        "stored_record", None if stored is None else canonical(stored) == canonical(as_stored(record, stored))
    )
    if stored is not None:
        result.require("audit_chain.link_hash", gate.is_linked(authority, decision_id))
        require_erasure(result, state().instance.ledger, authority.scope_id, decision_id, as_stored(record, stored))
    return result


def _parsed(sent: bytes) -> Json:
    """The JSON value of a body that is to be verified.

    64 levels are enough. What a caller sent, at most 32 deep, stands at most 5 deeper in a packet: a fact that a test
    observed is 9 deep, in packet.decision_record.evaluation.rules[].tests[].observed, and was 4 deep in its request.
    Whoever kept the document may have written its integers as doubles, which is the same JSON.
    """
    return with_integers(parse_body(sent, max_depth=MAX_VERIFY_DEPTH, max_values=MAX_VALUES))


def _verify(record: object, input_: object, public_key: str | None) -> Verification:
    return verify_record(record, state().instance.trust(), request_body=input_, untrusted_key=public_key)
