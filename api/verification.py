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
    if record is None:
        raise _unusable("record", "It is missing; send the exported Decision Record.")
    return json_response(_verify(record, input_, public_key).to_dict())


@blueprint.get("/api/decision/<decision_id>/verify")
def verify_stored(decision_id: str) -> Response:
    """Verifies the stored record of a decision, with the request it answered."""
    authority = authenticate("read")
    gate = state().gate
    record = gate.decision(authority, decision_id)
    if record is None:
        raise decision_not_found()
    result = _verify(record, gate.request_body(authority, decision_id), None)
    result.require("audit_chain.link_hash", gate.is_linked(authority, decision_id))
    return json_response(result.to_dict())


@blueprint.post("/api/decision/<decision_id>/verify")
def verify_supplied(decision_id: str) -> Response:
    """Verifies a supplied record as that of a decision; without one, the stored record."""
    sent = read_body(MAX_VERIFY_BODY)
    authority = authenticate("read")
    body = parse_body(sent, max_depth=MAX_VERIFY_DEPTH) if sent else {}
    gate = state().gate
    stored = gate.decision(authority, decision_id)
    record, input_, public_key = _material(body, stored)
    if record is None:
        raise decision_not_found()
    if input_ is None and stored is not None:
        input_ = gate.request_body(authority, decision_id)
    result = _verify(record, input_, public_key)
    result.require("decision_id", record.get("decision_id") == decision_id)
    result.require("stored_record", None if stored is None else canonical(stored) == canonical(record))
    if stored is not None:
        result.require("audit_chain.link_hash", gate.is_linked(authority, decision_id))
    return json_response(result.to_dict())


def _verify(record: Any, input_: Any, public_key: str | None) -> Verification:
    return verify_record(record, state().instance.trust(), request_body=input_, untrusted_key=public_key)


_WRAPPER = {"record", "input", "public_key"}


def _material(body: Any, stored: dict[str, Any] | None = None) -> tuple[dict[str, Any] | None, Any, str | None]:
    """The record, its request and a key, from {record, input?, public_key?} or from the bare record.

    Args:
        body: The parsed body.
        stored: The record to take where the body supplies none.
    """
    if not isinstance(body, dict):
        raise _unusable("", "It must be an object: an exported Decision Record.")
    if body and not _WRAPPER & body.keys():
        return body, None, None
    for name in sorted(body.keys() - _WRAPPER):
        raise _unusable(name, f"It is not one of {', '.join(sorted(_WRAPPER))}; remove it or check its spelling.")
    record, public_key = body.get("record", stored), body.get("public_key")
    if "record" in body and not isinstance(record, dict):
        raise _unusable("record", "It must be an object: an exported Decision Record.")
    if public_key is not None:
        if not isinstance(public_key, str):
            raise _unusable("public_key", "It must be a string: an Ed25519 public key in PEM (SPKI).")
        raw_public_key(public_key)
    return record, body.get("input"), public_key


def _unusable(field: str, message: str) -> RequestRefused:
    fault = FieldError(field, "unusable", message)
    return RequestRefused("SVC_API_REQUEST_INVALID", "The body cannot be verified as it was sent; see errors.", [fault])
