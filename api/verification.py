"""Verification of records: of any exported record, by anyone, and of stored ones, by their scope."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from api.auth import authenticate
from api.decisions import decision_not_found
from api.requests import MAX_VERIFY_BODY, json_response, parse_body, read_body
from api.state import state
from gate.canonical import canonical
from gate.errors import FieldError, RequestRefused
from gate.labels import CANONICALIZATION, HASH_ALGORITHM, PROTOCOL, RECORD
from gate.signing import ED25519, HMAC_SHA256, raw_public_key
from gate.strict_json import MAX_VERIFY_DEPTH
from gate.verify import Verification, verify_record

blueprint = Blueprint("verification", __name__)


@blueprint.get("/api/decision/verify")
def describe() -> Response:
    """What the verify endpoint takes and answers."""
    return json_response(
        {
            "ok": True,
            "endpoint": "/api/decision/verify",
            "methods": ["GET", "POST"],
            "decision_protocol_version": PROTOCOL,
            "decision_record_version": RECORD,
            "canonicalization": CANONICALIZATION,
            "hash_algorithm": HASH_ALGORITHM,
            "signature_algorithms": [ED25519, HMAC_SHA256],
            "accepts": {
                "record": "A full Decision Record; the body may also be the record itself.",
                "input": "Optional: the original Decision Request. Its hashes are then checked as well.",
                "public_key": "Optional: a PEM key for diagnosis. It never makes a record verified.",
            },
            "receipt_keys_url": "/api/decision/receipt-keys",
            "attestation_keys_url": "/.well-known/rulebook-attestation-keys.json",
        }
    )


@blueprint.post("/api/decision/verify")
def verify_exported() -> Response:
    """Verifies an exported record without looking it up."""
    body = parse_body(read_body(MAX_VERIFY_BODY), max_depth=MAX_VERIFY_DEPTH)
    record, input_, public_key = _material(body)
    return json_response(_verify(record, input_, public_key).to_dict())


@blueprint.get("/api/decision/<decision_id>/verify")
def verify_stored(decision_id: str) -> Response:
    """Verifies the stored record of a decision, with the request it answered."""
    authority = authenticate("read")
    gate = state().gate
    record = gate.decision(authority, decision_id)
    if record is None:
        raise decision_not_found()
    return json_response(_verify(record, gate.request_body(authority, decision_id), None).to_dict())


@blueprint.post("/api/decision/<decision_id>/verify")
def verify_supplied(decision_id: str) -> Response:
    """Verifies a supplied record as that of a decision; without one, the stored record."""
    sent = read_body(MAX_VERIFY_BODY)
    authority = authenticate("read")
    body = parse_body(sent, max_depth=MAX_VERIFY_DEPTH) if sent else {}
    gate = state().gate
    stored = gate.decision(authority, decision_id)
    supplied = body != {}
    record, input_, public_key = _material(body) if supplied else (stored, None, None)
    if record is None:
        raise decision_not_found()
    if input_ is None and stored is not None:
        input_ = gate.request_body(authority, decision_id)
    result = _verify(record, input_, public_key)
    if supplied:
        result.require("decision_id", record.get("decision_id") == decision_id)
        result.require("stored_record", None if stored is None else canonical(stored) == canonical(record))
    return json_response(result.to_dict())


def _verify(record: Any, input_: Any, public_key: str | None) -> Verification:
    return verify_record(record, state().instance.trust(), request_body=input_, untrusted_key=public_key)


def _material(body: Any) -> tuple[dict[str, Any], Any, str | None]:
    """The record, its request and a key, from {record, input?, public_key?} or from the bare record."""
    wrapped = isinstance(body, dict) and "record" in body
    record = body["record"] if wrapped else body
    if not isinstance(record, dict):
        fault = FieldError("record" if wrapped else "", "type", "It must be an object: an exported Decision Record.")
        raise RequestRefused("SVC_API_REQUEST_INVALID", "The body holds no record to verify.", [fault])
    if not wrapped:
        return record, None, None
    public_key = body.get("public_key")
    if public_key is not None:
        if not isinstance(public_key, str):
            fault = FieldError("public_key", "type", "It must be a string: an Ed25519 public key in PEM (SPKI).")
            raise RequestRefused("SVC_API_REQUEST_INVALID", "The public key cannot be read.", [fault])
        raw_public_key(public_key)
    return record, body.get("input"), public_key
