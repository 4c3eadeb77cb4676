"""The response of the sandbox, for people without a key: fields of a Decision Record, but not a record.

The sandbox checks and evaluates a request like `POST /api/decide`. Its response omits signatures, the registration,
the position in the chain, and the addresses of a stored decision. Nobody can turn it into a valid record: it is not
signed, and its hashes cover the version `decision_sandbox_v1`.

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
    "This is a sandbox response, not a Decision Record: it is not signed, not stored and cannot be verified. It "
    "authorizes nothing."
)
"""The notice in every response, in every view."""

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
    """Reads the parsed body of a Decision Request for the sandbox. `now` is the service's clock.

    Raises:
        RequestRefused: As `read_request`; or `SANDBOX_REQUEST_UNSUPPORTED`: the sandbox cannot answer the request.
    """
    plain = is_plain(body)
    request = read_request(body, content_hash(input_material(body), plain=plain), now=now, plain=plain)
    for name, why in _beyond(request):
        message = f"{why} Change {name}, or {_ELSEWHERE}"
        raise RequestRefused("SANDBOX_REQUEST_UNSUPPORTED", message, [FieldError(name, "sandbox", why)])
    return request


def _beyond(request: DecisionRequest) -> Iterator[tuple[str, str]]:
    """The fields of a request that the sandbox does not support, each with the reason."""
    if request.mode != "rulebook":
        yield (
            "mode",
            f"The sandbox supports only mode rulebook, and mode {request.mode} is advisory.",
        )
    if request.rulebook_ref is not None:
        yield "rulebook_ref", "The sandbox has no registry, so it needs the complete rulebook in rulebook."
    if request.adapter is not None:
        yield "adapter", "The sandbox runs no adapters, so it needs the facts in context.inputs."


def sandbox_answer(
    request: DecisionRequest, rulebook: Rulebook, identity: Identity, schema_url: str
) -> dict[str, object]:
    """Builds the full response.

    Args:
        request: The Decision Request.
        rulebook: The rulebook in the request.
        identity: The response's ids and date.
        schema_url: The address of the published Rulebook v1 schema.
    """
    facts = Facts(request.inputs, request.plain)
    # As in a record, so that both are built alike; it is omitted, because nothing was registered.
    registered = registration(rulebook.reference, "", identity.created_at, None)
    explained = rulebook.evaluator.explain(facts.values)
    record = build_record(request, rulebook, registered, facts, explained, identity, _UNSIGNED, schema_url=schema_url)
    answer: dict[str, object] = {name: value for name, value in record.items() if name not in _WITHHELD}
    answer["decision_record_version"] = SANDBOX
    answer["record_hash"] = content_hash(envelope(answer))
    answer["receipt_hash"] = content_hash(receipt_material(answer))
    return answer


def show(answer: Mapping[str, object], view: str) -> dict[str, object]:
    """The response in a view, marked as a sandbox response.

    Args:
        answer: The full response.
        view: `minimal`, `standard` or `full`.
    """
    marks: dict[str, object] = {"decision_record_version": SANDBOX, "sandbox": True, "notice": NOTICE}
    return marks | project(answer, view)
