"""The product's sentence: a request is read, a rulebook decides over facts, and the signed record is in the ledger
before anyone hears of it. In an advisory mode an upstream gives advice instead, and its record authorizes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import orjson

from gate.adapters.invocation import TrustedAdapters
from gate.clock import new_id
from gate.decisions.batches import Unforeseen, attempted, settle_all
from gate.decisions.claims import (
    DECIDE,
    Proposal,
    Settled,
    Used,
    cap_reached,
    entry_of,
    not_as_made,
    read_claim,
    settle,
    used_before,
)
from gate.decisions.signing import Signing
from gate.decisions.sources import Sources
from gate.decisions.stored import appended_record, found_by, is_as_made, stored_record, stored_request
from gate.decisions.verification import is_linked
from gate.encoding.canonical import canonical, content_hash, is_plain
from gate.errors import FieldError, GateError, IdempotencyConflict, RequestRefused
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import Authority
from gate.ledger.access.caller import Caller
from gate.ledger.chain.changes import ActiveRoute
from gate.ledger.chain.writer import Claim, NewEntry
from gate.ledger.routes import Routing
from gate.ledger.rulebooks import Registered
from gate.proof.chain import link_material
from gate.records.batch import Question, no_advice
from gate.records.documents import DecisionBody, Record
from gate.records.envelope import input_material
from gate.records.record import Identity, Signers, build_record
from gate.records.request import DecisionRequest, read_request
from gate.records.webhooks.events import decision_review
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.records import record_of


class Decision(NamedTuple):
    """An answer to a Decision Request.

    Attributes:
        record: The full Decision Record.
        status: `created`, or `replayed` where the idempotency key had been used with the same payload.
        remaining: How many more records the scope may make in this UTC month; None without a cap.
        warnings: The warnings about the rulebook, where this request registered it.
    """

    record: Record
    status: str
    remaining: int | None
    warnings: Sequence[FieldError] = ()


class DecisionGate:
    """Decides, and finds what was decided.

    Attributes:
        sources: Where its decisions take rulebooks and facts from.
        signing: What signs now, and the moment.
        advisor: What answers the advisory modes.
    """

    def __init__(
        self,
        ledger: Ledger,
        signers: Callable[[], Signers],
        clock: Callable[[], datetime],
        schema_url: str,
        adapters: TrustedAdapters,
        advisor: Callable[[], Advisor],
    ) -> None:
        """Composes the gate.

        Args:
            ledger: Where records are kept.
            signers: What signs a record made now; raises `ServiceUnavailable` where that cannot be said.
            clock: The current moment, in UTC.
            schema_url: Where the Rulebook v1 schema is published.
            adapters: The adapters that requests may invoke.
            advisor: What answers the advisory modes.
        """
        self.signing: Final = Signing(signers, clock)
        self.sources: Final = Sources(ledger.rulebooks, ledger.changes, adapters, self.signing)
        self._ledger = ledger
        self._clock = clock
        self._schema_url = schema_url
        self.advisor: Final = advisor

    def decide(
        self,
        authority: Authority,
        body: object,
        *,
        request_id: str,
        idempotency_key: str | None = None,
        refusal: RequestRefused | None = None,
    ) -> Decision:
        """Answers a Decision Request with a record that is durably stored.

        Args:
            authority: The caller's authority. It may come from this process's memory, because it is confirmed before it
                matters.
            body: The parsed request body.
            request_id: The handle under which logs know this request.
            idempotency_key: The caller's retry handle.
            refusal: An error of the request outside its body. A used key still replays.

        Raises:
            RequestRefused, RulebookRefused, AdapterRefused: The request cannot be decided.
            AdapterFailed: The adapter made no facts. Nothing was recorded.
            AdvisoryFailed: The advisory upstream gave no answer. Nothing was recorded.
            IdempotencyConflict: `SVC_API_IDEMPOTENCY_CONFLICT`.
            AccessForbidden: The key may no longer decide, or may not register the rulebook it sent.
            LimitReached: `SVC_API_MONTHLY_CAP_EXCEEDED`.
            ServiceUnavailable: Storage, signing, or an upstream is not available. Nothing was recorded.
        """
        caller = Caller(self._ledger.directory, authority, "decide", self._clock)
        with caller.confirming():
            proposal = self._proposal(caller, Question(body, idempotency_key, refusal), request_id, self.signing)
        return self._decision(caller, settle(self._ledger.entries, caller, proposal))

    def decide_all(
        self,
        authority: Authority,
        questions: Sequence[Question],
        *,
        request_id: str,
        unforeseen: Unforeseen,
    ) -> list[Decision | GateError]:
        """Answers Decision Requests, each with a record that is durably stored or with what refuses it.

        One commit makes the records durable, in the order of the requests; those that have to be made again, because
        access or a route changed meanwhile, follow in another.

        Args:
            authority: As `decide` takes it.
            questions: The requests.
            request_id: The handle under which logs know all of them.
            unforeseen: The error that callers get for a failure that is not a `GateError`; the other requests continue.
        """
        caller = Caller(self._ledger.directory, authority, "decide", self._clock)
        signing = self.signing.for_many()
        readers = [partial(self._proposal, caller, question, request_id, signing) for question in questions]
        settled = settle_all(self._ledger.entries, caller, readers, unforeseen)
        return [
            one if isinstance(one, GateError) else attempted(partial(self._decision, caller, one), unforeseen)
            for one in settled
        ]

    def _decision(self, caller: Caller, settled: Settled[_Document]) -> Decision:
        if isinstance(settled, Used):
            return self._replayed(caller.authority, settled)
        record, warnings = settled.document
        return Decision(appended_record(record, settled.appended), "created", settled.appended.remaining, warnings)

    def _proposal(self, caller: Caller, question: Question, request_id: str, signing: Signing) -> Proposal[_Document]:
        """The claim of a request, and what makes its entry; raises RequestRefused where the key is none."""
        body, idempotency_key, refusal, may_advise, looked_at = question
        plain = is_plain(body) if looked_at is None else looked_at
        input_hash = content_hash(input_material(body), plain=plain)
        claim = read_claim(DECIDE, "", idempotency_key, input_hash)
        routing = Routing(self.sources.routes, caller.scope_id)

        def identified(now: datetime) -> Identity:
            return Identity(new_id("dec", now), request_id, idempotency_key, timestamp(now))

        def decided() -> _Decided:
            if refusal is not None:
                raise refusal
            request = read_request(body, input_hash, now=self._clock(), plain=plain)
            if request.mode != "rulebook":
                if not may_advise:
                    raise no_advice()
                return self._advised(caller, request, claim, identified)
            return routing.decide(request.rulebook_ref, lambda route: by(route, request))

        def by(route: ActiveRoute | None, request: DecisionRequest) -> _Decided:
            rulebook, registered, facts, warnings = self._basis(caller, request, claim, route)
            signers, now = signing()
            explained = rulebook.evaluator.explain(facts.values)
            identity = identified(now)
            record = build_record(
                request,
                rulebook,
                registered.metadata,
                facts,
                explained,
                identity,
                signers,
                schema_url=self._schema_url,
                compacted=registered.compacted,
            )
            return _entry(caller.scope_id, request, record, claim, route), (record, warnings)

        return Proposal(claim, decided)

    def decision(self, authority: Authority, decision_id: str) -> Record | None:
        """The full record of a decision of the caller's scope, or None."""
        entry = self._ledger.entries.decision(authority.scope_id, decision_id)
        return None if entry is None else stored_record(entry)

    def request_body(self, authority: Authority, decision_id: str) -> DecisionBody | None:
        """The original request of a decision, without response_view, or None."""
        entry = self._ledger.entries.decision(authority.scope_id, decision_id)
        return None if entry is None else stored_request(self._ledger, authority.scope_id, entry)

    def is_linked(self, authority: Authority, decision_id: str) -> bool:
        """Whether a stored decision's chain link follows from its record and from the link before it."""
        entry = self._ledger.entries.decision(authority.scope_id, decision_id)
        if entry is None:
            return False
        return is_linked(entry, stored_record(entry))

    def _basis(
        self, caller: Caller, request: DecisionRequest, claim: Claim | None, route: ActiveRoute | None
    ) -> tuple[Rulebook, Registered, Facts, Sequence[FieldError]]:
        """The basis of a decision: its rulebook, the registration that the record cites, and the facts; and the
        warnings about the rulebook where this request registers it.
        """
        rulebook = self.sources.rulebook(caller.scope_id, request, route)
        invocation = self.sources.invocation(request)
        dependency = None if invocation is None else invocation.adapter.dependency
        registered = self.sources.registered(caller.scope_id, rulebook, dependency)
        if registered is None:
            # A key that was used before binds nothing new, not even a rulebook.
            self._require_unused(caller, claim)
            self.sources.require_registrable(caller, rulebook)
        facts = self.sources.facts(request, invocation)
        if registered is None:
            # Not before there are facts: a failing adapter must leave nothing behind.
            registered = self.sources.register_for_record(caller.scope_id, rulebook, dependency)
            # Here and not with every decision, for looking a rulebook over takes longer than deciding by it.
            return rulebook, registered, facts, self.sources.warnings(rulebook, dependency)
        return rulebook, registered, facts, ()

    def _advised(
        self,
        caller: Caller,
        request: DecisionRequest,
        claim: Claim | None,
        identified: Callable[[datetime], Identity],
    ) -> _Decided:
        """An advisory record: the upstream's answer, under a contract that it authorizes nothing."""
        # Before the question leaves the machine: a retry asks nobody again, and neither does a key that was disabled,
        # or a scope that has no record left.
        self._require_unused(caller, claim)
        authority = caller.confirm()
        if authority.monthly_cap is not None and self._remaining(authority) == 0:
            raise cap_reached(authority.monthly_cap, self._clock())
        advice = self.advisor().advise(request)
        signers, now = self.signing()
        record = record_of(request, advice, identified(now), signers.receipt)
        return _entry(caller.scope_id, request, record, claim, None), (record, ())

    def _require_unused(self, caller: Caller, claim: Claim | None) -> None:
        if used_before(self._ledger.entries, caller.scope_id, claim) is not None:
            # `settle` finds its entry.
            raise IdempotencyConflict("SVC_API_IDEMPOTENCY_CONFLICT", "The idempotency key was used before.")

    def _replayed(self, authority: Authority, used: Used) -> Decision:
        entry = entry_of(self._ledger.entries, authority.scope_id, DECIDE, used)
        record = stored_record(entry)
        if not is_as_made(self._ledger, authority.scope_id, entry, record, used.claim):
            raise not_as_made(DECIDE)
        return Decision(record, "replayed", self._remaining(authority))

    def _remaining(self, authority: Authority) -> int | None:
        if authority.monthly_cap is None:
            return None
        used = self._ledger.entries.used(authority.scope_id, timestamp(self._clock())[:7])
        return max(0, authority.monthly_cap - used)


_Document: TypeAlias = tuple[Record, Sequence[FieldError]]
_Decided: TypeAlias = tuple[NewEntry, _Document]


def _entry(
    scope_id: str, request: DecisionRequest, record: Record, claim: Claim | None, route: ActiveRoute | None
) -> NewEntry:
    found = found_by(record)
    return NewEntry(
        scope_id=scope_id,
        entry_id=record["decision_id"],
        link=link_material(record),
        body=orjson.dumps(record),
        # A rulebook is kept once, with its registration, and restored by `stored_request`.
        request=canonical(
            {name: value for name, value in request.body.items() if name != "rulebook"}, plain=request.plain
        ),
        claim=claim,
        route_epoch=None if route is None else route.epoch,
        decided=found,
        # Advice authorizes nothing, so nobody has to answer it.
        event=decision_review(record) if found.verdict == "review" and not found.advisory else None,
    )
