"""Whether what a service answers is what the contract says: the comparison alone, without the asking.

    for check in checks():
        answer = ...                                  # send check.request to a service
        check.deviations(answer, trust)               # [] where it conforms

    document_deviations(name, document, answer)       # the same for what a service publishes

An expectation lists the fields that count. An object must have at least those fields, an array must have as many items,
each as listed, and any other value must have equal canonical JSON. So a service may add fields (compatibility rule 4),
but not change or remove them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gate.contract.published import (
    Fixture,
    FixtureExpectation,
    FixtureRequest,
    GoldenCase,
    Published,
    fixtures,
    golden_cases,
    published,
)
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import Json, JsonObject, parse_document
from gate.errors import MaterialRefused
from gate.labels import EVALUATOR, RECORD, RULEBOOK_SCHEMA
from gate.proof.signing import ED25519, KeyRegistry
from gate.verify import Trust, Verification, verify_record


class _Absent:
    __slots__ = ()

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
"""Stands for a member that is not there, or should not be."""

_LONGEST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something in an answer that is not as the contract says.

    Attributes:
        check: The check, for example `replay/operators.eq.absent`.
        member: The member of the answer, as a dotted path; or `status`, `body`, `hash`, `verification`.
        expected: What it should be; ABSENT where it should not be there.
        actual: Its value; ABSENT if it is missing.
    """

    check: str
    member: str
    expected: object
    actual: object

    def sentence(self) -> str:
        """The deviation for a person."""
        return f"{self.check}: {self.member} should be {_shown(self.expected)}, but is {_shown(self.actual)}."

    def to_dict(self) -> dict[str, object]:
        """The deviation as `{check, member, expected?, actual?}`, without absent values."""
        values = {"expected": self.expected, "actual": self.actual}
        shown = {name: value for name, value in values.items() if value is not ABSENT}
        return {"check": self.check, "member": self.member, **shown}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered.

    Attributes:
        status: The HTTP status; None where what came was no HTTP.
        content: The bytes of the body.
    """

    status: int | None
    content: bytes

    def json(self) -> Json | _Absent:
        """The body's JSON value, or ABSENT where the body is no JSON that the protocol admits."""
        try:
            value: Json = parse_document(self.content)
        except MaterialRefused:
            return ABSENT
        return value

    def shown(self) -> str:
        """The beginning of the body as text."""
        return self.content[:_LONGEST_SHOWN].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Check:
    """A request to a service, and what must come of it.

    Attributes:
        name: `conformance/<fixture_id>` or `replay/<case_id>`.
        request: {method, path, headers, body}.
        expected: The expectation `{status, body, absent}`, as in `conformance-fixture.schema.json`.
        bundle_hash: What the bundle of the record's attestation must hash to; None where that is not frozen.
    """

    name: str
    request: FixtureRequest
    expected: FixtureExpectation
    bundle_hash: str | None = None

    def deviations(self, answer: Answer, trust: Trust) -> list[Deviation]:
        """The deviations; empty if the service conforms.

        Args:
            answer: What the service answered.
            trust: The keys that the service publishes. A record must verify against them.
        """
        body = answer.json()
        if answer.status != self.expected["status"]:
            return [Deviation(self.name, "status", self.expected["status"], _said(answer, body))]
        if not isinstance(body, dict):
            return [Deviation(self.name, "body", "a JSON object", answer.shown())]
        found = [
            Deviation(self.name, path, expected, actual)
            for path, expected, actual in _differences("", self.expected["body"], body)
        ]
        found += [Deviation(self.name, name, ABSENT, body[name]) for name in self.expected["absent"] if name in body]
        if self.bundle_hash is not None:
            found += self._bundle_deviations(body)
        if "decision_record_version" in self.expected["body"]:
            found += self._record_deviations(body, trust)
        return found

    def _bundle_deviations(self, body: JsonObject) -> Iterator[Deviation]:
        attestation = body.get("rulebook_attestation")
        bundle = attestation.get("bundle") if isinstance(attestation, dict) else None
        if (recomputed := content_hash(bundle)) != self.bundle_hash:
            yield Deviation(self.name, "H(rulebook_attestation.bundle)", self.bundle_hash, recomputed)

    def _record_deviations(self, record: JsonObject, trust: Trust) -> Iterator[Deviation]:
        result = verify_record(record, trust, request_body=self.request["body"])
        if not result.integrity_valid or (not result.verified and _must_be_signed(result, record, trust)):
            yield Deviation(self.name, "verification", "verified", result.message)
        elif _signs(trust.attestation_keys) and result.checks["attestation_signature"] is not True:
            yield Deviation(self.name, "rulebook_attestation.signature", "by a key that is published", ABSENT)


def checks() -> list[Check]:
    """Every fixture, then every golden case, in the order of their indexes."""
    return [*map(_fixture_check, fixtures()), *map(_golden_check, golden_cases())]


def document_deviations(name: str, document: Published, answer: Answer) -> list[Deviation]:
    """Whether a service publishes a document of the contract as it is here.

    Args:
        name: The name of the document in a deviation.
        document: The document as it is here.
        answer: What the service answered where it should publish it.
    """
    body = answer.json()
    if answer.status != 200:
        return [Deviation(name, "status", 200, _said(answer, body))]
    if body is ABSENT:
        return [Deviation(name, "body", "JSON", answer.shown())]
    if (hash_ := content_hash(body)) != document.hash:
        return [Deviation(name, "hash", document.hash, hash_)]
    return []


def _fixture_check(fixture: Fixture) -> Check:
    return Check(f"conformance/{fixture['fixture_id']}", fixture["request"], fixture["expected"])


def _golden_check(golden: GoldenCase) -> Check:
    case, frozen = golden.case, golden.case["frozen"]
    expected = case["expected"]
    of_evaluation = ("missing_fields", "invalid_fields", "evaluated_rules")
    evaluation: dict[str, object] = {
        "missing_fields": expected["missing_fields"],
        "invalid_fields": expected["invalid_fields"],
    }
    if "evaluated_rules" in expected:
        evaluation["rules"] = [{"rule_id": rule_id} for rule_id in expected["evaluated_rules"]]
    body: dict[str, object] = {
        "decision_record_version": RECORD,
        **{name: value for name, value in expected.items() if name not in of_evaluation},
        "evaluation": evaluation,
        "evaluator_version": EVALUATOR,
        "rulebook": {
            "schema_version": RULEBOOK_SCHEMA,
            "id": case["rulebook"]["rulebook_id"],
            "version": case["rulebook"]["version"],
            "hash": frozen["rulebook_hash"],
        },
        "rulebook_contract": {"schema_hash": published()["/schemas/rulebook-v1.schema.json"].hash},
        "rulebook_attestation": {"bundle": {"input_hash": frozen["input_hash"]}, "bundle_hash": frozen["bundle_hash"]},
    }
    if "adapter" in case:
        body |= {"trusted_adapter": frozen["trusted_adapter"], "adapter_facts": case["adapter_facts"]}
    return Check(
        name=f"replay/{case['case_id']}",
        request={
            "method": "POST",
            "path": "/api/decide",
            "headers": {"content-type": "application/json", "x-decision-response-view": "full"},
            "body": golden.request(),
        },
        expected={"status": 200, "body": body, "absent": ["error", "decision_contract"]},
        bundle_hash=frozen["bundle_hash"],
    )


def _differences(path: str, expected: object, actual: object) -> Iterator[tuple[str, object, object]]:
    """Where an answer lacks what is expected of it: the path, what it should be, and what it is."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name, value in expected.items():
            yield from _differences(f"{path}.{name}" if path else name, value, actual.get(name, ABSENT))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(f"{path}[{index}]", wanted, found)
    elif actual is ABSENT or canonical(expected) != canonical(actual):
        yield path, expected, actual


def _must_be_signed(result: Verification, record: JsonObject, trust: Trust) -> bool:
    """Whether a record that a published key does not verify should have been.

    A service may sign with a shared secret, or not at all, by its operator's choice; then it publishes no active key.
    """
    return _signs(trust.receipt_keys) or record.get("receipt_signature_algorithm") == ED25519


def _signs(keys: KeyRegistry | None) -> bool:
    return keys is not None and keys.active_key_id is not None


def _said(answer: Answer, body: object) -> object:
    """The status that came, with the code and message of an error."""
    if answer.status is None:
        return f"no HTTP: {answer.shown()}"
    if isinstance(body, dict) and "error" in body:
        return f"{answer.status} {body['error']}: {body.get('message')}"
    return answer.status


def _shown(value: object) -> str:
    text = repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
