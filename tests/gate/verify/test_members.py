"""The members of stored documents that nothing covers: an added one is named wherever it stands, and none is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gate.encoding.canonical import content_hash
from gate.records.envelope import envelope
from gate.records.record import Signers
from gate.records.reports.receipts import KINDS, Kind, build
from gate.verify.members import uncovered_members
from gate.verify.reports import uncovered_members as uncovered_members_of_report
from tests.gate.verify.test_record import make_adapter_record, make_erased
from tests.support.receipts import MEMBERS
from tests.support.samples import REPORTS, make_record
from tests.support.tampering import at, places, with_value

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def records() -> list[Any]:
    made = [make_record(), make_adapter_record(), make_record(signers=Signers(None, None), idempotency_key=None)]
    return [*made, make_erased(made[0]), make_erased(made[1])]


@pytest.mark.parametrize("record", records())
def test_a_record_as_it_was_made_has_no_uncovered_member(record: Any) -> None:
    assert uncovered_members(record) == []


def objects(record: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    yield from (path for path in places(record) if isinstance(at(record, path), dict))


@pytest.mark.parametrize("value", ["x", None, {}, False], ids=repr)
@pytest.mark.parametrize("record", [make_record(), make_adapter_record()], ids=["direct", "adapter"])
def test_a_member_added_to_any_object_of_a_record_is_uncovered_or_breaks_a_hash(record: Any, value: Any) -> None:
    missed = []
    for path in objects(record):
        if path[:1] == ("audit_chain",):
            continue
        forged = with_value(record, (*path, "note"), value)
        broken = [
            content_hash(envelope(forged)) != record["record_hash"],
            content_hash(forged["evaluation"]) != content_hash(record["evaluation"]),
            content_hash(forged["policy_bundle"]) != record["policy_bundle_hash"],
            content_hash(forged["rulebook_attestation"]["bundle"]) != record["rulebook_attestation"]["bundle_hash"],
        ]
        if not any(broken) and ".".join([*path, "note"]) not in uncovered_members(forged):
            missed.append(path)
    # An empty fact that is added to adapter_facts leaves record_hash as it is; the attestation's facts hash finds it.
    assert [path for path in missed if path[:1] != ("adapter_facts",)] == []


def test_uncovered_members_are_named_by_their_paths() -> None:
    record = make_record() | {"note": "x", "decision_contract": {}}
    record["integrity"] = {**record["integrity"], "checked": True}
    assert uncovered_members(record) == ["decision_contract", "integrity.checked", "note"]


def made(kind: Kind, sent: Any) -> dict[str, Any]:
    at = "2026-06-11T12:30:47.000Z"
    return {**build(kind, make_record(), sent, f"{kind.id_prefix}_1", idempotency_key="key-1", reported_at=at)}


@each_kind
def test_a_report_as_it_was_made_has_no_uncovered_member(kind: Kind) -> None:
    for sent in (REPORTS[kind.name], MEMBERS[kind.name]["request"]):
        assert uncovered_members_of_report(kind, made(kind, sent)) == []


@each_kind
@pytest.mark.parametrize("value", ["x", None, {}, False], ids=repr)
def test_a_member_that_was_added_to_a_report_is_uncovered(kind: Kind, value: Any) -> None:
    report = made(kind, REPORTS[kind.name])
    assert uncovered_members_of_report(kind, {**report, "note": value}) == ["note"]
    # Its hash leaves out what is empty, so that it covers a member of its own as little.
    assert uncovered_members_of_report(kind, {**report, "evidence_refs": []}) == ["evidence_refs"]
