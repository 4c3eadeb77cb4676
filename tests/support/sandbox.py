"""Answers of the sandbox, dressed up as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from gate.encoding.canonical import content_hash
from gate.records.envelope import envelope, integrity, receipt_material

Answer = dict[str, Any]


def unmarked(answer: Mapping[str, Any]) -> Answer:
    """An answer without its marks, under the version of a record."""
    changed = {name: value for name, value in answer.items() if name not in ("sandbox", "notice")}
    return {**changed, "decision_record_version": "decision_record_v1"}


def completed(answer: Mapping[str, Any], record: Mapping[str, Any], *others: str) -> Answer:
    """The same with all members that a record has besides, and with others of the record's."""
    names = {*(record.keys() - answer.keys()), *others}
    return {**unmarked(answer), **{name: record[name] for name in names}}


def rehashed(answer: Mapping[str, Any]) -> Answer:
    """The same with its own hashes made anew."""
    changed: Any = deepcopy(dict(answer))
    changed["record_hash"] = content_hash(envelope(changed))
    changed["receipt_hash"] = content_hash(receipt_material(changed))
    changed["integrity"] = integrity(changed)
    return dict(changed)


def _unsigned(answer: Mapping[str, Any]) -> Answer:
    signed = ("receipt_key_id", "receipt_signature", "receipt_signature_algorithm", "receipt_public_key_fingerprint")
    return {name: value for name, value in answer.items() if name not in signed}


DISGUISES: Final[dict[str, Callable[[Answer, Answer], Answer]]] = {
    "as it is": lambda answer, record: answer,
    "without its marks": lambda answer, record: {**unmarked(answer), "decision_record_version": "decision_sandbox_v1"},
    "as a record, with its marks": lambda answer, record: {**answer, "decision_record_version": "decision_record_v1"},
    "as a record": lambda answer, record: unmarked(answer),
    "as a record, hashed anew": lambda answer, record: rehashed(unmarked(answer)),
    "completed": completed,
    "completed, hashed anew": lambda answer, record: rehashed(completed(answer, record)),
    "completed, with the id": lambda answer, record: rehashed(completed(answer, record, "decision_id")),
    "completed, with the id and the hashes": lambda answer, record: completed(
        answer, record, "decision_id", "record_hash", "receipt_hash"
    ),
    "completed, with the attestation": lambda answer, record: rehashed(
        completed(answer, record, "decision_id", "rulebook_attestation")
    ),
    "completed without the signature": lambda answer, record: rehashed(
        _unsigned(completed(answer, record, "decision_id"))
    ),
}
"""What somebody may make of an answer and of a record of other facts, to show the answer's verdict as decided."""
