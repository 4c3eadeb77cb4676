"""Resuming an intent that is held for review, as a flow: everything that happens before the body.

A resumed guard needs no facts, because the store keeps the request with them. It makes the same checks as the first
guard, does not ask for a new decision, and runs the body only after the owner's grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from gate.client.guard.entering import Entry, begin
from gate.client.guard.held.unopened import not_held
from gate.client.guard.proposal import GUARD, Proposal, Target
from gate.client.guard.recovery import known_intent
from gate.client.guard.refusals import already_started, contended, no_verdict, not_approved
from gate.client.guard.terms import Terms
from gate.client.store.intents import Intent, State, Store, StoreUnavailable, damaged
from gate.client.transport.flow import Do, Flow
from gate.encoding.canonical import canonical
from gate.records.envelope import action_binding

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.records.documents import DecisionBody


def resume(intent_id: str, terms: Terms) -> Flow[tuple[Intent, DecisionRecord]]:
    """Everything before the body: the started attempt and its record.

    Raises:
        Blocked, HeldForReview, GateUnavailable, AlreadyStarted: The body must not run.
        OperatorError: `INTENT_UNKNOWN` or `INTENT_NOT_HELD`: there is no review to resume.
    """
    try:
        proposal = yield from Do(partial(resumed, terms.store, intent_id))
    except StoreUnavailable as error:
        raise no_verdict(intent_id, error) from error
    return (yield from begin(_Resumption(proposal, terms), proposal))


class _Resumption(Entry):
    """One resumption of an intent that is held for review."""

    def go_on(self) -> Flow[tuple[Intent, DecisionRecord] | None]:
        """See `Entry.go_on`.

        Raises:
            OperatorError: INTENT_NOT_HELD: there is no review.
        """
        intent = yield from Do(partial(self._store.find, self._proposal.intent_id))
        if intent is None or not self._is_same(intent):
            # Another process has asked something else meanwhile.
            raise contended(self._proposal)
        if intent.state in (State.STARTED, State.REPORTED):
            raise already_started(self._proposal, intent.record, intent)
        if intent.answered is None:
            raise not_held(intent, "it has no decision yet")
        record = self._checks.verified(intent.request, intent.record)
        if record["verdict"] == "yes":
            raise not_held(intent, "the gate says yes")
        self._checks.require_own(intent, record)
        if record["verdict"] == "no":
            raise not_approved(self._proposal, record)
        judged = yield from self._review.heard(intent, record, is_new=False)
        if judged is None:
            raise not_approved(self._proposal, record)
        return (yield from self._act_on(judged, intent, record))

    def _asks_anew(self, intent: Intent) -> bool:
        return False


def resumed(store: Store, intent_id: str) -> Proposal:
    """The action of the latest attempt at an intent.

    Raises:
        OperatorError: `INTENT_UNKNOWN`; or `INTENT_NOT_HELD`: the request was forgotten.
        StoreUnavailable: The store is unusable, or its data was changed (`INTENTS_DAMAGED`).
    """
    intent = known_intent(store, intent_id)
    if not intent.asked:
        raise not_held(intent, "its request was forgotten")
    return proposal_of(intent)


def proposal_of(intent: Intent) -> Proposal:
    """The action of an attempt. Pure.

    Raises:
        StoreUnavailable: `INTENTS_DAMAGED`: the stored request was changed.
    """
    # The context is open: what the guard says in it is no member of its type.
    request: Mapping[str, Any] = intent.request
    context = {name: value for name, value in request["context"].items() if name != GUARD}
    body = cast("DecisionBody", {**request, "context": context})
    if sha256(canonical(dict(body))).hexdigest() != intent.asked_hash:
        raise damaged(intent.intent_id)
    target = Target(context["target_system"], context["target_object_id"], context.get("mutation", ""))
    rulebook = {"rulebook_id": request["rulebook"]["rulebook_id"]} if "rulebook" in request else request["rulebook_ref"]
    return Proposal(
        intent_id=intent.intent_id,
        body=body,
        body_hash=intent.asked_hash,
        target=target,
        binding=action_binding(body["context"]),
        rulebook=dict(rulebook),
        # A resumed guard runs only after a grant, which is about the proposed action and not an outcome's label.
        actions=frozenset({context["requested_action"]}),
    )
