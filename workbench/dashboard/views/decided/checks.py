"""The checks of a verification in words; docs/verification.md explains each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from gate.ids import parse_timestamp
from gate.verify import Verification
from workbench.engines.rendering import on_one_line
from workbench.engines.wording import counted, moment, phrase

_LONGEST: Final = 400

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "members": "Every field of a record is there, with its type",
        "unknown_members": "The record has no field that this release does not know",
        "material": "The record holds only values that can be hashed",
        "record_hash": "The record hash is that of the record",
        "receipt_hash": "The receipt hash is that of the receipt's fields",
        "policy_bundle_hash": "The policy bundle has its hash",
        "output_hash": "The output hash is that of the answer",
        "bundle_hash": "The attested evaluation has its hash",
        "evaluation": "The explanation is the one that the record hash covers",
        "registry_attestation_hash": "The rulebook's registration has its hash",
        "decision_record_version": "The record has the protocol's format",
        "decision_protocol_version": "The record names the protocol's version",
        "evaluator_version": "The record names the evaluator's version",
        "verdict": "The verdict is yes, no or review",
        "c": "The short verdict follows from the verdict",
        "v": "The short form of the rulebook's verdict follows from it",
        "evidence": "The evidence follows from reason and rule",
        "evidence_manifest.codes": "The evidence is the same in the manifest",
        "source_hash": "The source is the rulebook",
        "policy_bundle": "The policy bundle names this policy",
        "rulebook": "The rulebook reference names this policy",
        "rulebook_registry": "The registration names this policy",
        "rulebook_contract": "The rulebook contract has no empty fields",
        "registry_attestation": "The registration's attestation is repeated as it is",
        "rulebook_attestation": "The attested evaluation repeats the record's outcome",
        "rulebook_attestation_members": "The attestation of the evaluation has the fields of its format",
        "registry_attestation_members": "The attestation of the registration has the fields of its format",
        "urls": "The record's addresses are those of this decision",
        "integrity": "The summary of hashes and signature follows from the record",
        "decision_contract": "The record has no contract of an advisory decision",
        "trusted_adapter": "The adapter is the same wherever the record names it",
        "adapter_input_hash": "The stored request has the input that the adapter was given",
        "adapter_facts": "No adapter's facts were added",
        "idempotency_key": "The idempotency key is not empty",
        "receipt_members": "The receipt's signature is whole",
        "input_hash": "The stored request is the one that was decided",
        "facts_hash": "The facts are those that were attested",
        "rulebook_hash": "The rulebook is the one that decided",
        "receipt_signature": "The receipt's signature holds",
        "receipt_key": "The receipt's key is trusted for its date",
        "receipt_signature_scheme": "The receipt's signature is of its algorithm",
        "receipt_public_key_fingerprint": "The fingerprint is that of the receipt's key",
        "attestation_signature": "The signature of the attested evaluation holds",
        "registry_attestation_signature": "The signature of the rulebook's registration holds",
        "confidence_hash": "The confidence has its hash",
        "audit_chain.leaf_hash": "The chain's leaf is that of this record",
        "audit_chain.link_hash": "The chain's link follows from this record and the link before",
        "erased": "Exactly the erased parts are empty",
        "erasure": "The chain has this erasure, and no other",
    }
)
WORDS_OF_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "output_hash": "The output hash is that of the verdict",
        "v": "The short form of the answer follows from it",
        "evidence": "The evidence follows from the reason code and the model's answer",
        "evidence_manifest.sources": "The sources are the prompt template and the model's answer",
        "evaluation": "The model's answer is the one that the record hash covers",
        "source_hash": "The source is the prompt template",
        "policy_bundle": "The policy bundle names this prompt template",
        "decision_contract": "The record says that it authorizes nothing",
        "binding_members": "The record has no field of a binding decision",
        "advice": "Verdict, reason code and action follow from the model's answer",
        "input_hash": "The stored request is the one that was asked",
    }
)
"""What stands in the place of `WORDS` where a record is advisory."""

_SKIPPED_OF_ADVICE: Final[Mapping[str, str]] = MappingProxyType({"evaluation": "The model's answer was erased"})
_SKIPPED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unknown_members": "It has some, which nothing authenticates",
        "record_hash": "The facts that it covers were erased",
        "evaluation": "The explanation was erased",
        "facts_hash": "The facts were erased",
        "input_hash": "The request was erased",
        "adapter_input_hash": "The request was erased",
        "rulebook_hash": "The request names a registered rulebook, or was erased",
        "receipt_signature": "No key for it is at hand",
        "receipt_key": "No key for it is at hand",
        "attestation_signature": "It is not signed, or its key is not at hand or compromised",
        "registry_attestation_signature": "It is not signed, or its key is not at hand or compromised",
        "erasure": "It could not be looked up",
    }
)
_RESULTS: Final[Mapping[bool | None, tuple[str, str]]] = MappingProxyType(
    {True: ("good", "holds"), False: ("bad", "does not hold"), None: ("", "skipped")}
)


@dataclass(frozen=True, slots=True)
class Check:
    """A check that was made, or skipped.

    Attributes:
        name: Its name.
        words: What holds where it holds.
        tone: good, bad or nothing.
        result: holds, does not hold, or skipped.
        why: Why it was skipped; "" where it was not.
        expected: What was computed, where it does not hold and is a comparison.
        actual: What the record says, likewise.
    """

    name: str
    words: str
    tone: str
    result: str
    why: str
    expected: str | None
    actual: str | None


def checks(found: Verification, *, advisory: bool = False) -> list[Check]:
    """The checks of a verification: those that do not hold first, then those skipped.

    Args:
        found: The verification.
        advisory: Whether the record is advisory.
    """
    order = (False, None, True)
    made = sorted(found.checks.items(), key=lambda check: order.index(check[1]))
    words = {**WORDS, **WORDS_OF_ADVICE} if advisory else WORDS
    skipped = {**_SKIPPED, **_SKIPPED_OF_ADVICE} if advisory else _SKIPPED
    return [_check(name, holds, found, words, skipped) for name, holds in made]


def headline(found: Verification) -> str:
    """What a verification found, with the number of its checks."""
    results = list(found.checks.values())
    holding, failing, skipped = (results.count(result) for result in (True, False, None))
    fails = f"{failing} {'fails' if failing == 1 else 'fail'}" if failing else "none fails"
    told = f"{counted(holding, 'check holds', 'checks hold')}, {fails}"
    skips = f", {skipped} {'was' if skipped == 1 else 'were'} skipped" if skipped else ""
    return f"{'Verified' if found.verified else 'Not verified'}: {told}{skips}"


def stamp(of: object) -> str:
    """A timestamp as the page writes moments; what is none, as it stands."""
    try:
        return moment(parse_timestamp(str(of)))
    except ValueError:
        return value(of)


def value(of: Any) -> str:
    """A JSON value on one line, its beginning where it is long, with its size."""
    try:
        text = of if isinstance(of, str) else orjson.dumps(of).decode()
    except orjson.JSONEncodeError:
        text = str(of)
    line = on_one_line(text[:_LONGEST])
    return line if len(text) <= _LONGEST else f"{line}... ({counted(len(text.encode()), 'byte')})"


def _check(
    name: str, holds: bool | None, found: Verification, words: Mapping[str, str], skipped: Mapping[str, str]
) -> Check:
    tone, result = _RESULTS[holds]
    compared = holds is False and name in found.expected
    return Check(
        name,
        words.get(name, phrase(name)),
        tone,
        result,
        skipped.get(name, "The material for it is not at hand") if holds is None else "",
        value(found.expected[name]) if compared else None,
        value(found.actual.get(name)) if compared else None,
    )
