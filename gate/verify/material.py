"""Reads the input of a verification: a record or packet, alone or in a wrapper with its request, a key, a checkpoint.

The endpoints and the commands share this code. A wrapper may have no unknown fields, because they would not be
verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gate.encoding.strict_json import Json, JsonObject
from gate.errors import FieldError, RequestRefused
from gate.labels import SANDBOX
from gate.proof.checkpoint import Checkpoint
from gate.proof.signing import raw_public_key
from gate.verify.checkpoint import is_checkpoint


@dataclass(frozen=True, slots=True)
class Subject:
    """The kind of document to verify.

    Attributes:
        name: Its name in a wrapper.
        what: Its name in messages.
        wrapper: The fields that a wrapper may have.
    """

    name: str
    what: str
    wrapper: frozenset[str]


RECORDS: Final = Subject("record", "an exported Decision Record", frozenset({"record", "input", "public_key"}))
PACKETS: Final = Subject(
    "packet", "an exported Decision Packet", frozenset({"packet", "input", "public_key", "checkpoint"})
)


@dataclass(frozen=True, slots=True)
class Material:
    """The parts of the input.

    Attributes:
        subject: The record or packet.
        input: The original Decision Request.
        public_key: A PEM key for diagnosis.
        checkpoint: A checkpoint that the verifier kept.
    """

    subject: JsonObject | None = None
    input: Json = None
    public_key: str | None = None
    checkpoint: Checkpoint | None = None


def read_material(document: Json, of: Subject) -> Material:
    """Reads {record | packet, input?, public_key?, checkpoint?}, or a record or packet alone.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: it is not an object, or a wrapper with an unknown field.
        MaterialRefused: `PUBLIC_KEY_INVALID`.
    """
    if not isinstance(document, dict):
        raise unusable("", f"It must be an object: {of.what}.")
    # A packet can have its own field `input`, so this name alone does not show that it is a wrapper.
    if of.name not in document and not document.keys() <= of.wrapper:
        return Material(document)
    for name in sorted(document.keys() - of.wrapper):
        raise unusable(
            name,
            f"Only {', '.join(sorted(of.wrapper - {of.name}))} are allowed next to `{of.name}`; remove it, or check "
            f"its spelling.",
            code="unknown_field",
        )
    subject, public_key, checkpoint = document.get(of.name), document.get("public_key"), document.get("checkpoint")
    if of.name not in document:
        subject = None
    elif not isinstance(subject, dict):
        raise unusable(of.name, f"It must be an object: {of.what}.")
    if public_key is not None:
        if not isinstance(public_key, str):
            raise unusable("public_key", "It must be a string: an Ed25519 public key in PEM (SPKI).")
        raw_public_key(public_key)
    if checkpoint is not None and not is_checkpoint(checkpoint):
        raise unusable("checkpoint", "It must have exactly the fields of a checkpoint.")
    return Material(subject, document.get("input"), public_key, checkpoint)


def unusable(field: str, message: str, *, code: str = "type") -> RequestRefused:
    """The error for an invalid field of a document to verify."""
    where = f"correct {field} (see errors)" if field else "see errors"
    return RequestRefused(
        "SVC_API_REQUEST_INVALID",
        f"This document cannot be verified as given; {where}.",
        [FieldError(field, code, message)],
    )


_KINDS: Final = {
    "Decision Record": ("decision_record_version", "`gate verify` or POST /api/decision/verify"),
    "Decision Packet": ("decision_packet_version", "`gate verify-packet` or POST /api/decision/packet/verify"),
}
_NAMED: Final = 5


def incomplete(document: Mapping[str, object], missing: Sequence[str], what: str) -> str:
    """A sentence about a document that lacks fields, and may be of another kind than expected.

    Args:
        document: The document.
        missing: The missing fields.
        what: The expected kind: `Decision Record` or `Decision Packet`.
    """
    version, _ = _KINDS[what]
    for kind, (member, use) in _KINDS.items():
        wrapped = document.get(kind.rpartition(" ")[2].lower())
        if version not in document and (member in document or (kind != what and isinstance(wrapped, dict))):
            return f"This is a {kind}, not a {what}; use {use}."
    if what == "Decision Record" and (document.get(version) == SANDBOX or document.get("sandbox") is True):
        return (
            "This is a sandbox response, not a Decision Record: it is neither signed nor stored. Request a record at "
            "POST /api/decide with a key."
        )
    if "error" in document and "message" in document:
        return f"This is an error response, not a {what}; request it again."
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return (
        f"Only a complete {what} can be verified; this one lacks {', '.join(missing[:_NAMED])}{more}. Export it again "
        f"in full."
    )
