"""Replay: a stored decision made again, and held against what was stored.

    historical    by the rulebook, the request and the registration that the record cites, and the evaluator it names
    current       over the same facts, or another request, by what the scope has registered by now

The function that makes every record also makes a replayed one, with the ids, dates, and attestation of the stored
record, so that its hashes compare. A replayed record has no receipt signature, no place in the chain, and no
confidence. It proves and authorizes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict, cast

from gate.encoding.canonical import content_hash, is_plain
from gate.encoding.shapes import shape, to_mend
from gate.encoding.strict_json import JsonObject
from gate.errors import LineageMismatch, RequestRefused
from gate.labels import BINDING_ADAPTER, BINDING_DIRECT, EVALUATOR, HISTORICAL_REPLAY
from gate.records.documents import DecisionBody, Record, Registration, RulebookAttestation
from gate.records.envelope import envelope
from gate.records.record import RULEBOOK_SCHEMA_HASH, Identity, Signers, build_record
from gate.records.request import DecisionRequest, accepted_request
from gate.records.views import project
from gate.rulebooks.documents import TrustedAdapter
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook

HISTORICAL: Final = "historical"
CURRENT: Final = "current"
REPLAY_MODES: Final = (HISTORICAL, CURRENT)
"""What a replay can be held against; the first where the caller names none."""

COMPARED_FIELDS: Final = ("verdict", "evidence", "record_hash", "policy_bundle_hash")

EVALUATORS: Final[Mapping[str, str]] = {EVALUATOR: RULEBOOK_SCHEMA_HASH}
"""The evaluators that this release has, each with the hash of the Rulebook v1 schema that it is frozen with."""

_UNSIGNED: Final = Signers(receipt=None, registry=None)


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A body of `POST .../replay` or `.../diff`.

    Attributes:
        mode: historical or current.
        input: A whole Decision Request to decide instead of the stored one, not yet read; None for the stored one.
        view: The view that the body asks for, if it does.
    """

    mode: str
    input: Mapping[str, object] | None
    view: str | None


class _ReplayBody(TypedDict, total=False):
    """A body that `schemas/replay-request.schema.json` lets pass."""

    replay_mode: str
    input: JsonObject
    response_view: str


def read_replay(body: object, modes: Sequence[str] = REPLAY_MODES) -> ReplayRequest:
    """Reads a parsed body; {} asks for the default.

    Args:
        body: The parsed JSON value.
        modes: The modes that the endpoint takes, its default first.

    Raises:
        RequestRefused: `SVC_API_REQUEST_INVALID`, `REPLAY_MODE_INVALID` or `REPLAY_INPUT_OVERRIDE_FORBIDDEN`.
    """
    if errors := shape("replay-request").errors(body):
        raise RequestRefused("SVC_API_REQUEST_INVALID", to_mend("The body is not a Replay Request", errors), errors)
    asked = cast("_ReplayBody", body)
    mode = asked.get("replay_mode", modes[0])
    if mode not in modes:
        raise RequestRefused(
            "REPLAY_MODE_INVALID",
            "This endpoint does not support that replay_mode; leave it out, or use one of supported_replay_modes.",
            details={"supported_replay_modes": list(modes)},
        )
    if mode == HISTORICAL and "input" in asked:
        raise RequestRefused(
            "REPLAY_INPUT_OVERRIDE_FORBIDDEN",
            "A historical replay uses the stored request only; remove input, or use replay_mode current.",
        )
    return ReplayRequest(mode, asked.get("input"), asked.get("response_view"))


@dataclass(frozen=True, slots=True)
class Lineage:
    """The sources that a stored record cites.

    Attributes:
        identity: Its ids and date.
        policy_id: Its rulebook's id.
        policy_hash: Its rulebook's hash.
        input_hash: The hash of its request.
        facts_hash: The hash of its facts.
        registration: The registration that it cites.
        schema_url: Where its contract's schema was published.
        attestation: Its rulebook attestation.
        evaluators: The evaluator versions that it names: as a whole, in its contract and in its registration.
        schema_hash: The hash of its contract's schema.
        binding_mode: Where its facts came from.
        trusted_adapter: The invocation that its facts came from; None where its request carried them.
        adapter_facts: The facts that came of it; None where there are none, or where they were erased.
    """

    identity: Identity
    policy_id: str
    policy_hash: str
    input_hash: str
    facts_hash: str
    registration: Registration
    schema_url: str
    attestation: RulebookAttestation
    evaluators: frozenset[str]
    schema_hash: str
    binding_mode: str
    trusted_adapter: TrustedAdapter | None
    adapter_facts: Mapping[str, object] | None


def lineage_of(record: Record) -> Lineage:
    """Returns the sources that a record cites.

    Raises:
        LineageMismatch: The record is not as it was made.
    """
    try:
        if record["record_hash"] != content_hash(envelope(record)):
            raise mismatch("the stored record does not match its record_hash")
        contract, registration = record["rulebook_contract"], record["rulebook_registry"]
        return Lineage(
            identity=Identity(
                record["decision_id"], record["request_id"], record.get("idempotency_key"), record["created_at"]
            ),
            policy_id=record["policy_id"],
            policy_hash=record["policy_hash"],
            input_hash=record["input_hash"],
            facts_hash=record["rulebook_attestation"]["bundle"]["input_hash"],
            registration=registration,
            schema_url=contract["schema_url"],
            attestation=record["rulebook_attestation"],
            evaluators=frozenset(
                (record["evaluator_version"], contract["evaluator_version"], registration["evaluator_version"])
            ),
            schema_hash=contract["schema_hash"],
            binding_mode=record["runtime_binding"]["binding_mode"],
            trusted_adapter=record.get("trusted_adapter"),
            adapter_facts=record.get("adapter_facts"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise mismatch("the stored record lacks required fields") from error


def require_evaluator(lineage: Lineage) -> None:
    """Requires that a record was made by an evaluator of this release.

    Raises:
        LineageMismatch: It was made by another one.
    """
    if len(lineage.evaluators) != 1 or not lineage.evaluators <= EVALUATORS.keys():
        named = ", ".join(sorted(lineage.evaluators))
        raise mismatch(f"the record lists the evaluator {named}, and this release has {', '.join(EVALUATORS)}")
    (evaluator,) = lineage.evaluators
    if lineage.schema_hash != EVALUATORS[evaluator]:
        raise mismatch(f"the record cites another Rulebook v1 schema than the one of {evaluator}")


def request_again(lineage: Lineage, body: DecisionBody) -> DecisionRequest:
    """The stored request of a record, as it was accepted: today's checks do not judge it again.

    Raises:
        LineageMismatch: It is not the request that was decided, or the record does not say where its facts came from.
    """
    told = BINDING_DIRECT if lineage.trusted_adapter is None else BINDING_ADAPTER
    if lineage.binding_mode != told or (lineage.trusted_adapter is None) != ("adapter" not in body):
        raise mismatch("the record and its request cite different adapters")
    plain = is_plain(body)
    if content_hash(body, plain=plain) != lineage.input_hash:
        raise mismatch("the stored request does not match the record's input_hash")
    return accepted_request(body, lineage.input_hash, plain=plain)


def require_original_facts(lineage: Lineage, facts: Facts) -> None:
    """Requires that facts are those that were decided over, and that they came from where these came from.

    Raises:
        LineageMismatch: They are not.
    """
    if content_hash(facts.values, plain=facts.plain) != lineage.facts_hash:
        where = "the stored facts do" if facts.trusted_adapter is None else "the facts that the adapter computes now do"
        raise mismatch(f"{where} not hash to the input_hash of the record's attestation")
    if facts.trusted_adapter != lineage.trusted_adapter:
        raise mismatch("the adapter invocation in the request differs from the one in the record")


def require_original_rulebook(lineage: Lineage, rulebook: object) -> None:
    """Requires that a rulebook is the one that decided.

    Args:
        lineage: What the record says.
        rulebook: The stored body of the rulebook; None where there is none.

    Raises:
        LineageMismatch: It is not.
    """
    if rulebook is None or content_hash(rulebook) != lineage.policy_hash:
        raise mismatch("no stored rulebook matches the record's policy_hash")


def mismatch(what: str) -> LineageMismatch:
    """The refusal of a decision whose lineage does not lead back; `what` is wrong with it, as a clause."""
    return LineageMismatch(
        "REPLAY_LINEAGE_MISMATCH",
        f"The decision cannot be replayed: {what}. The operator must run `gate chain check`.",
    )


def decide_again(
    lineage: Lineage, request: DecisionRequest, facts: Facts, rulebook: Rulebook, registration: Registration
) -> Record:
    """The record that a decision would be.

    Args:
        lineage: What the stored record says; its ids and dates are taken over.
        request: The request to decide.
        facts: The facts to decide over.
        rulebook: The rulebook to decide by.
        registration: The registration of that rulebook, with registry_attestation.
    """
    return build_record(
        request,
        rulebook,
        registration,
        facts,
        rulebook.evaluator.explain(facts.values),
        lineage.identity,
        _UNSIGNED,
        schema_url=lineage.schema_url,
        earlier=lineage.attestation,
    )


class _Contract(TypedDict, total=False):
    """The contract that a historical replay names."""

    replay_contract: str


class ReplaySummary(_Contract):
    """The answer of a replay; `drift` has {field, stored, replayed} for each compared field that differs."""

    decision_id: str
    replay_against: str
    compared_fields: list[str]
    replay_status: str
    drift: list[dict[str, object]]
    decision: Mapping[str, object]


def summary(stored: Record, replayed: Record, mode: str, view: str) -> ReplaySummary:
    """The answer of a replay.

    Args:
        stored: The stored record.
        replayed: The record as `decide_again` made it.
        mode: historical or current.
        view: `minimal`, `standard`, or `full`.
    """
    contract: _Contract = {"replay_contract": HISTORICAL_REPLAY} if mode == HISTORICAL else {}
    drift = differences(stored, replayed, COMPARED_FIELDS, "replayed")
    return {
        "decision_id": stored["decision_id"],
        **contract,
        "replay_against": mode,
        "compared_fields": list(COMPARED_FIELDS),
        "replay_status": "drifted" if drift else "matched",
        "drift": drift,
        "decision": project(replayed, view),
    }


def differences(
    stored: Mapping[str, object], other: Mapping[str, object], names: Sequence[str], called: str
) -> list[dict[str, object]]:
    """Where two records differ: {field, stored, <called>} for each of the named members that does."""
    return [
        {"field": name, "stored": stored.get(name), called: other.get(name)}
        for name in names
        if stored.get(name) != other.get(name)
    ]
