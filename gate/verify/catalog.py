"""Descriptions of every check and every result code of a verification.

The dashboard shows them, and the page `docs/reference/checks.md` is generated from them. No verification reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Check(NamedTuple):
    """A check.

    Attributes:
        name: Its name in a result.
        holds: What is true if it holds, as a sentence without its period.
        skipped: Why it can be skipped, as a sentence without its period; "" if it cannot.
        advice: `holds` for an advisory record, if it differs.
        more: Other facts that a reader of the result needs, as sentences.
    """

    name: str
    holds: str
    skipped: str = ""
    advice: str = ""
    more: str = ""


class Group(NamedTuple):
    """Checks of one kind.

    Attributes:
        title: The subject of the checks.
        about: Sentences about where they apply, and about the codes of records that fail them.
        checks: The checks.
    """

    title: str
    about: str
    checks: tuple[Check, ...]


_INTEGRITY: Final = "A failure gives `RECORD_INTEGRITY_FAILED`."
_UNSIGNED: Final = "It is unsigned, or its key is unknown or compromised"

RECORD: Final[tuple[Group, ...]] = (
    Group(
        "Shape",
        "A failed `members` check gives `RECORD_INCOMPLETE` or `RECORD_INVALID`, and no later check is made.",
        (
            Check(
                "members",
                "Every field of a record is there, with its type",
                more="So are the objects inside that other checks read.",
            ),
            Check(
                "unknown_members",
                "The record has no field that this release does not know",
                "It has some, which nothing authenticates",
                more="It never fails. The result lists the fields in `unknown_members`.",
            ),
            Check(
                "material",
                "The record has only values that can be hashed",
                more="Only present, as `false`, if the record has a value without canonical JSON, or a given key is "
                "unusable.",
            ),
        ),
    ),
    Group(
        "Hashes",
        _INTEGRITY,
        (
            Check(
                "record_hash",
                "The record hash is that of the record",
                "The facts that it covers were erased",
                more="The record is then never verified: the result is `MATERIAL_ERASED`. It is authentic if a known "
                "registry key signed both attestations.",
            ),
            Check("receipt_hash", "The receipt hash is that of the receipt's fields"),
            Check("policy_bundle_hash", "The policy bundle has its hash"),
            Check(
                "output_hash", "The output hash is that of the answer", advice="The output hash is that of the verdict"
            ),
            Check("bundle_hash", "The attested evaluation has its hash"),
            Check(
                "evaluation",
                "The explanation has the hash in the evidence manifest",
                "The explanation was erased",
                "The model's answer has the hash in the evidence manifest",
            ),
            Check("registry_attestation_hash", "The rulebook's registration has the attested hash"),
        ),
    ),
    Group(
        "Repeated fields",
        f"Each of these fields must repeat, or follow from, other fields of the record. {_INTEGRITY}",
        (
            Check("decision_record_version", "The record has the format of this protocol"),
            Check("decision_protocol_version", "The record states this protocol's version"),
            Check("evaluator_version", "The record states this evaluator's version"),
            Check("verdict", "The verdict is yes, no or review"),
            Check("c", "The compact verdict follows from the verdict"),
            Check("v", "The field v repeats the rulebook's verdict", advice="The field v follows from the answer"),
            Check(
                "evidence",
                "The evidence follows from the reason code, the matched rule and the status",
                advice="The evidence follows from the reason code and the model's answer",
            ),
            Check("evidence_manifest.codes", "The evidence manifest repeats the evidence"),
            Check("source_hash", "The source is the rulebook", advice="The source is the prompt template"),
            Check(
                "policy_bundle",
                "The policy bundle states this policy's id, version, and hash",
                advice="The policy bundle states this prompt template's id, version, and hash",
            ),
            Check("rulebook", "The rulebook reference states this policy's id, version, and hash"),
            Check("rulebook_registry", "The registration states this policy's id, version, and hash"),
            Check("rulebook_contract", "The rulebook contract has no empty fields"),
            Check("registry_attestation", "The record repeats the attestation inside the registration"),
            Check(
                "rulebook_attestation",
                "The attested evaluation repeats the record's outcome, rulebook, runtime binding and adapter",
            ),
            Check(
                "rulebook_attestation_members",
                "The attestation of the evaluation has exactly the fields of its format",
                more="It has both a key and a signature, or neither.",
            ),
            Check(
                "registry_attestation_members",
                "The attestation of the registration has exactly the fields of its format",
                more="It has both a key and a signature, or neither.",
            ),
            Check("urls", "The three URLs are those of this decision"),
            Check("integrity", "The summary of hashes and signature follows from the record"),
            Check(
                "decision_contract",
                "The record has no contract of an advisory decision",
                advice="The record says that it authorizes nothing",
            ),
            Check(
                "trusted_adapter",
                "The record states the same adapter everywhere",
                more="If the request sent the facts, the record states no adapter.",
            ),
            Check(
                "adapter_facts",
                "The record has no facts of an adapter",
                more="Only present if the request sent the facts.",
            ),
            Check("idempotency_key", "The idempotency key is absent or not empty"),
            Check(
                "receipt_members",
                "The receipt's signature is complete",
                more="Only present, as `false`, if some of the four receipt fields are missing.",
            ),
        ),
    ),
    Group(
        "Advisory records",
        "Only advisory records have these. They have none of the checks about rulebooks, registrations, attestations "
        f"and adapters. {_INTEGRITY}",
        (
            Check(
                "evidence_manifest.sources",
                "",
                advice="The sources are the prompt template, the evaluation, and the model's answer, with their hashes",
            ),
            Check("binding_members", "", advice="The record has no field of a binding decision"),
            Check(
                "advice",
                "",
                advice="Verdict, reason code and action follow from the model's answer",
                more="After an erasure of the answer, they follow from the reason code.",
            ),
        ),
    ),
    Group(
        "The request",
        "Compared with the original request, if there is one. If only these checks fail, and a trusted key signed the "
        "record, the code is `INPUT_MISMATCH`.",
        (
            Check(
                "input_hash",
                "The request is the one that was decided",
                "There is no request, or it was erased",
                "The request is the one that was asked",
            ),
            Check(
                "facts_hash",
                "The facts are those that were attested",
                "There is no request, or the facts were erased",
                more="Facts of an adapter are those in `adapter_facts` of the record.",
            ),
            Check(
                "adapter_input_hash",
                "The request has the input that the adapter was given",
                "There is no request, or it was erased",
                more="Only present if an adapter made the facts.",
            ),
            Check(
                "rulebook_hash",
                "The rulebook in the request is the one that decided",
                "The request refers to a registered rulebook, or there is no request",
            ),
        ),
    ),
    Group(
        "Signatures",
        "If only signatures fail, the code is `RECORD_SIGNATURE_INVALID`, `RECORD_UNSIGNED`, `SIGNING_KEY_UNKNOWN` or "
        "`SIGNING_KEY_NOT_TRUSTED`. `receipt_signature`, `receipt_key`, `attestation_signature` and "
        "`registry_attestation_signature` make up `authenticity_valid`; all other checks make up `integrity_valid`.",
        (
            Check(
                "receipt_signature",
                "The receipt's signature is valid",
                "Its key is not available",
                more="A record whose check is skipped is not verified.",
            ),
            Check(
                "receipt_key",
                "The receipt's key is trusted for the record's date",
                "Its key is not available",
                more="A record whose check is skipped is not verified.",
            ),
            Check("receipt_signature_scheme", "The prefix of the receipt's signature is its algorithm"),
            Check(
                "receipt_public_key_fingerprint",
                "The fingerprint is that of the receipt's key",
                more="For HMAC, the fingerprint is null.",
            ),
            Check("attestation_signature", "The registry key signed the attested evaluation", _UNSIGNED),
            Check("registry_attestation_signature", "The registry key signed the rulebook's registration", _UNSIGNED),
        ),
    ),
    Group(
        "Outside the signature",
        f"Absent if the record lacks the field that they check. {_INTEGRITY}",
        (
            Check("confidence_hash", "The confidence has its hash"),
            Check("audit_chain.leaf_hash", "The leaf in the chain is that of this record"),
        ),
    ),
    Group(
        "Erasure",
        f"Only present if the record or the chain notes an erasure. {_INTEGRITY}",
        (
            Check("erased", "Exactly the erased parts are null"),
            Check(
                "erasure",
                "The chain has exactly this erasure of the decision",
                "A record alone does not show it",
                more="Online, a failure gives `RECORD_MISMATCH`.",
            ),
        ),
    ),
    Group(
        "Online",
        "The service makes these checks of a stored decision. A failure gives `RECORD_MISMATCH`.",
        (
            Check(
                "audit_chain.link_hash",
                "The link in the chain follows from this record and the link before it",
            ),
            Check("decision_id", "The record has the id in the path", more="Only present if you send a record."),
            Check(
                "stored_record",
                "The record equals the stored record, including `audit_chain`",
                "The scope has no decision with this id",
                more="Only present if you send a record. After an erasure, an older full copy is compared as it would "
                "be now.",
            ),
        ),
    ),
)
"""The checks of a record."""

_CHECKPOINT: Final = "audit_chain.verification_hints.checkpoint"

PACKET: Final[tuple[Group, ...]] = (
    Group(
        "Step 1: packet_hash",
        "A failed `members` check gives `PACKET_INCOMPLETE` or `PACKET_INVALID`. Other failures give "
        "`PACKET_INTEGRITY_FAILED`.",
        (
            Check(
                "members",
                "Every field of a packet is there, with its type",
                more="A packet has at most 1,000 reports of a kind and 100 patterns.",
            ),
            Check(
                "unknown_members",
                "The packet has no field that this release does not know",
                "It has some, which nothing authenticates",
            ),
            Check("packet_hash", "The packet hash is that of the rest of the packet"),
            Check("decision_packet_version", "The version is `decision_packet_v1`"),
        ),
    ),
    Group(
        "Step 2: decision_record",
        "A change gives `PACKET_INTEGRITY_FAILED`, and an unreadable record `PACKET_INVALID` or `PACKET_INCOMPLETE`. "
        "Codes about the record's keys apply as they are, and `INPUT_MISMATCH` if you gave the request.",
        (
            Check("record.<check>", "The check of the record with this name holds"),
            Check("decision_id", "The packet repeats the record's `decision_id`"),
            Check("record_hash", "The packet repeats the record's `record_hash`"),
            Check("receipt_hash", "The packet repeats the record's `receipt_hash`"),
            Check(
                "input",
                "The packet's request has the record's `input_hash`",
                more="It is null only if the record says that the request was erased.",
            ),
        ),
    ),
    Group(
        "Step 3: execution_and_outcome_hashes",
        "A failure gives `PACKET_INTEGRITY_FAILED`, or a signature code for `resolution.signature` and "
        "`resolution.key`.",
        (
            Check(
                "execution_receipts, outcome_records",
                "Every report has its fields, its hash, and repeats its record",
                more="Reports are ordered newest first, and none appears twice. A failure names the field, such as "
                "`execution_receipts[3].execution_hash`.",
            ),
            Check(
                "execution_receipts.unknown_members, outcome_records.unknown_members",
                "No report has a field that this release does not know",
                "A report has some, which nothing authenticates",
            ),
            Check(
                "execution_receipts[n].flags",
                "The flags follow from the receipt",
                "Only `ACTION_TAKEN_MISMATCH` is missing: the receipt is of an earlier release, or somebody removed "
                "the flag",
                more="Only present if the flags differ.",
            ),
            Check(
                "outcome_records[n].occurred_at",
                "",
                "Only the request of the outcome covers this field, and no packet contains it",
                more="Only present if the outcome has the field. `gate chain check` compares it in the ledger.",
            ),
            Check(
                "resolution.members",
                "The resolution has the fields of its format",
                more="This and the following are only present if the packet has a resolution.",
            ),
            Check(
                "resolution.unknown_members",
                "The resolution has no field that this release does not know",
                "It has some, which nothing authenticates",
            ),
            Check(
                "resolution",
                "The resolution has its hash, repeats its record and binding, and its decision was held",
            ),
            Check(
                "resolution.signature, resolution.key",
                "A trusted receipt key signed the resolution",
                "It is unsigned, or its key is not available. An unsigned grant approves no receipt",
            ),
        ),
    ),
    Group(
        "Step 4: intelligence_and_chain",
        "A failure gives `PACKET_INTEGRITY_FAILED`. Keys give `SIGNING_KEY_UNKNOWN` or `SIGNING_KEY_NOT_TRUSTED`, and "
        "other signatures `PACKET_SIGNATURE_INVALID`.",
        (
            Check(
                "policy_intelligence.effectiveness, .confidence, .anomalies, .benchmarks",
                "The report has its hash, and is of the record's policy, version, verdict, and action",
                "The packet does not have the report",
            ),
            Check(
                "policy_intelligence.patterns",
                "Each pattern has its hash, and is of the record's policy",
                "The packet does not have patterns",
            ),
            Check(
                "policy_intelligence.unknown_members, audit_chain.unknown_members",
                "The part has no field that this release does not know",
                "It has some, which nothing authenticates",
            ),
            Check(
                "policy_intelligence, audit_chain",
                "",
                "The packet does not have the part",
                more="Only present in this case.",
            ),
            Check(
                "audit_chain.members",
                "The part and each link have their fields, with their types",
                more="There are 1 to 1,000 links.",
            ),
            Check(
                "audit_chain.retained_links",
                "The first link is the decision's, and each link follows from the one before it",
            ),
            Check(
                "audit_chain.entry_types",
                "",
                "A retained link has an entry type that this release does not know. Its hash is checked, its meaning "
                "is not",
                more="Only present in this case.",
            ),
            Check(
                "audit_chain.chain_id, audit_chain.chain_size, audit_chain.merkle_root",
                "The field is that of the last retained link",
            ),
            Check(
                "execution_receipts.links, outcome_records.links",
                "Each report agrees with its retained link",
                "The link of some report is not retained",
            ),
            Check(
                "execution_receipts[n].audit_chain.link, outcome_records[n].audit_chain.link",
                "",
                "The link of this report is not retained, so only its own hash covers it",
                more="Only present in this case.",
            ),
            Check(
                "execution_receipts.complete, outcome_records.complete",
                "The packet has every report of this decision that the retained links show",
                "Only reports older than the oldest shown are missing, or no signed checkpoint covers all links",
                more="A missing newer report fails. If any is missing, a shown report without its link fails, too.",
            ),
            Check(
                "resolution.link",
                "The resolution agrees with its retained link, and there is one at most",
                "Its link is not retained",
                more="It fails if a retained link shows a resolution that the packet omits.",
            ),
            Check(
                "audit_chain.erasure",
                "A retained link shows the erasure that the record notes",
                "Only the record notes it, or no signed checkpoint covers the link",
                more="Only present after an erasure.",
            ),
            Check(
                "audit_chain.verification_hints",
                "The hints are those of this release",
                "They have other wording, which nothing authenticates",
            ),
            Check(_CHECKPOINT, "", "The packet has no checkpoint", more="Only present in this case."),
            Check(f"{_CHECKPOINT}.members", "The packet's checkpoint has the fields of its format"),
            Check(
                f"{_CHECKPOINT}.signature, {_CHECKPOINT}.key",
                "A trusted key signed the checkpoint, by its `issued_at`",
                "Its key is not available",
            ),
            Check(f"{_CHECKPOINT}.chain_size, {_CHECKPOINT}.chain", "The checkpoint covers the last retained link"),
            Check("exported_at", "It is the `issued_at` of the packet's checkpoint", "The packet has no checkpoint"),
            Check(
                "checkpoint.members, checkpoint.signature, checkpoint.key",
                "The checkpoint that you gave has its fields and a trusted signature",
                "Its key is not available",
            ),
            Check(
                "checkpoint.chain_id",
                "The checkpoint that you gave is of the packet's chain",
                more="Only present, as `false`, if it is not: `CHECKPOINT_FOREIGN`.",
            ),
            Check(
                "checkpoint.chain",
                "The retained links agree with the checkpoint that you gave",
                "The checkpoint has no trusted signature",
                more="It fails with `CHECKPOINT_NOT_COMPARABLE` if no retained link has the checkpoint's size.",
            ),
            Check(
                "reports_signed",
                "A trusted signed checkpoint covers every report",
                "No trusted signed checkpoint covers every report",
                more="If it is skipped, the packet still verifies, with the notice `REPORTS_UNSIGNED`, unless you "
                "require signed reports.",
            ),
        ),
    ),
)
"""The checks of a packet, by its four steps."""

CODES: Final[Mapping[str, str]] = {
    "RECORD_MISMATCH": "Online: the record that you sent is not that of the decision in the path, or the stored "
    "decision does not agree with its chain.",
    "RECORD_INCOMPLETE": "The record lacks fields of the full view. Export the full view.",
    "RECORD_INVALID": "The document is not a JSON object, or a field has the wrong type.",
    "RECORD_INTEGRITY_FAILED": "A hash or a repeated field does not match: the record was changed after it was made. "
    "This code wins over codes about keys. The message lists every failed check.",
    "INPUT_MISMATCH": "The record is intact and signed by a trusted key, but you gave another request than the one it "
    "was made from. Give the original request, or none.",
    "RECORD_UNSIGNED": "The record has no receipt signature: receipt signing was off, or somebody removed the "
    "signature.",
    "SIGNING_KEY_UNKNOWN": "The signing key or the HMAC secret is not available, or the given key is another one. "
    "Verify with the publisher's key registry.",
    "SIGNING_KEY_NOT_TRUSTED": "The key is compromised, is not valid for the date, or came with the request.",
    "RECORD_SIGNATURE_INVALID": "Only signatures fail, or the signature algorithm is unknown.",
    "REPORTS_UNSIGNED": "As a notice: no signed checkpoint covers the reports that the message lists, or shows whether "
    "there are any. As an error, with `--require-signed-reports`.",
    "MATERIAL_ERASED": "As a notice: parts of the decision were erased and could not be checked; the rest is "
    "verified. As an error: without the erased part, nothing can be said about integrity.",
    "PACKET_INVALID": "The packet or its record is not a JSON object, has a field of the wrong type, or has more "
    "reports or patterns than a packet may have.",
    "PACKET_INCOMPLETE": "The packet lacks fields, or its record is not the full view.",
    "PACKET_INTEGRITY_FAILED": "A hash, a repeated field or a place in the chain does not match: the packet was "
    "changed after it was made.",
    "CHECKPOINT_FOREIGN": "The checkpoint that you gave is of another chain.",
    "CHECKPOINT_NOT_COMPARABLE": "The packet's links do not reach the checkpoint that you gave. Export the packet "
    "with a `chain_limit` that reaches it, or give a later checkpoint.",
    "PACKET_SIGNATURE_INVALID": "Only signatures in the packet fail.",
    "RESOLUTION_INVALID": "The document is not a resolution: fields are missing, empty or of the wrong type.",
    "RESOLUTION_FOREIGN": "The resolution is about another decision. Fetch the resolution of this record's decision.",
    "RESOLUTION_INTEGRITY_FAILED": "A hash or a repeated field does not match: the resolution was changed after it was "
    "made.",
    "RESOLUTION_UNSIGNED": "The resolution has no signature.",
    "RESOLUTION_SIGNATURE_INVALID": "The signature is not the key's signature of this resolution.",
}
"""The meaning of each result code: those of records by priority, then those of packets and of resolutions."""

CHAIN: Final[tuple[tuple[str, str], ...]] = (
    (
        "record",
        "Its hashes and repeated fields, every signature whose key is available, and the stored request behind "
        "`input_hash`.",
    ),
    (
        "execution receipt, outcome, CRM sync",
        "Its hash, and that it repeats the record of its decision. A receipt's flags are those of its place: behind "
        "the signed grant of a held decision, it has no `DECISION_NOT_APPROVED`.",
    ),
    (
        "resolution",
        "Its hash, and its signature by a key of this instance. It is about an earlier held decision, and is the only "
        "resolution of it. A grant is always signed.",
    ),
    ("stored body", "It has no field that its hashes do not cover."),
    ("erasure", "An entry of the chain accounts for everything that a decision lacks, and the erased parts are gone."),
    (
        "link",
        "Each link is that of its entry. Each link, root, and position follows from the one before, up to the head.",
    ),
    (
        "registration",
        "A record's rulebook is registered as the record cites it. Each registration's body, hash, "
        "metadata, and attestation signature hold.",
    ),
    (
        "table `claims`",
        "Each idempotency key is claimed by the entry that was made under it, and there is no other row.",
    ),
    (
        "tables `decisions`, `reviews`, `latest_outcomes`, `outcome_counts`",
        "Each row follows from the entries. The owner and the time limit of a review only need to be readable.",
    ),
    ("position", "No row refers to a position before the chain's first or behind its last."),
    (
        "kept checkpoint",
        "Each chain still contains every checkpoint of the checkpoint log, and of the logs that you give.",
    ),
)
"""What `gate chain check` recomputes of a ledger, by what it looks at."""

NOT_FOUND: Final[tuple[str, ...]] = (
    "A `decision_confidence` that was removed, or replaced by another one with its own hash.",
    "A registration that no record cites, and that was made again without a signature.",
    "The removed signature of a refused or expired review, or one by an earlier HMAC secret.",
    "A chain that was cut or rewritten together with all its rows since the last kept checkpoint.",
)
"""What `gate chain check` cannot find."""
