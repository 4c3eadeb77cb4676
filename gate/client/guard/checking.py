"""Whether a record is what it must be: it verifies, was made from the request that was sent, and is about the action.

The service's word about another record than the one that was asked for is looked at here too: only a record proves it.
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
        """Takes the action, and under what terms a record counts."""
        self._proposal = proposal
        self._terms = terms

    def verified(self, request: DecisionBody, record: DecisionRecord | None) -> DecisionRecord:
        """A record of which it is known by now that it is one, and made from a request.

        Raises:
            GateUnavailable: RECORD_UNVERIFIED, or the pinned keys cannot be read.
        """
        result = self._verification(record, request)
        if record is None or not result.verified or result.error is not None:
            raise unverified(self._proposal, result)
        return record

    def require_own(self, intent: Intent, record: DecisionRecord) -> None:
        """Requires that a record is about the action, and a yes about nothing else.

        Raises:
            GateUnavailable: RECORD_FOREIGN or ACTION_UNEXPECTED.
        """
        why = self.objection(intent, record)
        if why is not None:
            raise foreign(self._proposal, record, why)
        if record["verdict"] == "yes" and not self._proposal.approves(record):
            raise unexpected(self._proposal, record)

    def objection(self, intent: Intent, record: DecisionRecord) -> str | None:
        """Why a record that verifies is not about the action; None where it is.

        Raises:
            GateUnavailable: The scope of the key is not known.
        """
        try:
            return self._proposal.objection(record, key_of(intent), self._terms.scope_hash())
        except GateError as error:
            raise no_verdict(self._proposal.intent_id, error) from error

    def is_own_review(self, intent: Intent) -> bool:
        """Whether a kept record is a review of the action that its owner can still answer.

        Raises:
            GateUnavailable: The pinned keys cannot be read.
        """
        record = intent.record
        if record is None or record.get("verdict") != "review":
            return False
        result = self._verification(record, intent.request)
        return result.verified and result.error is None and self.objection(intent, record) is None

    def was_given_to_an_earlier_attempt(self, intent: Intent, input_hash: object) -> Flow[bool]:
        """Whether the service has decided under an attempt's question what this store asked before and gave up, as it
        does with a request that arrives late. Nobody begins that attempt any more.

        The service's word is not enough: an answer to the earlier request, which it repeats, has to prove it.
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
        """The record that the service made for another store, where it can be had and is about this action."""
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
    """The number that an attempt is asked under."""
    # Of a forgotten attempt only the number is left, and numbers never go back.
    return question_of(intent.attempt, intent.request) if intent.asked else intent.attempt


def key_of(intent: Intent) -> str:
    """The idempotency key that an attempt is asked under."""
    return idempotency_key(intent.intent_id, question(intent))
