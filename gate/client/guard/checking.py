"""The checks of a record: it must verify, result from the request that was sent, and be about the action.

They also apply if the service answers with another decision than the requested one, because only a record proves it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gate.client import operations
from gate.client.guard.proposal import Proposal, idempotency_key, question_of
from gate.client.guard.refusals import foreign, no_verdict, unexpected, unverified
from gate.client.guard.terms import Terms
from gate.client.store.intents import Intent, State
from gate.client.transport.exchange import exchange
from gate.client.transport.flow import Do, Flow
from gate.encoding.canonical import content_hash
from gate.errors import GateError
from gate.records.envelope import input_material

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.records.documents import DecisionBody
    from gate.verify import Verification

# How many earlier attempts are looked through.
_ATTEMPTS: Final = 100


class Checks:
    """The checks of records during one entering of a guard."""

    def __init__(self, proposal: Proposal, terms: Terms) -> None:
        """Takes the action, and the terms for its record."""
        self._proposal = proposal
        self._terms = terms

    def verified(self, request: DecisionBody, record: DecisionRecord | None) -> DecisionRecord:
        """The record, if it verifies and results from a request.

        Raises:
            GateUnavailable: `RECORD_UNVERIFIED`, or the guard cannot read the pinned keys.
        """
        result = self._verification(record, request)
        if record is None or not result.verified or result.error is not None:
            raise unverified(self._proposal, result)
        return record

    def require_own(self, intent: Intent, record: DecisionRecord) -> None:
        """Requires that a record is about the action, and that a yes permits this action.

        Raises:
            GateUnavailable: `RECORD_FOREIGN` or `ACTION_UNEXPECTED`.
        """
        why = self.objection(intent, record)
        if why is not None:
            raise foreign(self._proposal, record, why)
        if record["verdict"] == "yes" and not self._proposal.approves(record):
            raise unexpected(self._proposal, record)

    def objection(self, intent: Intent, record: DecisionRecord) -> str | None:
        """Why a verified record is not about the action, or None if it is.

        Raises:
            GateUnavailable: The scope of the key is unknown.
        """
        try:
            return self._proposal.objection(record, key_of(intent), self._terms.scope_hash())
        except GateError as error:
            raise no_verdict(self._proposal.intent_id, error) from error

    def is_own_review(self, intent: Intent) -> bool:
        """Whether a stored record is a review of the action that its owner can still answer.

        Raises:
            GateUnavailable: The guard cannot read the pinned keys.
        """
        record = intent.record
        if record is None or record.get("verdict") != "review":
            return False
        result = self._verification(record, intent.request)
        return result.verified and result.error is None and self.objection(intent, record) is None

    def was_given_to_an_earlier_attempt(self, intent: Intent, input_hash: object) -> Flow[bool]:
        """Whether the service used the idempotency key of an attempt for an earlier request of this store.

        This happens if the store gave up a request and the request arrived late. No process begins that attempt any
        more. The service's word is not enough: the record of the earlier request, which the service repeats, must
        prove it.
        """
        attempts = yield from Do(partial(self._terms.store.attempts, intent.intent_id, _ATTEMPTS))
        for earlier in attempts:
            if earlier.state is not State.SUPERSEDED or not earlier.asked or question(earlier) != question(intent):
                continue
            request = earlier.request
            if content_hash(input_material(request)) != input_hash:
                continue
            try:
                call = operations.decide(request, idempotency_key=key_of(earlier))
                answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
                scope_hash = self._terms.scope_hash()
            except GateError as error:
                raise no_verdict(self._proposal.intent_id, error) from error
            record = self.verified(request, answer.body)
            # An advisory record cites no registration; it is refused for what it is, and not for its scope.
            registry = record.get("rulebook_registry")
            is_of_scope = scope_hash is None or registry is None or registry.get("scope_hash") == scope_hash
            return is_of_scope and record["idempotency_key"] == key_of(intent)
        return False

    def of_another_store(self, decision_id: object) -> Flow[DecisionRecord | None]:
        """The record that the service created for another store, if it is available and about this action."""
        if not isinstance(decision_id, str):
            return None
        try:
            call = operations.get_decision(decision_id)
            answer = yield from exchange(call, seconds=self._terms.seconds, tries=self._terms.tries)
            record = answer.body
            is_ours = self._verification(record).verified
        except GateError:
            return None
        return record if is_ours and record["action_binding"] == self._proposal.binding else None

    def _verification(self, record: DecisionRecord | None, request: DecisionBody | None = None) -> Verification:
        # Loaded with the first record, so that importing the client needs no cryptography.
        from gate.verify import verify_record

        try:
            return verify_record(record, self._terms.trust(), request_body=request)
        except GateError as error:
            raise no_verdict(self._proposal.intent_id, error) from error


def question(intent: Intent) -> int:
    """The number of an attempt's question, which its idempotency key contains."""
    # Of a forgotten attempt only the number is left, and numbers never go back.
    return question_of(intent.attempt, intent.request) if intent.asked else intent.attempt


def key_of(intent: Intent) -> str:
    """The idempotency key of an attempt's request."""
    return idempotency_key(intent.intent_id, question(intent))
