"""The product's sentence: a request is read, a rulebook decides over facts, and the signed record is in the ledger
before anyone hears of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson

from gate.adapters.invocation import Invocation, TrustedAdapters
from gate.decisions.erasure import is_confirmed, stored_erasure
from gate.encoding.canonical import canonical, content_hash, is_plain
from gate.errors import (
    GateError,
    IdempotencyConflict,
    LimitReached,
    NotFound,
    RequestRefused,
    RulebookRefused,
    ServiceUnavailable,
    member,
)
from gate.ids import month_end, new_id, timestamp
from gate.labels import BINDING_ADAPTER
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority
from gate.ledger.chain.entries import StoredEntry
from gate.ledger.chain.writer import AccessChanged, Appended, CapReached, Claim, Claimed, Decided, NewEntry, Outcome
from gate.ledger.rulebooks import Registered, version_conflict
from gate.ledger.stores.store import read_object
from gate.proof import chain
from gate.proof.chain import link_material
from gate.records.attestation import registration
from gate.records.envelope import (
    compact_verdict,
    envelope,
    erased_members,
    input_material,
    output_material,
    receipt_material,
)
from gate.records.record import Identity, Signers, build_record
from gate.records.request import DecisionRequest, read_request
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook, RulebookCache

MAX_IDEMPOTENCY_KEY: Final = 300


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer to a Decision Request.

    Attributes:
        record: The full Decision Record.
        status: `created`, or `replayed` where the idempotency key had been used with the same payload.
        remaining: How many more records the scope may make in this UTC month; None without a cap.
    """

    record: dict[str, Any]
    status: str
    remaining: int | None


class DecisionGate:
    """Decides, and finds what was decided."""

    def __init__(
        self,
        ledger: Ledger,
        signers: Callable[[], Signers],
        clock: Callable[[], datetime],
        schema_url: str,
        adapters: TrustedAdapters,
    ) -> None:
        """Composes the gate.

        Args:
            ledger: Where records are kept.
            signers: What signs a record made now; raises ServiceUnavailable where that cannot be said.
            clock: The current moment, in UTC.
            schema_url: Where the Rulebook v1 schema is published.
            adapters: The adapters that requests may invoke.
        """
        self.adapters: Final = adapters
        self._ledger = ledger
        self._signers = signers
        self._clock = clock
        self._schema_url = schema_url
        self.rulebooks: Final = RulebookCache()

    def decide(
        self,
        authority: Authority,
        body: Any,
        *,
        request_id: str,
        idempotency_key: str | None = None,
        refusal: RequestRefused | None = None,
    ) -> Decision:
        """Answers a Decision Request with a record that is durably stored.

        Args:
            authority: Who asks; may be as this process remembers it, for it is confirmed before anything rests on it.
            body: The parsed request body.
            request_id: The handle under which logs know this request.
            idempotency_key: The caller's retry handle.
            refusal: What is wrong with the request beside its body; a used key still replays.

        Raises:
            RequestRefused, RulebookRefused, AdapterRefused: The request cannot be decided.
            AdapterFailed: The adapter made no facts. Nothing was recorded.
            IdempotencyConflict: SVC_API_IDEMPOTENCY_CONFLICT.
            AccessForbidden: The key may no longer decide, or may not register the rulebook it sent.
            LimitReached: SVC_API_MONTHLY_CAP_EXCEEDED.
            ServiceUnavailable: Storage, signing or an upstream is not available. Nothing was recorded.
        """
        plain = is_plain(body)
        input_hash = content_hash(input_material(body), plain=plain)
        claim = None
        try:
            claim = read_claim("decide", "", idempotency_key, input_hash)
            if refusal is not None:
                raise refusal
            request = read_request(body, input_hash, plain=plain)
            _require_binding(request)
            rulebook = self.rulebook(authority.scope_id, request)
            invocation = self.invocation(request)
            dependency = _dependency(invocation)
            registered = self._registered(authority, rulebook, dependency, claim)
            facts = self.facts(request, invocation)
            if registered is None:
                # Not before there are facts: an adapter that makes none leaves nothing behind.
                registered = self.register(authority.scope_id, rulebook, dependency)
            signers, now = self.signing()
        except GateError:
            authority = self._confirmed(authority)
            # A key that was used before answers before anything that is wrong with this request.
            if (replayed := self._replay(authority, claim)) is not None:
                return replayed
            raise
        explained = rulebook.evaluator.explain(facts.values)
        identity = Identity(new_id("dec", now), request_id, idempotency_key, timestamp(now))
        record = build_record(
            request, rulebook, registered.metadata, facts, explained, identity, signers, schema_url=self._schema_url
        )
        outcome, authority = self._append(authority, _entry(authority, request, record, claim))
        if isinstance(outcome, Appended):
            return Decision(_appended(record, outcome), "created", outcome.remaining)
        if isinstance(outcome, CapReached):
            raise _cap_reached(outcome.cap, now)
        return self._replayed(authority, claim, outcome)

    def decision(self, authority: Authority, decision_id: str) -> dict[str, Any] | None:
        """The full record of a decision of the caller's scope, or None."""
        entry = self._ledger.entries.decision(authority.scope_id, decision_id)
        return None if entry is None else stored_record(entry)

    def request_body(self, authority: Authority, decision_id: str) -> Any:
        """The original request of a decision, without response_view, or None."""
        entry = self._ledger.entries.decision(authority.scope_id, decision_id)
        return None if entry is None else stored_request(self._ledger, authority.scope_id, entry)

    def is_linked(self, authority: Authority, decision_id: str) -> bool:
        """Whether a stored decision's chain link follows from its record and from the link before it."""
        entry = self._ledger.entries.decision(authority.scope_id, decision_id)
        if entry is None:
            return False
        return is_link_of(entry.link, stored_record(entry)) and chain.find_break([entry.link]) is None

    def _append(self, authority: Authority, entry: NewEntry) -> tuple[Appended | Claimed | CapReached, Authority]:
        outcome: Outcome = AccessChanged()
        while isinstance(outcome, AccessChanged):
            outcome = self._ledger.entries.append(replace(entry, access_epoch=authority.access_epoch))
            if isinstance(outcome, AccessChanged):
                authority = self._confirmed(authority)
        return outcome, authority

    def _confirmed(self, authority: Authority) -> Authority:
        confirmed = self._ledger.directory.confirm(authority, self._clock())
        confirmed.require("decide")
        return confirmed

    def signing(self) -> tuple[Signers, datetime]:
        """What signs now, and the moment. The moment is read second, so that no record is older than its key.

        Raises:
            ServiceUnavailable: SVC_SIGNING_UNAVAILABLE.
        """
        signers = self._signers()
        now = self._clock()
        for signer in (signers.receipt, signers.registry):
            if signer is not None and signer.not_before is not None and timestamp(now) < signer.not_before:
                raise ServiceUnavailable(
                    "SVC_SIGNING_UNAVAILABLE",
                    f"The server's clock says {timestamp(now)}, which is before its key {signer.key_id} was in use "
                    f"({signer.not_before}); until the operator sets it right, nothing is decided.",
                )
        return signers, now

    def rulebook(self, scope_id: str, request: DecisionRequest, *, root: str = "") -> Rulebook:
        """The rulebook that a request sends, or refers to in its scope.

        Args:
            scope_id: The scope.
            request: The request.
            root: What to call the request in the paths of errors; nothing where empty.

        Raises:
            RulebookRefused: RULEBOOK_INVALID or RULEBOOK_REF_UNKNOWN.
            ServiceUnavailable: As `registered_rulebook`.
        """
        if request.rulebook_ref is None:
            return self.rulebooks.load(request.rulebook, root=member(root, "rulebook"), plain=request.plain)
        registry, reference = self._ledger.rulebooks, request.rulebook_ref
        if "hash" in reference:
            registered = registry.find(scope_id, reference["hash"])
        else:
            registered = registry.find_version(scope_id, reference["rulebook_id"], reference["version"])
        if registered is None:
            raise RulebookRefused(
                "RULEBOOK_REF_UNKNOWN",
                "rulebook_ref names no rulebook of this scope; send the rulebook itself once, which registers it.",
            )
        return self.registered_rulebook(scope_id, registered.hash)

    def registered_rulebook(self, scope_id: str, hash_: str) -> Rulebook:
        """A rulebook that is registered in a scope, by its hash.

        Raises:
            ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: it is not stored as it was registered.
        """
        rulebook = self.rulebooks.get(hash_)
        if rulebook is None:
            body = self._ledger.rulebooks.body(scope_id, hash_)
            if body is None or content_hash(body) != hash_:
                raise ServiceUnavailable(
                    "SVC_STORAGE_UNAVAILABLE",
                    f"What is stored of rulebook {hash_} is not what was registered; send it whole.",
                )
            rulebook = self.rulebooks.load(body)
        return rulebook

    def invocation(self, request: DecisionRequest, *, root: str = "") -> Invocation | None:
        """The invocation of an adapter that a request sends, checked; None where it sends its facts.

        Raises:
            AdapterRefused: As `TrustedAdapters.invocation`.
        """
        if request.adapter is None:
            return None
        return self.adapters.invocation(request.adapter, root=member(root, "adapter"))

    def facts(self, request: DecisionRequest, invocation: Invocation | None) -> Facts:
        """The facts of a request: those that it sends, or those that its adapter makes, in one call.

        Raises:
            AdapterFailed: As `TrustedAdapters.facts`.
        """
        return Facts(request.inputs, request.plain) if invocation is None else self.adapters.facts(invocation)

    def _registered(
        self, authority: Authority, rulebook: Rulebook, dependency: Mapping[str, Any] | None, claim: Claim | None
    ) -> Registered | None:
        """What the rulebook is registered as; None where the request may register it.

        Raises:
            RulebookRefused: RULEBOOK_VERSION_CONFLICT.
            IdempotencyConflict, AccessForbidden: It may not.
        """
        registered = self._ledger.rulebooks.find(authority.scope_id, rulebook.hash)
        if registered is not None:
            require_dependency(registered, dependency)
            return registered
        # An idempotency key that was used before binds nothing new, not even a rulebook.
        if claim is not None and self._ledger.entries.claimed(authority.scope_id, claim) is not None:
            raise IdempotencyConflict("SVC_API_IDEMPOTENCY_CONFLICT", "The idempotency key was used before.")
        self._confirmed(authority).require("register")
        another = self._ledger.rulebooks.find_version(authority.scope_id, rulebook.rulebook_id, rulebook.version)
        if another is not None and another.hash != rulebook.hash:
            raise version_conflict(rulebook, another.hash)
        return None

    def register(self, scope_id: str, rulebook: Rulebook, dependency: Mapping[str, Any] | None = None) -> Registered:
        """Registers a rulebook in a scope, or finds it registered.

        Args:
            scope_id: The scope.
            rulebook: The rulebook.
            dependency: {adapter_id, version, manifest_hash, implementation_hash} of the adapter that makes its facts;
                None where callers send them.

        Raises:
            RulebookRefused: RULEBOOK_VERSION_CONFLICT.
        """
        signers, now = self.signing()
        metadata = registration(
            rulebook.reference, scope_id, timestamp(now), signers.registry, adapter_dependency=dependency
        )
        registered = self._ledger.rulebooks.register(scope_id, rulebook, metadata)
        require_dependency(registered, dependency)
        return registered

    def _replay(self, authority: Authority, claim: Claim | None) -> Decision | None:
        claimed = None if claim is None else self._ledger.entries.claimed(authority.scope_id, claim)
        return None if claimed is None else self._replayed(authority, claim, claimed)

    def _replayed(self, authority: Authority, claim: Claim | None, claimed: Claimed) -> Decision:
        entry = self._ledger.entries.at(authority.scope_id, claimed.position)
        if entry is None or claim is None:
            raise ServiceUnavailable(
                "SVC_STORAGE_UNAVAILABLE", "The record of this idempotency key cannot be read; retry with the same key."
            )
        if claimed.input_hash != claim.input_hash:
            raise IdempotencyConflict(
                "SVC_API_IDEMPOTENCY_CONFLICT",
                "The idempotency key was used before with another payload; send that payload, or use a new key.",
                details={
                    "idempotency_key": claim.key,
                    "decision_id": entry.entry_id,
                    "input_hash": claim.input_hash,
                    "existing_input_hash": claimed.input_hash,
                },
            )
        record = stored_record(entry)
        if not (_answers(entry, record, claim) and self._says_what_was_erased(authority, record)):
            raise ServiceUnavailable(
                "SVC_STORAGE_UNAVAILABLE",
                "The record of this idempotency key is not as it was made; the operator must check the chain.",
            )
        return Decision(record, "replayed", self._remaining(authority))

    def _says_what_was_erased(self, authority: Authority, record: dict[str, Any]) -> bool:
        """Whether a record that says that it was erased is one of which the chain says so, too."""
        if "erased" not in record:
            return True
        return is_confirmed(record, stored_erasure(self._ledger, authority.scope_id, record["decision_id"]))

    def _remaining(self, authority: Authority) -> int | None:
        if authority.monthly_cap is None:
            return None
        used = self._ledger.entries.used(authority.scope_id, timestamp(self._clock())[:7])
        return max(0, authority.monthly_cap - used)


def _answers(entry: StoredEntry, record: dict[str, Any], claim: Claim) -> bool:
    """Whether a stored record is still the one that was made for a key and payload."""
    try:
        return (
            record["idempotency_key"] == claim.key
            and record["input_hash"] == claim.input_hash
            and (record["record_hash"] == content_hash(envelope(record)) or _lost_facts(record))
            and is_link_of(entry.link, record)
            and chain.find_break([entry.link]) is None
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _lost_facts(record: dict[str, Any]) -> bool:
    """Whether a record's facts were erased, without which it does not hash, and what else it says still follows from
    what its receipt and its attestation were made over.
    """
    bundle = record["rulebook_attestation"]["bundle"]
    outcome = {name: record[name] for name in ("verdict", "application_verdict", *_OUTCOME)}
    return (
        {"adapter_facts", "evaluation"} <= erased_members(record)
        and record["adapter_facts"] is None
        and record["runtime_binding"]["binding_mode"] == BINDING_ADAPTER
        and record["receipt_hash"] == content_hash(receipt_material(record))
        and record["output_hash"] == content_hash(output_material(record, bundle["outcome"]["status"]))
        and record["rulebook_attestation"]["bundle_hash"] == content_hash(bundle)
        and bundle["outcome"] == {"status": bundle["outcome"]["status"], **outcome}
        and bundle["trusted_adapter"] == record["trusted_adapter"]
        and (record["c"], record["v"]) == (compact_verdict(record["verdict"]), record["application_verdict"])
    )


_OUTCOME: Final = ("action", "reason_code", "matched_rule_id")


def _cap_reached(cap: int, now: datetime) -> LimitReached:
    return LimitReached(
        "SVC_API_MONTHLY_CAP_EXCEEDED",
        f"The scope has made the {cap} records that its plan allows in this UTC month; hold the action, and ask the "
        f"operator for a larger cap.",
        details={"retry_after": max(1, math.ceil((month_end(now) - now).total_seconds())), "monthly_remaining": 0},
    )


def decision_not_found() -> NotFound:
    """The answer for an id that is unknown, or not of the caller's scope: nobody can tell the two apart."""
    return NotFound(
        "SVC_DECISION_NOT_FOUND", "There is no decision of that id in this scope; check the id and the key."
    )


def stored_record(entry: StoredEntry) -> dict[str, Any]:
    """The full record of a stored decision.

    Raises:
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: what is stored is not readable.
    """
    confidence = None if entry.confidence is None else read_object(entry.confidence, entry.entry_id)
    return _whole(read_object(entry.body, entry.entry_id), confidence, entry.link)


def _appended(record: dict[str, Any], appended: Appended) -> dict[str, Any]:
    return _whole(record, appended.confidence, appended.link)


def _whole(record: dict[str, Any], confidence: Mapping[str, Any] | None, link: Mapping[str, Any]) -> dict[str, Any]:
    """A record with what only its append could say of it."""
    whole = {**record, "audit_chain": chain.record_link(link)}
    if confidence is not None:
        whole |= {"decision_confidence": confidence, "confidence_hash": confidence.get("confidence_hash")}
    return whole


def stored_request(ledger: Ledger, scope_id: str, entry: StoredEntry) -> Any:
    """The request of a stored decision as it was sent, or None where it is no longer kept.

    A rulebook that was sent inline is kept once, with its registration, and put back here.

    Raises:
        ServiceUnavailable: SVC_STORAGE_UNAVAILABLE: what is stored is not readable.
    """
    if entry.request is None:
        return None
    body = read_object(entry.request, entry.entry_id)
    if "rulebook_ref" not in body:
        body["rulebook"] = ledger.rulebooks.body(scope_id, stored_record(entry).get("policy_hash", ""))
    return body


def read_claim(operation: str, decision_id: str, key: str | None, input_hash: str) -> Claim | None:
    """The claim of an idempotency key, if one was sent.

    Args:
        operation: decide, execution, outcome or crm-sync.
        decision_id: The decision it is used on; "" for decide.
        key: The key.
        input_hash: H of the payload it was sent with.

    Raises:
        RequestRefused: SVC_API_REQUEST_INVALID: it is too long, or no printable ASCII.
    """
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_IDEMPOTENCY_KEY or not key.isascii() or not key.isprintable():
        raise RequestRefused(
            "SVC_API_REQUEST_INVALID",
            f"x-idempotency-key must be 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters; use a plainer key.",
        )
    return Claim(operation, decision_id, key, input_hash)


def _require_binding(request: DecisionRequest) -> None:
    if request.mode != "rulebook":
        raise ServiceUnavailable(
            "SVC_ADVISORY_UNCONFIGURED",
            f"Mode {request.mode} is advisory and no upstream is configured; send mode rulebook for a binding verdict.",
        )


def _dependency(invocation: Invocation | None) -> dict[str, Any] | None:
    return None if invocation is None else invocation.adapter.dependency


def require_dependency(registered: Registered, dependency: Mapping[str, Any] | None) -> None:
    """Requires that a rulebook's facts come from where they came from when it was registered.

    A rulebook that was bound to an adapter would else decide over whatever a caller claims.

    Args:
        registered: The registration.
        dependency: The adapter that makes the facts now, as `register` takes it.

    Raises:
        RulebookRefused: RULEBOOK_VERSION_CONFLICT.
    """
    bound = registered.metadata.get("adapter_dependency")
    if bound != dependency:
        raise RulebookRefused(
            "RULEBOOK_VERSION_CONFLICT",
            f"{registered.rulebook_id} {registered.version} is registered with {_source(bound)}, and this request has "
            f"{_source(dependency)}; keep to it, or give the rulebook a version of its own.",
            details={"adapter_dependency": dependency, "registered_adapter_dependency": bound},
        )


def _source(dependency: Mapping[str, Any] | None) -> str:
    if dependency is None:
        return "facts from context.inputs"
    return f"facts from the adapter {dependency.get('adapter_id')}@{dependency.get('version')}"


def _entry(authority: Authority, request: DecisionRequest, record: dict[str, Any], claim: Claim | None) -> NewEntry:
    return NewEntry(
        scope_id=authority.scope_id,
        entry_id=record["decision_id"],
        link=link_material(record),
        body=orjson.dumps(record),
        request=canonical(
            {name: value for name, value in request.body.items() if name != "rulebook"}, plain=request.plain
        ),
        claim=claim,
        decided=found_by(record),
    )


def found_by(record: Mapping[str, Any]) -> Decided:
    """What a decision is found by in the ledger, and what its outcomes are counted under."""
    return Decided(record["verdict"], record["action"], record["reason_code"], record["action_binding"]["resource"])


def is_link_of(link: Mapping[str, Any], record: dict[str, Any]) -> bool:
    """Whether a chain link holds what its decision's record gives it."""
    material = link_material(record)
    return all(link[name] == getattr(material, name) for name in material.__slots__)
