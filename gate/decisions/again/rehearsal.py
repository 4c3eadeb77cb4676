"""Replays stored decisions without an effect on the ledger: replay, diff, and counterfactuals. Nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gate.adapters.invocation import Invocation
from gate.decisions.again.counterfactuals import (
    Counterfactuals,
    CounterfactualsRequest,
    Scenario,
    adapter_inputs_of_scenarios,
    facts_of_scenarios,
    invalid_scenarios,
    simulate,
)
from gate.decisions.again.replay import (
    CURRENT,
    HISTORICAL,
    Lineage,
    ReplayRequest,
    ReplaySummary,
    decide_again,
    lineage_of,
    mismatch,
    request_again,
    require_evaluator,
    require_original_facts,
    require_original_rulebook,
    summary,
)
from gate.decisions.sources import Sources, require_dependency
from gate.decisions.stored import decision_not_found, is_link_of, stored_record, stored_request
from gate.encoding.canonical import content_hash, is_plain
from gate.encoding.shapes import MAX_ERRORS
from gate.errors import AdapterRefused, FieldError, RequestRefused
from gate.ledger import Ledger
from gate.ledger.chain.entries import StoredEntry
from gate.ledger.rulebooks import version_conflict
from gate.proof import chain
from gate.records.advisory import is_advisory
from gate.records.attestation import registration
from gate.records.documents import DecisionBody, Record, Registration
from gate.records.envelope import envelope, erased_members, input_material
from gate.records.record import Identity
from gate.records.request import BINDING_MEMBERS, DecisionRequest, accepted_request, read_request
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.records import record_of


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision as it is stored.

    Attributes:
        scope_id: Its scope.
        entry: Its entry.
        record: Its full record.
    """

    scope_id: str
    entry: StoredEntry
    record: Record


class Rehearsal:
    """Makes stored decisions again."""

    def __init__(self, sources: Sources, ledger: Ledger, advisor: Callable[[], Advisor]) -> None:
        """Works over a ledger, with the rulebooks, the adapters and the advisor of the gate that decides on it."""
        self._advisor = advisor
        self._sources = sources
        self._ledger = ledger

    def stored(self, scope_id: str, decision_id: str) -> StoredDecision:
        """A decision of a scope.

        Raises:
            NotFound: `SVC_DECISION_NOT_FOUND`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: the stored decision is not readable.
        """
        entry = self._ledger.entries.decision(scope_id, decision_id)
        if entry is None:
            raise decision_not_found()
        return StoredDecision(scope_id, entry, stored_record(entry))

    def modes(self, stored: StoredDecision, modes: Sequence[str]) -> Sequence[str]:
        """The modes of an endpoint in which a decision can be replayed. Of an advisory one it is the current one alone,
        since no model gives the same answer for ever.
        """
        return (CURRENT,) if is_advisory(stored.record) else modes

    def replay(self, stored: StoredDecision, asked: ReplayRequest, view: str) -> ReplaySummary:
        """Makes a decision again and says where it differs; the answer is that of `replay.summary`.

        Args:
            stored: The decision.
            asked: What to replay against.
            view: The view of the replayed record.

        Raises:
            RequestRefused, RulebookRefused: `REPLAY_INPUT_UNAVAILABLE`, or why `input` is no request to decide.
            AdapterFailed: The adapter made no facts.
            AdvisoryFailed: The advisory upstream gave no answer.
            LineageMismatch: `REPLAY_LINEAGE_MISMATCH`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`; or, of an advisory decision, as `Advisor.advise`.
        """
        if is_advisory(stored.record):
            return summary(stored.record, self._advised_again(stored, asked), asked.mode, view)
        if asked.input is not None:
            request, rulebook, invocation = self._sent(stored.scope_id, asked.input)
            lineage = _lineage(stored)
            cited = self._registration(stored.scope_id, rulebook, invocation, lineage)
            facts = self._facts(request, invocation)
        else:
            mode = "" if asked.mode == CURRENT else "replay_mode current with "
            body = self._request(stored, "REPLAY_INPUT_UNAVAILABLE", f"send {mode}your own input")
            lineage = _lineage(stored)
            if asked.mode == HISTORICAL:
                require_evaluator(lineage)
            request = request_again(lineage, body)
            if asked.mode == HISTORICAL:
                rulebook, cited = self._original(stored.scope_id, lineage, request), lineage.registration
                facts = self._original_facts(lineage, request)
            else:
                rulebook, cited = self._current(stored.scope_id, lineage)
                facts = self._current_facts(request, cited)
        replayed = decide_again(lineage, request, facts, rulebook, cited)
        return summary(stored.record, replayed, asked.mode, view)

    def counterfactuals(self, stored: StoredDecision, asked: CounterfactualsRequest, view: str) -> Counterfactuals:
        """What the scope's current version of the rulebook says to each scenario; the answer is that of
        `counterfactuals.simulate`.

        Raises:
            RequestRefused: `COUNTERFACTUAL_INPUT_UNAVAILABLE` or `COUNTERFACTUAL_SCENARIOS_INVALID`.
            AdapterFailed: The adapter made no facts.
            LineageMismatch: `REPLAY_LINEAGE_MISMATCH`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if is_advisory(stored.record):
            raise RequestRefused(
                "COUNTERFACTUAL_INPUT_UNAVAILABLE",
                "This decision is advisory, so no rulebook can answer for another context. Replay it with your "
                "own input instead.",
            )
        body = self._request(stored, "COUNTERFACTUAL_INPUT_UNAVAILABLE", "use a decision whose request is still stored")
        lineage = _lineage(stored)
        request = request_again(lineage, body)
        rulebook, cited = self._current(stored.scope_id, lineage)
        if request.adapter is None:
            facts = facts_of_scenarios(request.context, asked.scenarios)
        else:
            facts = self._adapter_facts(request, cited, asked.scenarios)
        return simulate(stored.record, rulebook, asked.scenarios, facts, view)

    def _advised_again(self, stored: StoredDecision, asked: ReplayRequest) -> Record:
        """The record that an advisory decision would be by the upstream's answer now."""
        if asked.input is None:
            body = self._request(stored, "REPLAY_INPUT_UNAVAILABLE", "send your own input")
        identity, input_hash = _advisory_lineage(stored)
        if asked.input is not None:
            request = _advisory_request(asked.input, self._sources.now())
        else:
            plain = is_plain(body)
            if content_hash(body, plain=plain) != input_hash:
                raise mismatch("the stored request does not match the record's input_hash")
            request = accepted_request(body, input_hash, plain=plain)
        root = "" if asked.input is None else "input"
        return record_of(request, self._advisor().advise(request, root=root), identity, None)

    def _request(self, stored: StoredDecision, code: str, remedy: str) -> DecisionBody:
        """The stored request; `code` and `remedy` are for the caller, if there is none."""
        body = stored_request(self._ledger, stored.scope_id, stored.entry)
        if body is None:
            gone = "was erased" if "input" in erased_members(stored.record) else "is no longer kept"
            raise RequestRefused(code, f"The request of this decision {gone}; {remedy}.")
        return body

    def _original(self, scope_id: str, lineage: Lineage, request: DecisionRequest) -> Rulebook:
        body = request.rulebook
        if request.rulebook_ref is not None:
            body = self._ledger.rulebooks.body(scope_id, lineage.policy_hash)
        require_original_rulebook(lineage, body)
        return self._sources.cache.load(body)

    def _original_facts(self, lineage: Lineage, request: DecisionRequest) -> Facts:
        """The facts that were decided over: those of the request, or those that the adapter it invoked makes again."""
        if lineage.trusted_adapter is None or request.adapter is None:
            facts = Facts(request.inputs, request.plain)
        else:
            try:
                invocation = self._sources.adapters.pinned(lineage.trusted_adapter, request.adapter["input"])
            except AdapterRefused as error:
                raise mismatch("the record's adapter does not accept the stored input") from error
            if invocation is None:
                named = f"{lineage.trusted_adapter.get('adapter_id')}@{lineage.trusted_adapter.get('version')}"
                raise mismatch(f"this release lacks the adapter {named} that the record cites")
            facts = self._facts(request, invocation)
        require_original_facts(lineage, facts)
        return facts

    def _adapter_facts(
        self, request: DecisionRequest, registration: Registration, scenarios: Sequence[Scenario]
    ) -> list[Mapping[str, object]]:
        """The facts of each scenario; the adapter runs once all of its inputs are known to be such."""
        adapter = request.adapter or {}
        invocations, faults = [], []
        for index, given in enumerate(adapter_inputs_of_scenarios(request.context, adapter, scenarios)):
            try:
                patched = request._replace(adapter={**adapter, "input": given})
                if (invocation := self._current_invocation(patched, registration)) is not None:
                    invocations.append(invocation)
            except AdapterRefused as refusal:
                at = f"scenarios[{index}].adapter_input_patch"
                faults += [
                    FieldError(at + error.field.removeprefix("adapter.input"), error.code, error.message)
                    for error in refusal.errors
                ]
        if faults:
            raise invalid_scenarios(faults[:MAX_ERRORS])
        return [facts.values for facts in self._sources.adapters.rehearsed(invocations)]

    def _current_facts(self, request: DecisionRequest, registration: Registration) -> Facts:
        """The facts of a stored request as a rulebook that is registered takes them now, made in one call."""
        return self._facts(request, self._current_invocation(request, registration))

    def _facts(self, request: DecisionRequest, invocation: Invocation | None) -> Facts:
        """The facts of a request: those that it sends, or those that its adapter makes."""
        if invocation is None:
            return Facts(request.inputs, request.plain)
        return self._sources.adapters.rehearsed([invocation])[0]

    def _current_invocation(self, request: DecisionRequest, registration: Registration) -> Invocation | None:
        """The invocation by which a rulebook that is registered takes its facts now; None where the request has them.

        Raises:
            LineageMismatch: It takes them from elsewhere than the request has them.
            AdapterRefused: `TRUSTED_ADAPTER_INPUT_INVALID`: its adapter does not take the request's input.
        """
        dependency = registration.get("adapter_dependency")
        if dependency is None and request.adapter is None:
            return None
        if dependency is None or request.adapter is None or dependency["adapter_id"] != request.adapter["adapter_id"]:
            raise mismatch(
                "the current version of the rulebook takes its facts from another source than the stored "
                "request; send your own input"
            )
        invocation = self._sources.adapters.pinned(dependency, request.adapter["input"])
        if invocation is None:
            raise mismatch("this release lacks the adapter that the rulebook is bound to")
        return invocation

    def _current(self, scope_id: str, lineage: Lineage) -> tuple[Rulebook, Registration]:
        """What the scope would decide by now: the version that the rulebook's route leads to; where there is no route,
        the one that was registered last.
        """
        registry = self._ledger.rulebooks
        route = self._sources.routes.active(scope_id, lineage.policy_id).route
        if route is not None:
            latest = registry.find(scope_id, route["to"]["hash"])
        else:
            latest = registry.latest(scope_id, lineage.policy_id)
        if latest is None:
            raise mismatch(f"no version of {lineage.policy_id} is registered")
        return self._sources.registered_rulebook(scope_id, latest.hash), latest.metadata

    def _sent(self, scope_id: str, body: Mapping[str, object]) -> tuple[DecisionRequest, Rulebook, Invocation | None]:
        """The request of a caller's own, read as a decision would read it, its rulebook, and the adapter it invokes."""
        if body.get("mode") != "rulebook" and not body.keys() & set(BINDING_MEMBERS):
            fault = FieldError("input.mode", "enum" if "mode" in body else "required", "It must be rulebook.")
            raise RequestRefused(
                "SVC_API_REQUEST_INVALID",
                "A replay needs a rulebook. Send a whole Decision Request in input: mode rulebook, "
                "rulebook or rulebook_ref, and the facts in context.inputs.",
                [fault],
            )
        plain = is_plain(body)
        input_hash = content_hash(input_material(body), plain=plain)
        request = read_request(body, input_hash, now=self._sources.now(), plain=plain, root="input")
        rulebook = self._sources.rulebook(scope_id, request, root="input")
        return request, rulebook, self._sources.invocation(request, root="input")

    def _registration(
        self, scope_id: str, rulebook: Rulebook, invocation: Invocation | None, lineage: Lineage
    ) -> Registration:
        """The registration that a record would cite. One that does not exist is returned without a signature."""
        registry = self._ledger.rulebooks
        registered = registry.find_version(scope_id, rulebook.rulebook_id, rulebook.version)
        dependency = None if invocation is None else invocation.adapter.dependency
        if registered is None:
            created_at = lineage.identity.created_at
            return registration(rulebook.reference, scope_id, created_at, None, adapter_dependency=dependency)
        if registered.hash != rulebook.hash:
            raise version_conflict(rulebook, registered.hash)
        require_dependency(registered, dependency)
        return registered.metadata


def _lineage(stored: StoredDecision) -> Lineage:
    lineage = lineage_of(stored.record)
    _require_linked(stored)
    return lineage


def _advisory_lineage(stored: StoredDecision) -> tuple[Identity, str]:
    """The ids and date of an advisory decision, and the hash of its request."""
    record = stored.record
    if "erased" not in record and record["record_hash"] != content_hash(envelope(record)):
        raise mismatch("the stored record does not match its record_hash")
    _require_linked(stored)
    identity = Identity(
        record["decision_id"], record["request_id"], record.get("idempotency_key"), record["created_at"]
    )
    return identity, record["input_hash"]


def _advisory_request(body: Mapping[str, object], now: datetime) -> DecisionRequest:
    """The advisory request of a caller's own, read as a decision would read it."""
    if body.get("mode") == "rulebook":
        fault = FieldError("input.mode", "enum", "It must be single, multi or runtime.")
        raise RequestRefused(
            "SVC_API_REQUEST_INVALID",
            "This decision is advisory, so it is compared only with advice. Send a Decision Request of an "
            "advisory mode in input, or request a verdict with POST /api/decide.",
            [fault],
        )
    plain = is_plain(body)
    return read_request(body, content_hash(input_material(body), plain=plain), now=now, plain=plain, root="input")


def _require_linked(stored: StoredDecision) -> None:
    link = stored.entry.link
    try:
        linked = is_link_of(link, stored.record) and chain.find_break([link]) is None
    except KeyError:
        linked = False
    if not linked:
        raise mismatch("the stored record does not match its chain link")
