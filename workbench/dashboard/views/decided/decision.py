"""The page of a decision: the verdict and its reason, the later reports, and the proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from gate.ledger.drafts.drafts import DraftSummary
from gate.records.advisory import is_advisory
from gate.verify.members import at
from workbench.dashboard.store.ledger import Story
from workbench.dashboard.views import links
from workbench.dashboard.views.decided.advice import advice, title
from workbench.dashboard.views.decided.checks import checks, headline, stamp, value
from workbench.dashboard.views.decided.reports import CALLED, reports, reports_title, told_of
from workbench.dashboard.views.decided.rules import rules
from workbench.dashboard.views.decided.why import why
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.reviews.standing import standing
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, in_words, joined, phrase

MOST_FACTS: Final = 200
"""How many facts are shown."""

_DRAFTS_SHOWN: Final = 50
_TONES: Final = {"yes": "good", "no": "bad", "review": "warn"}
_BINDING: Final[Mapping[str, str]] = MappingProxyType(
    {"system": "System", "resource": "Target", "proposed_action": "Proposed action"}
)
_HASHES: Final = (
    ("record_hash", "Record"),
    ("receipt_hash", "Receipt"),
    ("input_hash", "Request"),
    ("output_hash", "Answer"),
    ("policy_hash", "Rulebook"),
    ("policy_bundle_hash", "Policy bundle"),
)
_HASHES_OF_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {"output_hash": "Verdict", "policy_hash": "Prompt template"}
)
# Of a decision that is advisory or not, and names something or not.
_BOUND: Final[Mapping[tuple[bool, bool], str]] = MappingProxyType(
    {
        (False, True): "The verdict is bound to this action",
        (False, False): "The verdict has no target",
        (True, True): "The question is about this action",
        (True, False): "The question has no target",
    }
)


def view(location: Location, story: Story, now: datetime, drafts: Sequence[DraftSummary] = ()) -> Page:
    """The page of a decision.

    Args:
        location: Where it is.
        story: The decision.
        now: The moment.
        drafts: The drafts that it may be made a case of, the one that was saved last first.
    """
    record = story.record
    decision_id = location.id or ""
    advisory = is_advisory(record)
    proof = {
        "advisory": advisory,
        "verified": story.verification.verified,
        "message": story.verification.message,
        "headline": headline(story.verification),
        "checks": checks(story.verification, advisory=advisory),
        "unknown": story.verification.unknown,
        "id": decision_id,
        "service": story.base_url,
        "keys_url": links.download("keys", location),
        "record_url": links.download("record", location, id=decision_id),
        "packet_url": links.download("packet", location, id=decision_id),
    }
    if story.verification.checks.get("members") is False:
        unread = f"The record of {cut(decision_id)} is unreadable: it was changed"
        return Page(location, unread, render("decision_unreadable.html", proof))
    signatures = list(_signatures(story))
    context = {
        **proof,
        "record": record,
        "decided": stamp(record["created_at"]),
        "tone": _TONES.get(record["verdict"], ""),
        "policy_url": links.policy(location, record["policy_id"]),
        "version_url": location.to("policy", policy=record["policy_id"], version=record["policy_version"]).url,
        "advice": advice(story) if advisory else None,
        "why": None if advisory else why(story),
        "whatif_url": None if story.facts is None else Location("whatif", scope=location.scope, id=decision_id).url,
        "drafts": [] if story.facts is None else [(draft.draft_id, draft.name) for draft in drafts[:_DRAFTS_SHOWN]],
        "target": at(record, "action_binding", "resource"),
        "target_url": _target_url(location, story),
        "question": at(story.request, "question"),
        "binding_mode": _facts_from(story),
        "adapter": record.get("trusted_adapter"),
        "facts": _facts(story),
        "facts_title": _facts_title(story),
        "more_facts": max(0, len(story.facts or ()) - MOST_FACTS),
        "erased": _erased(story),
        "rules": None if advisory else rules(story),
        "confidence": record.get("decision_confidence"),
        "binding": _members(record["action_binding"], _BINDING),
        "binding_title": _BOUND[advisory, any(told != "" for told in record["action_binding"].values())],
        "review": standing(location, story, now),
        "reports": reports(story),
        "reports_title": reports_title(story),
        "refused": record["verdict"] == "no",
        "faults": [fault for told in told_of(story) for fault in told.faults],
        "more_reports": [CALLED[told.kind][2] for told in told_of(story) if told.more],
        "signatures": signatures,
        "signatures_title": _signature_title(signatures) if advisory else _signatures_title(signatures),
        "link": record.get("audit_chain") or {},
        "chain_size": story.head.size,
        "hashes": [
            (_HASHES_OF_ADVICE.get(name, words) if advisory else words, at(record, name))
            for name, words in _HASHES
            if at(record, name) is not None
        ],
    }
    return Page(location, title(story) if advisory else _title(story), render("decision.html", context))


def _title(story: Story) -> str:
    record = story.record
    target = at(record, "action_binding", "resource")
    about = f" for {cut(target)}" if isinstance(target, str) and target else ""
    return f"{phrase(cut(record['verdict']))}: {cut(in_words(record['action']))}{about}, because {_because(story)}"


def _because(story: Story) -> str:
    rule_id = story.record["matched_rule_id"]
    if rule_id is not None:
        return f"{cut(rule_id)} matched"
    if "schema:failed" in story.record["evidence"]:
        return "the facts failed the schema check"
    return "no rule matched"


def _target_url(location: Location, story: Story) -> str | None:
    target = at(story.record, "action_binding", "resource")
    return links.narrowed(location, "target", target) if isinstance(target, str) else None


def _facts_from(story: Story) -> str:
    if "trusted_adapter" in story.record:
        return "a trusted adapter, from the material that the request sent"
    return "the request"


def _facts(story: Story) -> list[tuple[str, str]]:
    return [(name, value(of)) for name, of in list((story.facts or {}).items())[:MOST_FACTS]]


def _facts_title(story: Story) -> str:
    if story.facts is None:
        return "The facts were erased" if "erased" in story.record else "The facts are not kept"
    if "trusted_adapter" in story.record:
        adapter = at(story.record, "trusted_adapter", "adapter_id")
        return f"The adapter {cut(str(adapter))} made {counted(len(story.facts), 'fact')}"
    return f"The request sent {counted(len(story.facts), 'fact')}"


def _erased(story: Story) -> dict[str, Any] | None:
    note = story.record.get("erased")
    if note is None and story.erasure is None:
        return None
    position, entry = story.erasure or (None, {})
    parts = at(entry, "erased") or at(note, "members")
    return {
        "parts": joined([in_words(str(name)) for name in parts]) if isinstance(parts, list) else "-",
        "at": stamp(at(entry, "erased_at") or at(note, "erased_at")),
        "position": position,
        "reason": at(entry, "reason"),
        "id": at(entry, "erasure_id") or at(note, "erasure_id"),
        "confirmed": story.verification.checks.get("erasure"),
    }


def _members(of: Mapping[str, Any], called: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(called.get(name, phrase(name)), value(told)) for name, told in of.items() if told != ""]


def _signatures_title(signatures: Sequence[Mapping[str, Any]]) -> str:
    results = [each["result"] for each in signatures]
    if results == ["holds"] * len(results):
        return "All three signatures hold"
    wrong = results.count("does not hold")
    if wrong:
        return f"{wrong} of its signatures {'does' if wrong == 1 else 'do'} not hold"
    return f"{results.count('holds')} of three signatures over it hold; the others are missing or were not checked"


def _signature_title(signatures: Sequence[Mapping[str, Any]]) -> str:
    """As `_signatures_title`, of the only signature that an advisory record has."""
    result = signatures[0]["result"]
    return {
        "holds": "The signature holds",
        "does not hold": "The signature does not hold",
        "not checked": "The signature was not checked",
    }.get(result, "The record is not signed")


def _signatures(story: Story) -> Iterator[dict[str, Any]]:
    """The signatures over the decision, each with what verification found of it."""
    record, found = story.record, story.verification.checks
    attestation = at(record, "rulebook_attestation", "signature")
    registration = at(record, "registry_attestation")
    signed: Sequence[tuple[str, str, object, object, object, object]] = (
        (
            "Receipt",
            "receipt_signature",
            record.get("receipt_signature_algorithm"),
            record.get("receipt_key_id"),
            record.get("receipt_public_key_fingerprint"),
            record.get("receipt_signature"),
        ),
        (
            "Evaluation",
            "attestation_signature",
            at(attestation, "algorithm"),
            at(attestation, "key_id"),
            None,
            at(attestation, "signature"),
        ),
        (
            "Registration of the rulebook",
            "registry_attestation_signature",
            at(registration, "signature_algorithm"),
            at(registration, "key_id"),
            None,
            at(registration, "signature"),
        ),
    )
    if is_advisory(record):
        # No evaluation and no registration stand behind it.
        signed = signed[:1]
    results = {True: ("good", "holds"), False: ("bad", "does not hold"), None: ("", "not checked")}
    for what, check, algorithm, key_id, fingerprint, signature in signed:
        tone, result = results[found.get(check)] if signature is not None else ("warn", "not signed")
        yield {
            "what": what,
            "algorithm": algorithm,
            "key_id": key_id,
            "fingerprint": fingerprint,
            "signature": signature,
            "tone": tone,
            "result": result,
        }
