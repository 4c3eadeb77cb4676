"""The answer of the sandbox: the members of a Decision Record, for somebody who has no key yet, and no record.

A request is checked and evaluated as `POST /api/decide` does both. Its answer leaves out all that binds: signatures,
the registration, the place in the chain, the addresses of a stored decision. What is left cannot be verified, however
it is dressed up: `record_hash` and `receipt_hash` cover the version `decision_sandbox_v1`, so that neither holds under
another one, and nothing is signed.

    request = read_sandbox_request(body, now)
    answer = sandbox_answer(request, load(request.rulebook, root="rulebook"), identity, schema_url)
    show(answer, "minimal")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from gate.encoding.canonical import content_hash, is_plain
from gate.errors import FieldError, RequestRefused
from gate.labels import SANDBOX
from gate.records.attestation import registration
from gate.records.envelope import envelope, input_material, receipt_material
from gate.records.record import Identity, Signers, build_record
from gate.records.request import DecisionRequest, read_request
from gate.records.views import project
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook

NOTICE: Final = (
    "This is an answer of the sandbox and no Decision Record: it is not signed, not stored and cannot be verified. It "
    "authorizes nothing."
)
"""Stands in every answer, in every view."""

_WITHHELD: Final = frozenset(
    {
        "registry_attestation",
        "rulebook_registry",
        "decision_url",
        "replay_url",
        "verify_url",
    }
)
_UNSIGNED: Final = Signers(receipt=None, registry=None)
_ELSEWHERE: Final = "send the request to POST /api/decide, with a key."


def read_sandbox_request(body: object, now: datetime) -> DecisionRequest:
    """Reads the parsed body of a Decision Request that the sandbox can answer; `now` is the service's clock.

    Raises:
        RequestRefused: As `read_request`; or SANDBOX_REQUEST_UNSUPPORTED, where the request needs what only the real
            endpoint has.
    """
    plain = is_plain(body)
    request = read_request(body, content_hash(input_material(body), plain=plain), now=now, plain=plain)
    for name, why in _beyond(request):
        message = f"{why} Change {name}, or {_ELSEWHERE}"
        raise RequestRefused("SANDBOX_REQUEST_UNSUPPORTED", message, [FieldError(name, "sandbox", why)])
    return request


def _beyond(request: DecisionRequest) -> Iterator[tuple[str, str]]:
    """The members of a request that the sandbox cannot answer, each with the reason."""
    if request.mode != "rulebook":
        yield (
            "mode",
            f"The sandbox answers mode rulebook alone, and mode {request.mode} is advisory.",
        )
    if request.rulebook_ref is not None:
        yield "rulebook_ref", "The sandbox has no registry, so that it needs the whole rulebook in rulebook."
    if request.adapter is not None:
        yield "adapter", "The sandbox runs no adapter, so that it needs the facts in context.inputs."


def sandbox_answer(
    request: DecisionRequest, rulebook: Rulebook, identity: Identity, schema_url: str
) -> dict[str, object]:
    """The answer in full.

    Args:
        request: The request that is answered.
        rulebook: The rulebook that it brings.
        identity: The answer's ids and date.
        schema_url: Where the Rulebook v1 schema is published.
    """
    facts = Facts(request.inputs, request.plain)
    # As a record has it, so that both are built alike; it is withheld, because nothing was registered.
    registered = registration(rulebook.reference, "", identity.created_at, None)
    explained = rulebook.evaluator.explain(facts.values)
    record = build_record(request, rulebook, registered, facts, explained, identity, _UNSIGNED, schema_url=schema_url)
    answer: dict[str, object] = {name: value for name, value in record.items() if name not in _WITHHELD}
    answer["decision_record_version"] = SANDBOX
    answer["record_hash"] = content_hash(envelope(answer))
    answer["receipt_hash"] = content_hash(receipt_material(answer))
    return answer


def show(answer: Mapping[str, object], view: str) -> dict[str, object]:
    """The answer as a view shows it, marked as the sandbox's.

    Args:
        answer: The answer in full.
        view: minimal, standard or full.
    """
    marks: dict[str, object] = {"decision_record_version": SANDBOX, "sandbox": True, "notice": NOTICE}
    return marks | project(answer, view)
