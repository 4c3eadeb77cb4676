"""The rulebook registry: bound for good, first writer wins, never seen outside its scope."""

from __future__ import annotations

import threading

import pytest

from gate.encoding.canonical import content_hash
from gate.errors import RulebookRefused
from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.rulebooks import OperatorAct
from gate.records.attestation import registration
from gate.records.documents import Registration
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import Rulebook, load
from tests.support.samples import NOW, REGISTRY_SIGNER, ledger_url, sample_rulebook


def metadata(rulebook: Rulebook, scope: Scope) -> Registration:
    return registration(rulebook.reference, scope.scope_id, timestamp(NOW), REGISTRY_SIGNER)


def test_a_rulebook_is_registered_once_and_found_by_hash_and_by_version(ledger: Ledger, scope: Scope) -> None:
    rulebook = load(sample_rulebook())
    registered = ledger.rulebooks.register(scope.scope_id, rulebook, metadata(rulebook, scope))
    later: Registration = {**metadata(rulebook, scope), "registered_at": "2030-01-01T00:00:00.000Z"}
    assert ledger.rulebooks.register(scope.scope_id, rulebook, later) == registered
    assert registered.metadata == metadata(rulebook, scope)
    fresh = open_ledger(ledger_url(ledger))
    for registry in (ledger.rulebooks, fresh.rulebooks):
        assert registry.find(scope.scope_id, rulebook.hash) == registered
        assert registry.find_version(scope.scope_id, "pricing_exception", "2026-06-11") == registered
        assert registry.body(scope.scope_id, rulebook.hash) == sample_rulebook()
    fresh.close()


def test_the_latest_version_is_the_one_registered_last(ledger: Ledger, scope: Scope) -> None:
    def register(version: str, registered_at: str, rulebook_id: str = "pricing_exception") -> None:
        rulebook = load({**sample_rulebook(), "rulebook_id": rulebook_id, "version": version})
        made = registration(rulebook.reference, scope.scope_id, registered_at, REGISTRY_SIGNER)
        ledger.rulebooks.register(scope.scope_id, rulebook, made)

    def latest() -> str | None:
        found = ledger.rulebooks.latest(scope.scope_id, "pricing_exception")
        return None if found is None else found.version

    assert latest() is None
    register("9", "2026-06-11T12:00:00.000Z")
    register("10", "2026-06-11T12:00:00.001Z")
    register("11", "2030-01-01T00:00:00.000Z", "another_rulebook")
    assert latest() == "10"
    # Of two at one moment, the last in code-point order.
    register("\uffff", "2026-06-11T12:00:00.001Z")
    register("\U0001f600", "2026-06-11T12:00:00.001Z")
    assert latest() == "\U0001f600"
    # A clock that was set back does not make an older version the latest.
    register("x", "2026-06-11T11:00:00.000Z")
    assert latest() == "\U0001f600"
    other = ledger.directory.create_scope("other", "starter", NOW)
    assert ledger.rulebooks.latest(other.scope_id, "pricing_exception") is None
    assert ledger.rulebooks.latest(scope.scope_id, "pricing\0exception") is None


def test_versions_are_listed_newest_first_and_bounded(ledger: Ledger, scope: Scope) -> None:
    assert ledger.rulebooks.versions(scope.scope_id, "pricing_exception", limit=3) == []
    for number in range(5):
        rulebook = load({**sample_rulebook(), "version": f"v\u0000{number}"})
        made = registration(rulebook.reference, scope.scope_id, f"2026-06-1{number}T12:00:00.000Z", REGISTRY_SIGNER)
        ledger.rulebooks.register(scope.scope_id, rulebook, made)
    listed = ledger.rulebooks.versions(scope.scope_id, "pricing_exception", limit=3)
    assert listed == ["v\u00004", "v\u00003", "v\u00002"]
    other = ledger.directory.create_scope("other", "starter", NOW)
    assert ledger.rulebooks.versions(other.scope_id, "pricing_exception", limit=3) == []


def test_annotations_are_kept_beside_a_registration_and_replaced_as_the_log_says(ledger: Ledger, scope: Scope) -> None:
    rulebook = load(sample_rulebook())
    act = OperatorAct(scope.name, NOW)
    registered = ledger.rulebooks.register(scope.scope_id, rulebook, metadata(rulebook, scope), act)
    assert ledger.rulebooks.register(scope.scope_id, rulebook, metadata(rulebook, scope), act) == registered
    assert ledger.rulebooks.annotations(scope.scope_id, rulebook.hash) == {}
    first: Annotations = {
        "description": "v\u0000 \U0001f600",
        "rules": {"approve_standard_exception": {"outcome": "x"}},
    }
    second: Annotations = {"description": "y"}
    changed = [
        ledger.rulebooks.annotate(scope.scope_id, rulebook, said, act) for said in (first, first, second, second)
    ]
    assert changed == [True, False, True, False]
    assert ledger.rulebooks.annotations(scope.scope_id, rulebook.hash) == second
    assert ledger.rulebooks.find(scope.scope_id, rulebook.hash) == registered
    other = ledger.directory.create_scope("other", "starter", NOW)
    assert ledger.rulebooks.annotations(other.scope_id, rulebook.hash) == {}
    logged = [entry for entry in ledger.operator_log.latest(9) if entry.action.startswith("rulebook.")]
    reference = {"rulebook_id": "pricing_exception", "version": "2026-06-11", "hash": rulebook.hash}
    assert [(entry.action, entry.subject, entry.details) for entry in logged] == [
        ("rulebook.registered", scope.name, reference),
        ("rulebook.annotated", scope.name, {**reference, "annotations_hash": content_hash(first)}),
        ("rulebook.annotated", scope.name, {**reference, "annotations_hash": content_hash(second)}),
    ]
    assert ledger.operator_log.find_break() is None


def test_an_id_and_version_never_take_another_body(ledger: Ledger, scope: Scope) -> None:
    first = load(sample_rulebook())
    ledger.rulebooks.register(scope.scope_id, first, metadata(first, scope))
    changed = sample_rulebook()
    changed["rules"][0]["condition"]["value"] = 14
    other = load(changed)
    with pytest.raises(RulebookRefused) as refusal:
        ledger.rulebooks.register(scope.scope_id, other, metadata(other, scope))
    assert refusal.value.code == "RULEBOOK_VERSION_CONFLICT"
    assert refusal.value.details == {"hash": other.hash, "registered_hash": first.hash}
    assert ledger.rulebooks.find(scope.scope_id, other.hash) is None


def test_an_equal_body_in_other_spelling_is_the_same_rulebook(ledger: Ledger, scope: Scope) -> None:
    first = load(sample_rulebook())
    ledger.rulebooks.register(scope.scope_id, first, metadata(first, scope))
    respelled = sample_rulebook()
    respelled["rules"][0]["condition"]["value"] = 15.0
    again = load(dict(reversed(respelled.items())))
    assert ledger.rulebooks.register(scope.scope_id, again, metadata(again, scope)).hash == first.hash


def test_a_rulebook_is_never_seen_from_another_scope(ledger: Ledger, scope: Scope) -> None:
    other = ledger.directory.create_scope("other", "starter", NOW)
    rulebook = load(sample_rulebook())
    ledger.rulebooks.register(scope.scope_id, rulebook, metadata(rulebook, scope))
    assert ledger.rulebooks.find(other.scope_id, rulebook.hash) is None
    assert ledger.rulebooks.find_version(other.scope_id, "pricing_exception", "2026-06-11") is None
    assert ledger.rulebooks.body(other.scope_id, rulebook.hash) is None


def test_versions_that_postgresql_text_would_refuse_are_kept(ledger: Ledger, scope: Scope) -> None:
    rulebook = load({**sample_rulebook(), "version": "v\u0000é😀"})
    ledger.rulebooks.register(scope.scope_id, rulebook, metadata(rulebook, scope))
    found = ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "v\u0000é😀")
    assert found is not None
    assert found.version == "v\u0000é😀"


def test_of_two_writers_at_once_the_first_wins(ledger: Ledger, scope: Scope) -> None:
    bodies = []
    for number in range(8):
        body = sample_rulebook()
        body["rules"][0]["condition"]["value"] = number
        bodies.append(load(body))
    outcomes: list[str] = []
    start = threading.Barrier(len(bodies))

    def attempt(rulebook: Rulebook) -> None:
        start.wait()
        try:
            outcomes.append(ledger.rulebooks.register(scope.scope_id, rulebook, metadata(rulebook, scope)).hash)
        except RulebookRefused as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=attempt, args=(rulebook,)) for rulebook in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("RULEBOOK_VERSION_CONFLICT") == 7
    (winner,) = set(outcomes) - {"RULEBOOK_VERSION_CONFLICT"}
    found = ledger.rulebooks.find_version(scope.scope_id, "pricing_exception", "2026-06-11")
    assert found is not None
    assert found.hash == winner
