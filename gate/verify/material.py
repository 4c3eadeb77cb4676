"""What a verifier is given: a record or packet, bare or in a wrapper with its request, a key and a checkpoint.

One reading for the endpoints and the commands. A wrapper holds nothing that is not named here: what stands beside a
record or packet would otherwise go unverified.
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
    """What is verified.

    Attributes:
        name: Its name in a wrapper.
        what: What to call it.
        wrapper: What a wrapper may hold.
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
    """What was given, each part where it was.

    Attributes:
        subject: The record or packet.
        input: The original Decision Request.
        public_key: A PEM key, which serves diagnosis.
        checkpoint: A checkpoint that the verifier kept.
    """

    subject: JsonObject | None = None
    input: Json = None
    public_key: str | None = None
    checkpoint: Checkpoint | None = None


def read_material(document: Json, of: Subject) -> Material:
    """Reads {record | packet, input?, public_key?, checkpoint?}, or the bare record or packet.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: it is no object, or a wrapper with something that it may not hold.
        MaterialRefused: PUBLIC_KEY_INVALID.
    """
    if not isinstance(document, dict):
        raise unusable("", f"It must be an object: {of.what}.")
    # A packet can have a member `input` of its own, so that this name alone makes no wrapper.
    if of.name not in document and not document.keys() <= of.wrapper:
        return Material(document)
    for name in sorted(document.keys() - of.wrapper):
        raise unusable(
            name,
            f"Beside `{of.name}` there may be only {', '.join(sorted(of.wrapper - {of.name}))}; remove it, or check "
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
        raise unusable("checkpoint", "It must be a checkpoint, with exactly the members that a checkpoint has.")
    return Material(subject, document.get("input"), public_key, checkpoint)


def unusable(field: str, message: str, *, code: str = "type") -> RequestRefused:
    """What to raise for a member that makes a document unfit to be verified."""
    where = f"correct {field} (see errors)" if field else "see errors"
    return RequestRefused(
        "SVC_API_REQUEST_INVALID",
        f"This cannot be verified as it was given; {where}.",
        [FieldError(field, code, message)],
    )


_KINDS: Final = {
    "Decision Record": ("decision_record_version", "`gate verify` or POST /api/decision/verify"),
    "Decision Packet": ("decision_packet_version", "`gate verify-packet` or POST /api/decision/packet/verify"),
}
_NAMED: Final = 5


def incomplete(document: Mapping[str, object], missing: Sequence[str], what: str) -> str:
    """A sentence about a document that lacks members, and may be something else than it was given for.

    Args:
        document: The document.
        missing: What it lacks.
        what: What it was given for: `Decision Record` or `Decision Packet`.
    """
    version, _ = _KINDS[what]
    for kind, (member, use) in _KINDS.items():
        wrapped = document.get(kind.rpartition(" ")[2].lower())
        if version not in document and (member in document or (kind != what and isinstance(wrapped, dict))):
            return f"This is a {kind} and not a {what}; use {use}."
    if what == "Decision Record" and (document.get(version) == SANDBOX or document.get("sandbox") is True):
        return (
            "This is an answer of the sandbox and not a Decision Record: nobody signed or stored it. Ask for a record "
            "at POST /api/decide, with a key."
        )
    if "error" in document and "message" in document:
        return f"This is an answer that tells of an error and not a {what}; ask for it again."
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return (
        f"Only a whole {what} verifies; this one lacks {', '.join(missing[:_NAMED])}{more}. Export it again, in full."
    )
