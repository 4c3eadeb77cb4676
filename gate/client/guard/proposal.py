"""The action that a caller proposes: its id, its request, and the checks of a record for it. Pure.

    proposal = propose("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77"))
    proposal.intent_id                                 # the same for every retry, even if the facts change
    proposal.request(attempt=1, store=..., nonce=...)  # the Decision Request of one attempt
    proposal.objection(record, key, scope_hash)        # why a record does not permit the action, or None

Equal arguments always result in the same intent and the same request.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import MAX_REQUEST_VALUES, MAX_SAFE_INTEGER, parse
from gate.errors import FieldError, MaterialRefused, RequestRefused
from gate.labels import BINDING_ADAPTER, BINDING_DIRECT, EVALUATOR, OUTPUT_MATERIAL
from gate.records.envelope import action_binding

if TYPE_CHECKING:
    from gate.client.api.types import DecisionRecord
    from gate.records.documents import DecisionBody

GUARD: Final = "guard"
"""The field of the context in which the guard sends its intent, attempt and store."""

_LARGEST: Final = 1024 * 1024
# The most that the guard's own member adds to a request.
_GUARD_BYTES: Final = 512
_GUARD_VALUES: Final = 6
_LONGEST: Final = 2000
_LONGEST_BINDING: Final = 64 * 1024
_REPEATED: Final = "actor, subject, amount and currency"
_REFERENCE: Final = frozenset({"rulebook_id", "version", "hash"})
_AdapterName: TypeAlias = Literal["adapter_id", "version", "manifest_hash"]
_NAMES_ADAPTER: Final[tuple[_AdapterName, ...]] = ("adapter_id", "version", "manifest_hash")
_INVOCATION: Final = frozenset({*_NAMES_ADAPTER, "input"})
_OWN: Final = frozenset({"inputs", "requested_action", "target_system", "target_object_id", "mutation", GUARD})


class Target(NamedTuple):
    """The object that an action changes.

    Attributes:
        system: The system. The action binding has it as `system`.
        object_id: The object in the system. The action binding has it as `resource`.
        mutation: The change, in your own terms. The action binding omits it if it is empty.
    """

    system: str
    object_id: str
    mutation: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action that a caller wants to do once, and that the gate decides.

    Attributes:
        intent_id: The id of the intent: `int_` and 64 hex digits.
        body: The Decision Request without the guard's own field.
        body_hash: H(body).
        target: The object that the action changes.
        binding: The action binding that a record must have.
        rulebook: The values that the record must have, if the caller stated them: `rulebook_id`, `version`, `hash`.
        actions: The action labels that a yes may have.
    """

    intent_id: str
    body: DecisionBody
    body_hash: str
    target: Target
    binding: Mapping[str, object]
    rulebook: Mapping[str, str]
    actions: frozenset[str]

    def request(self, *, attempt: int, store: str, nonce: str, question: int | None = None) -> bytes:
        """The Decision Request of one attempt, as the guard sends it.

        It contains the attempt and the store that holds the intent. The service therefore answers only one store under
        an idempotency key: any other store gets a conflict, and the action does not begin twice. The unique nonce does
        the same for a store that lost its data.

        Args:
            attempt: The number of the attempt.
            store: The identity of the store.
            nonce: A random text that no other request has.
            question: The number that `question_of` returns. Default: the number of the attempt.
        """
        guard = {
            "intent_id": self.intent_id,
            **numbered(attempt, attempt if question is None else question),
            "store": store,
            "nonce": nonce,
        }
        return canonical({**self.body, "context": {**self.body["context"], GUARD: guard}})

    def objection(self, record: DecisionRecord, idempotency_key: str, scope_hash: str | None) -> str | None:
        """Why a verified record is not about this action, or None if it is.

        Args:
            record: A record that verifies with the request that was sent.
            idempotency_key: The idempotency key of that request.
            scope_hash: The scope that must decide, or None for any.
        """
        # First of all: an advisory record never authorizes anything.
        if record.get("evaluator_version") != EVALUATOR or "decision_contract" in record:
            return "it is advisory and authorizes nothing; ask in mode rulebook"
        if scope_hash is not None and record["rulebook_registry"].get("scope_hash") != scope_hash:
            return "it was made in another scope"
        if record.get("idempotency_key") != idempotency_key:
            return "it was made under another idempotency key"
        if canonical(record["action_binding"]) != canonical(self.binding):
            return "its action_binding is not that of the action you asked for"
        decided = {
            "rulebook_id": record["policy_id"],
            "version": record["policy_version"],
            "hash": record["policy_hash"],
        }
        for name, value in self.rulebook.items():
            if decided[name] != value:
                return f"it was decided by a rulebook with {name} {decided[name]}, but you asked for {value}"
        return self._objection_to_facts(record)

    def _objection_to_facts(self, record: DecisionRecord) -> str | None:
        """Why a record was not decided on the given facts or on those of the given adapter, or None if it was.

        The guard has already verified that the record results from the request and is consistent about its adapter.
        This check compares it with the caller's arguments, in case the service signs something else.
        """
        asked, named = self.body.get("adapter"), record.get("trusted_adapter")
        binding = record["runtime_binding"].get("binding_mode")
        if asked is None:
            if binding == BINDING_DIRECT and named is None and "adapter_facts" not in record:
                return None
            return "it says that an adapter computed its facts, but you passed the facts yourself"
        if binding != BINDING_ADAPTER or not isinstance(named, Mapping):
            return f"no adapter computed its facts, but you asked for {asked['adapter_id']}@{asked['version']}"
        for name in _NAMES_ADAPTER:
            if named.get(name) != asked[name]:
                return f"the {name} of its adapter is {named.get(name)}, but you asked for {asked[name]}"
        if named.get("input_hash") != content_hash(asked["input"]):
            return "its adapter got a different input from yours"
        if named.get("output_hash") != content_hash(record.get("adapter_facts")):
            return "its facts are not the ones that its adapter computed"
        return None

    def approves(self, record: DecisionRecord) -> bool:
        """Whether a yes permits this action, because a rulebook may approve a different action."""
        return record["action"] in self.actions


def idempotency_key(intent_id: str, number: int) -> str:
    """The idempotency key of an attempt. It is stable, so a retry after a crash finds the earlier decision.

    Args:
        intent_id: The id of the intent.
        number: The number of the attempt for reports, or the number of its question for requests.
    """
    return f"guard-{intent_id}-{number}"


def numbered(attempt: int, question: int) -> dict[str, int]:
    """The numbers of an attempt and its question, as the guard's field contains them."""
    return {"attempt": attempt} if question == attempt else {"attempt": attempt, "question": question}


def question_of(attempt: int, request: Mapping[str, object]) -> int:
    """The number of an attempt's question: the attempt's own number, unless its request states another one.

    If the service refused to decide a request, its number stays unused, and the next attempt uses it again. If the
    number were skipped, another store could use it, and both stores would be permitted.
    """
    context = request.get("context")
    guard = context.get(GUARD) if isinstance(context, Mapping) else None
    said = guard.get("question") if isinstance(guard, Mapping) else None
    return said if isinstance(said, int) else attempt


def propose(
    rulebook: str | Mapping[str, object],
    facts: Mapping[str, object] | None = None,
    *,
    adapter: Mapping[str, object] | None = None,
    action: str,
    target: Target | tuple[str, ...],
    intent: str | None = None,
    context: Mapping[str, object] | None = None,
    outcome_action: str | Collection[str] | None = None,
) -> Proposal:
    """The action of a guard, from the arguments of `Client.guard`.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`: an argument is invalid; `errors` names it.
        MaterialRefused: `SVC_API_JSON_INVALID`: a fact or the adapter's input is not a JSON value, and `errors` names
            it; or the values are nested too deeply, or are too many.
    """
    for name, value in (("action", action), ("intent", intent)):
        if not isinstance(value, str) and not (name == "intent" and value is None):
            raise _unusable(name, "It must be a string.")
    if not action:
        raise _unusable("action", "It must not be empty: name the action.")
    if intent == "":
        raise _unusable("intent", "It must not be empty; leave it out if the action happens once per target.")
    if not isinstance(context, Mapping | None):
        raise _unusable("context", "It must be a mapping from names to JSON values.")
    changed = _target(target)
    named_rulebook, policy = _policy(rulebook)
    said: dict[str, object] = dict(context or {})
    if taken := sorted(said.keys() & (_OWN | OUTPUT_MATERIAL)):
        raise _unusable(
            f"context.{taken[0]}",
            "The guard sets it itself, or only a response may contain it; remove it from context.",
        )
    require_one_source(facts, adapter)
    if facts is not None and not isinstance(facts, Mapping):
        raise _unusable("facts", "It must be a mapping from names to JSON values.")
    said |= {
        "requested_action": action,
        "target_system": changed.system,
        "target_object_id": changed.object_id,
        **({"mutation": changed.mutation} if changed.mutation else {}),
        **({} if facts is None else {"inputs": dict(facts)}),
    }
    made_by = {} if adapter is None else {"adapter": _invocation(adapter)}
    written = _written({"mode": "rulebook", **policy, **made_by, "context": said}, said)
    # A copy, so that the caller's later changes do not change the request.
    body: DecisionBody = parse(written, max_values=MAX_REQUEST_VALUES - _GUARD_VALUES)
    binding = action_binding(body["context"])
    _require_reportable(binding)
    named = {"policy": named_rulebook["rulebook_id"], "action": action, "target": list(changed), "intent": intent}
    return Proposal(
        intent_id=f"int_{content_hash(named)}",
        body=body,
        body_hash=sha256(written).hexdigest(),
        target=changed,
        binding=binding,
        rulebook=named_rulebook,
        actions=_actions(action if outcome_action is None else outcome_action),
    )


def require_one_source(facts: object, adapter: object) -> None:
    """Requires that facts come from one source: the caller or an adapter.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`.
    """
    if facts is None and adapter is None:
        raise _unusable("facts", "There are no facts; pass facts, or adapter= to let an adapter compute them.")
    if facts is not None and adapter is not None:
        raise _unusable("adapter", "Facts come from one source; remove either adapter or facts.")


def _invocation(adapter: Mapping[str, object]) -> dict[str, object]:
    if not isinstance(adapter, Mapping) or adapter.keys() != _INVOCATION:
        raise _unusable("adapter", "It must be {adapter_id, version, manifest_hash, input}, and nothing else.")
    for name in _NAMES_ADAPTER:
        if not isinstance(adapter[name], str):
            raise _unusable(f"adapter.{name}", "It must be a string, as list_trusted_adapters() shows it.")
    if not isinstance(adapter["input"], Mapping):
        raise _unusable("adapter.input", "It must be a mapping from names to JSON values.")
    return {**adapter, "input": dict(adapter["input"])}


def _require_reportable(binding: Mapping[str, object]) -> None:
    """Requires that the service will accept the execution receipt, which repeats the binding: after the action, a
    refusal would be too late.
    """
    # Its patterns take a while to make.
    from gate.encoding.credentials import credentials

    if len(canonical(binding)) > _LONGEST_BINDING:
        raise _unusable(
            "context",
            f"The receipt repeats {_REPEATED}; together they may have at most {_LONGEST_BINDING} bytes.",
        )
    for fault in credentials(binding):
        name, _, inner = fault.field.partition(".")
        given = {"system": "target", "resource": "target", "mutation": "target", "proposed_action": "action"}
        path = given.get(name) or ".".join(filter(None, ("context", name, inner)))
        raise _unusable(
            path, "It looks like a credential, which a receipt must not contain; remove it, or pass its id."
        )


def _written(body: Mapping[str, object], context: Mapping[str, object]) -> bytes:
    """The canonical bytes of a request that the service can read with the guard's field in it. If the service cannot
    read a request, it cannot say whether another store asked for the intent; so the guard stores no such request.
    """
    try:
        written = canonical(body)
    except MaterialRefused as error:
        said = {name: value for name, value in context.items() if name not in _OWN}
        asked = (
            ("facts", context.get("inputs")),
            ("adapter", body.get("adapter")),
            ("context", said),
            ("rulebook", body.get("rulebook")),
        )
        # Too deep nesting is reported as such.
        with suppress(RecursionError):
            for path, why in chain.from_iterable(_faults(field, value) for field, value in asked):
                fault = FieldError(path, "invalid", why)
                raise MaterialRefused(error.code, f"The guard cannot ask about {path}: {why}", [fault]) from error
        raise
    if len(written) > _LARGEST - _GUARD_BYTES:
        made_of = "adapter.input" if "adapter" in body else "facts"
        raise _unusable(made_of, f"A request has at most {_LARGEST} bytes; refer to large data by id.")
    return written


def _faults(path: str, value: object) -> Iterator[tuple[str, str]]:
    """The parts of a value that are not JSON: where, and why."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _faults(path, name) if isinstance(name, str) else [(path, f"Its name {name!r} is not a string.")]
            yield from _faults(f"{path}.{name}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(f"{path}[{index}]", item)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, "A number must be finite."
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_SAFE_INTEGER:
        yield path, "An integer must be within 2^53-1; pass a string."
    elif isinstance(value, str) and value.encode("utf-8", "ignore").decode() != value:
        yield path, "It contains half of a surrogate pair, which UTF-8 cannot encode."
    elif not isinstance(value, str | int | float | None):
        yield path, f"A {type(value).__name__} is not a JSON value; pass a number, string, list or dict."


def _actions(expected: str | Collection[str]) -> frozenset[str]:
    listed = [expected] if isinstance(expected, str) else expected
    if not isinstance(listed, Collection) or not listed or not all(isinstance(each, str) and each for each in listed):
        raise _unusable("outcome_action", "It must be an action label, or a non-empty collection of them.")
    return frozenset(listed)


def _target(target: Target | tuple[str, ...]) -> Target:
    try:
        changed = Target(*target)
    except TypeError as error:
        raise _unusable("target", "It must be (system, object id) or Target(system, object_id, mutation).") from error
    if isinstance(target, str) or not all(isinstance(part, str) for part in changed):
        raise _unusable("target", "Its parts must be strings: (system, object id), such as ('crm', 'deal-1042').")
    if any(len(part) > _LONGEST for part in changed):
        raise _unusable("target", f"Its parts have at most {_LONGEST} characters; refer to the object by its id.")
    if not changed.system or not changed.object_id:
        raise _unusable("target", "It needs a system and an object id; the decision is valid only for this object.")
    return changed


def _policy(rulebook: str | Mapping[str, object]) -> tuple[dict[str, str], dict[str, object]]:
    """The stated values of a rulebook, among them its id, and the field of the request with the rulebook.

    Only the id is part of the intent: a retry with the next version must not be another intent.
    """
    if isinstance(rulebook, str):
        rulebook_id, separator, version = rulebook.partition("@")
        if not rulebook_id or (separator and not version):
            raise _unusable(
                "rulebook", "Write a reference in text as rulebook_id@version, or as rulebook_id alone for its route."
            )
        rulebook = {"rulebook_id": rulebook_id, "version": version} if separator else {"rulebook_id": rulebook_id}
    if not isinstance(rulebook, Mapping):
        raise _unusable("rulebook", "It must be rulebook_id@version, rulebook_id, a reference, or a rulebook.")
    named_id = rulebook.get("rulebook_id")
    if not isinstance(named_id, str):
        raise _unusable("rulebook", "It has no rulebook_id, which is part of the intent; add it.")
    if "rules" in rulebook:
        return {"rulebook_id": named_id}, {"rulebook": dict(rulebook)}
    members = dict(rulebook)
    if not members.keys() <= _REFERENCE:
        raise _unusable("rulebook", "A reference has only a rulebook_id, and optionally a version and a hash.")
    named = {name: value for name, value in members.items() if isinstance(value, str)}
    if len(named) < len(members):
        raise _unusable("rulebook", "The fields of a reference must be strings.")
    # The service takes a hash alone; that it is the rulebook of that id and version is seen by the record.
    reference = {"hash": named["hash"]} if "hash" in named else named
    return named, {"rulebook_ref": reference}


def _unusable(field: str, message: str) -> RequestRefused:
    return RequestRefused(
        "SVC_API_REQUEST_INVALID",
        f"The guard cannot ask about this action; correct {field}: {message}",
        [FieldError(field, "invalid", message)],
    )
