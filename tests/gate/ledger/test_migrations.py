"""Migrations over a real ledger: who may do what and when, the routes that decide, and the audit of it all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from sqlalchemy import text, update

from gate.adapters.registry import registered
from gate.clock import utc_now
from gate.decisions.migrations.acts import MigrationActs
from gate.decisions.migrations.reading import Migrations
from gate.encoding.canonical import content_hash
from gate.errors import AccessForbidden, GateError, RulebookRefused
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.packing import pack, unpack
from gate.ledger.tables import changes, entries, migration_documents
from gate.records.changes import MIGRATIONS, ROUTES, RouteEntry, entry_hash
from gate.rulebooks.documents import AdapterDependency
from gate.rulebooks.rulebook import load
from tests.support.migrations import Desk, candidate, desk, user
from tests.support.samples import in_threads, sample_request, sample_rulebook

POLICY = "pricing_exception"


@pytest.fixture
def at(instance: Instance, scope: Scope) -> Desk:
    """The desk of an author and an approver."""
    return desk(instance, scope)


def by_route(**inputs: Any) -> dict[str, Any]:
    """A request that names the sample rulebook by its id alone."""
    request = {**sample_request(**inputs), "rulebook_ref": {"rulebook_id": POLICY}}
    del request["rulebook"]
    return request


def decide(instance: Instance, authority: Authority, body: dict[str, Any], **more: Any) -> Any:
    return instance.gate().decide(authority, body, request_id="req_0", **more).record


def refusal(attempt: Callable[[], object]) -> GateError:
    with pytest.raises(GateError) as refused:
        attempt()
    return refused.value


def version(record: Any) -> str:
    return str(record["rulebook"]["version"])


def test_a_rulebook_id_without_a_route_names_no_version(instance: Instance, authority: Authority) -> None:
    decide(instance, authority, sample_request())
    error = refusal(lambda: decide(instance, authority, by_route()))
    assert error.code == "RULEBOOK_REF_UNKNOWN"
    assert error.details == {"registered_versions": ["2026-06-11"]}
    assert "has no route" in error.message


def test_an_applied_migration_decides_and_a_rollback_goes_back(
    instance: Instance, authority: Authority, at: Desk, scope: Scope
) -> None:
    gate = instance.gate()
    facts = {"discount_percent": 10, "margin_percent": 16}
    first = at.route("prices_1", candidate("1"))
    assert (first["from"], first["to"]["version"], first["cause"]) == (None, "1", "apply")

    def decided() -> tuple[str, str]:
        record = gate.decide(authority, by_route(**facts), request_id="req_0").record
        assert record["input_hash"] == gate.decide(authority, by_route(**facts), request_id="r").record["input_hash"]
        return version(record), record["verdict"]

    assert decided() == ("1", "yes")
    at.route("prices_2", candidate("2", 20))
    assert decided() == ("2", "no")
    at.route("prices_3", candidate("3", 10))
    assert decided() == ("3", "yes")
    back = at.acts.rollback(scope, at.approver, POLICY, "too many approvals")
    assert (back["cause"], back["migration_id"], back["note"]) == ("rollback", "prices_2", "too many approvals")
    assert decided() == ("2", "no")
    at.acts.rollback(scope, at.author, POLICY, "")
    assert decided() == ("1", "yes")
    error = refusal(lambda: at.acts.rollback(scope, at.author, POLICY, ""))
    assert (error.code, "the first version applied" in error.message) == ("ROLLBACK_IMPOSSIBLE", True)
    assert refusal(lambda: at.acts.rollback(scope, at.author, "another", "")).code == "ROUTE_UNKNOWN"
    # Forward again only by a migration of its own.
    assert refusal(lambda: at.acts.apply(scope, at.author, "prices_3", "")).code == "MIGRATION_NOT_OPEN"
    at.route("prices_4", candidate("3", 10))
    assert decided() == ("3", "yes")
    causes = [(route["cause"], route["to"]["version"]) for route in at.migrations.routes(scope)[POLICY]]
    assert causes[3:] == [("rollback", "2"), ("rollback", "1"), ("apply", "3")]
    assert check_chain(instance, scope.scope_id)[1] is None
    assert instance.ledger.operator_log.find_break() is None


def test_a_route_holds_at_once_for_a_process_that_remembers_another(
    instance: Instance, authority: Authority, at: Desk, scope: Scope
) -> None:
    elsewhere = instance.gate()
    at.route("prices_1", candidate("1"))
    assert version(elsewhere.decide(authority, by_route(), request_id="req_0").record) == "1"
    at.route("prices_2", candidate("2"))
    assert version(elsewhere.decide(authority, by_route(), request_id="req_0").record) == "2"
    at.acts.rollback(scope, at.approver, POLICY, "")
    again = elsewhere.decide(authority, by_route(), request_id="req_0", idempotency_key="order-1")
    assert version(again.record) == "1"
    at.route("prices_3", candidate("3"))
    # What an idempotency key stands for is not decided again, whatever the route is by now.
    replayed = elsewhere.decide(authority, by_route(), request_id="req_0", idempotency_key="order-1")
    assert (replayed.status, replayed.record) == ("replayed", again.record)


def test_a_refusal_by_a_remembered_route_is_asked_of_the_route_in_force(
    instance: Instance, authority: Authority, at: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = instance.gate()
    at.route("prices_1", candidate("1"))
    elsewhere.decide(authority, by_route(), request_id="req_0")
    at.route("prices_2", candidate("2"))
    registered = elsewhere.sources.registered

    def refusing(scope_id: str, rulebook: Any, dependency: Any) -> Any:
        if rulebook.version == "1":
            raise RulebookRefused("RULEBOOK_VERSION_CONFLICT", "Version 1 takes its facts from elsewhere.")
        return registered(scope_id, rulebook, dependency)

    monkeypatch.setattr(elsewhere.sources, "registered", refusing)
    assert version(elsewhere.decide(authority, by_route(), request_id="req_0").record) == "2"


def test_current_replays_and_counterfactuals_follow_the_route(
    instance: Instance, authority: Authority, at: Desk, scope: Scope, client: Any, key: str
) -> None:
    record = decide(instance, authority, sample_request(discount_percent=10, margin_percent=16))
    at.route("prices_1", candidate("1", 20))
    # Registered last, and yet not what decides.
    later = sample_request()
    later["rulebook"]["version"] = "later"
    decide(instance, authority, later)
    path, headers = f"/api/decision/{record['decision_id']}", {"x-api-key": key}
    replay = client.post(f"{path}/replay", json={"replay_mode": "current"}, headers=headers).get_json()
    assert (version(replay["decision"]), replay["decision"]["verdict"]) == ("1", "no")
    historical = client.post(f"{path}/replay", json={}, headers=headers).get_json()
    assert historical["replay_status"] == "matched"
    asked = {"scenarios": [{"scenario_id": "as_is", "label": "as it is", "context_patch": {}}]}
    found = client.post(f"{path}/counterfactuals", json=asked, headers=headers).get_json()
    assert found["scenarios"][0]["verdict"] == "no"
    routed = decide(instance, authority, by_route())
    at.route("prices_2", candidate("2"))
    replay = client.post(f"/api/decision/{routed['decision_id']}/replay", json={}, headers=headers).get_json()
    assert (replay["replay_status"], version(replay["decision"])) == ("matched", "1")


def test_an_author_proposes_and_another_user_approves(at: Desk, scope: Scope) -> None:
    acts = at.acts
    proposed = at.propose("prices", candidate("1"))
    assert (proposed.state, proposed.author) == ("proposed", "ada")
    viewer, stranger = user("vic", scope, "viewer"), user("sue", scope, None)
    for who in (viewer, stranger, at.approver):
        error = refusal(lambda who=who: acts.propose(scope, who, at.proposal("other", candidate("1")), ""))  # type: ignore[misc]
        assert (type(error), error.code) == (AccessForbidden, "MIGRATION_FORBIDDEN")
    for who in (viewer, stranger, at.author):
        error = refusal(lambda who=who: acts.approve(scope, who, "prices", proposed.evidence_hash, ""))  # type: ignore[misc]
        assert (type(error), error.code) == (AccessForbidden, "MIGRATION_FORBIDDEN")
    for who in (viewer, stranger, user("cy", scope, "author")):
        error = refusal(lambda who=who: acts.reject(scope, who, "prices", ""))  # type: ignore[misc]
        assert error.code == "MIGRATION_FORBIDDEN"
    # The author is still the author where somebody made an approver of them since.
    promoted = user("ada", scope, "approver")
    error = refusal(lambda: acts.approve(scope, promoted, "prices", proposed.evidence_hash, ""))
    assert (error.code, "cannot approve it" in error.message) == ("MIGRATION_FORBIDDEN", True)
    assert refusal(lambda: acts.apply(scope, viewer, "prices", "")).code == "MIGRATION_FORBIDDEN"
    assert refusal(lambda: acts.apply(scope, at.author, "prices", "")).code == "MIGRATION_NOT_APPROVED"
    assert refusal(lambda: acts.approve(scope, at.approver, "prices", "0" * 64, "")).code == "EVIDENCE_MISMATCH"
    approved = at.approve(proposed)
    assert (approved.state, approved.approval and approved.approval["actor"]) == (
        "approved",
        {"type": "user", "id": "ben"},
    )
    assert refusal(lambda: at.approve(proposed)).code == "MIGRATION_NOT_OPEN"
    assert refusal(lambda: acts.approve(scope, at.approver, "none", "0" * 64, "")).code == "MIGRATION_UNKNOWN"


def test_a_setting_lets_authors_approve(instance: Instance, at: Desk, scope: Scope) -> None:
    sources = instance.gate().sources
    proposed = at.propose("prices", candidate("1"))
    release = Migrations(instance.ledger, sources, "0" * 64)
    lenient = MigrationActs(instance.ledger, sources, utc_now, release, self_approval=True)
    assert refusal(lambda: lenient.approve(scope, at.author, "prices", proposed.evidence_hash, "")).code == (
        "EVIDENCE_STALE"
    )
    lenient = MigrationActs(instance.ledger, sources, utc_now, at.migrations, self_approval=True)
    approved = lenient.approve(scope, at.author, "prices", proposed.evidence_hash, "my own")
    assert (approved.state, approved.author) == ("approved", "ada")
    assert refusal(lambda: lenient.approve(scope, user("vic", scope, "viewer"), "prices", "", "")).code == (
        "MIGRATION_FORBIDDEN"
    )


def test_an_author_withdraws_their_own_migration_and_proposes_it_again(at: Desk, scope: Scope) -> None:
    at.approve(at.propose("prices", candidate("1")))
    withdrawn = at.acts.reject(scope, at.author, "prices", "a slip")
    assert (withdrawn.state, withdrawn.decided and withdrawn.decided["actor"]["id"]) == ("rejected", "ada")
    assert refusal(lambda: at.acts.apply(scope, at.approver, "prices", "")).code == "MIGRATION_NOT_OPEN"
    # Who may no longer draft there withdraws nothing either.
    at.propose("prices", candidate("1"))
    dismissed = user("ada", scope, "viewer")
    assert refusal(lambda: at.acts.reject(scope, dismissed, "prices", "")).code == "MIGRATION_FORBIDDEN"


def test_rejected_and_superseded_migrations_can_be_proposed_again_and_applied_ones_not(at: Desk, scope: Scope) -> None:
    at.approve(at.propose("prices", candidate("1")))
    rejected = at.acts.reject(scope, at.approver, "prices", "not yet")
    assert rejected.state == "rejected"
    assert refusal(lambda: at.acts.apply(scope, at.author, "prices", "")).code == "MIGRATION_NOT_OPEN"
    at.propose("prices", candidate("1"))
    other = at.propose("others", candidate("2"))
    at.route("first", candidate("0"))
    states = {found.migration_id: found.state for found in at.migrations.migrations(scope)}
    assert states == {"prices": "superseded", "others": "superseded", "first": "applied"}
    assert refusal(lambda: at.approve(other)).code == "MIGRATION_NOT_OPEN"
    assert at.propose("prices", candidate("1")).state == "proposed"
    assert refusal(lambda: at.propose("first", candidate("0"))).code == "MIGRATION_NOT_OPEN"
    assert check_chain(at.instance, scope.scope_id)[1] is None


def test_stale_evidence_voids_an_approval(instance: Instance, authority: Authority, at: Desk, scope: Scope) -> None:
    for _ in range(20):
        decide(instance, authority, sample_request())
    proposed = at.propose("prices", candidate("1"))
    decide(instance, authority, sample_request())
    at.approve(proposed)
    decide(instance, authority, sample_request())
    error = refusal(lambda: at.acts.apply(scope, at.author, "prices", ""))
    assert error.code == "EVIDENCE_STALE"
    assert "2 decisions of pricing_exception came after the 20 in the evidence" in error.message
    assert "more than the allowed 5%" in error.message
    again = at.propose("prices", candidate("1"))
    assert again.approval is None
    assert refusal(lambda: at.acts.apply(scope, at.author, "prices", "")).code == "MIGRATION_NOT_APPROVED"
    at.route("others", candidate("2"))
    error = refusal(lambda: at.acts.propose(scope, at.author, _of_before(at, again), ""))
    assert (error.code, "its route now leads to 2" in error.message) == ("EVIDENCE_STALE", True)
    changed = at.proposal("prices", candidate("1"))
    changed.evidence["corpus"]["corpus_hash"] = "0" * 64
    error = refusal(lambda: at.acts.propose(scope, at.author, _hashed(changed), ""))
    assert (error.code, "about the corpus 0000" in error.message) == ("EVIDENCE_STALE", True)


def _of_before(at: Desk, standing: Any) -> Any:
    """A proposal with the evidence of before the route changed."""
    proposal = at.proposal("prices", candidate("1"))
    proposal.evidence["rulebooks"][0]["base"] = None
    return _hashed(proposal)


def _hashed(proposal: Any) -> Any:
    rest = {name: value for name, value in proposal.evidence.items() if name != "evidence_hash"}
    return replace(proposal, evidence={**rest, "evidence_hash": content_hash(rest)})


def test_evidence_about_anything_else_is_refused(at: Desk, scope: Scope) -> None:
    def propose(change: Callable[[Any], object], *, hashed: bool = True) -> str:
        proposal = copy.deepcopy(at.proposal("prices", candidate("1")))
        change(proposal)
        return refusal(lambda: at.acts.propose(scope, at.author, _hashed(proposal) if hashed else proposal, "")).code

    assert propose(lambda of: of.evidence.update(manifest_hash="0" * 64)) == "EVIDENCE_INVALID"
    assert propose(lambda of: of.evidence["rulebooks"][0]["candidate"].update(version="2")) == "EVIDENCE_INVALID"
    assert propose(lambda of: of.evidence["rulebooks"].clear()) == "EVIDENCE_INVALID"
    assert propose(lambda of: of.evidence.update(more=1), hashed=False) == "EVIDENCE_INVALID"
    assert propose(lambda of: of.manifest.update(status="approved")) == "MIGRATION_STATUS_INVALID"
    error = refusal(lambda: at.acts.propose(scope, at.author, at.proposal("p", candidate("1")), "x" * 2001))
    assert error.code == "NOTE_INVALID"


def test_a_migration_that_fails_the_gate_cannot_be_approved(at: Desk) -> None:
    for found, told in (
        ({"failures": ["refund_1: expected no, and rule approve_all says yes."]}, "rule approve_all"),
        (
            {"unexpected": [{"fixture": "golden_1", "fields": ["semantic_output"]}]},
            "golden_1 drifts in semantic_output",
        ),
    ):
        error = refusal(lambda found=found: at.approve(at.propose("prices", candidate("1"), **found)))  # type: ignore[misc]
        assert error.code == "MIGRATION_GATE_FAILED"
        assert told in error.message
    nothing = at.proposal("empty", candidate("1"))
    nothing.evidence["rulebooks"][0]["history"] |= {"decisions": 0, "since": "2026-06-01T00:00:00.000Z"}
    proposed = at.acts.propose(at.scope, at.author, _hashed(nothing), "")
    error = refusal(lambda: at.approve(proposed))
    assert (error.code, "so the evidence proves nothing" in error.message) == ("MIGRATION_GATE_FAILED", True)


def test_only_what_is_proved_to_change_nothing_needs_no_approval(at: Desk, scope: Scope) -> None:
    error = refusal(lambda: at.propose("first", candidate("1"), approval="not_required"))
    assert error.code == "MIGRATION_APPROVAL_REQUIRED"
    at.route("first", candidate("1"))
    error = refusal(lambda: at.propose("prices", candidate("2", 20), approval="not_required"))
    assert error.code == "MIGRATION_APPROVAL_REQUIRED"
    at.propose("same", candidate("2"), approval="not_required", equal=True)
    (route,) = at.acts.apply(scope, at.author, "same", "")
    assert (route["approval_hash"], route["to"]["version"]) == (None, "2")
    assert check_chain(at.instance, scope.scope_id)[1] is None


def test_several_rulebooks_are_routed_at_one_moment(at: Desk, scope: Scope, authority: Authority) -> None:
    other = candidate("1", rulebook_id="other_policy")
    at.approve(at.propose("both", candidate("1"), other))
    routes = at.acts.apply(scope, at.author, "both", "")
    assert [route["rulebook_id"] for route in routes] == ["other_policy", POLICY]
    request = {**by_route(), "rulebook_ref": {"rulebook_id": "other_policy"}}
    assert version(decide(at.instance, authority, request)) == "1"


def test_a_candidate_never_rebinds_a_registered_version(
    instance: Instance, authority: Authority, at: Desk, scope: Scope
) -> None:
    decide(instance, authority, sample_request())
    error = refusal(lambda: at.propose("prices", candidate("2026-06-11", 99)))
    assert error.code == "RULEBOOK_VERSION_CONFLICT"
    at.approve(at.propose("prices", candidate("1", 20)))
    taken = sample_request()
    taken["rulebook"]["version"] = "1"
    instance.gate().sources.register(scope.scope_id, candidate("1", 30))
    assert refusal(lambda: at.acts.apply(scope, at.author, "prices", "")).code == "RULEBOOK_VERSION_CONFLICT"
    assert at.migrations.routes(scope) == {}


def test_of_two_approvals_at_once_one_counts(at: Desk, scope: Scope) -> None:
    proposed = at.propose("prices", candidate("1"))
    approvers = [user(f"ben{number}", scope, "approver") for number in range(4)]

    def approve(number: int) -> str:
        try:
            at.acts.approve(scope, approvers[number], "prices", proposed.evidence_hash, "")
        except GateError as error:
            return error.code
        return "approved"

    assert sorted(in_threads(4, approve)) == ["MIGRATION_NOT_OPEN"] * 3 + ["approved"]
    events = [entry["event"] for entry in at.migrations.migration(scope, "prices").entries]
    assert events == ["proposed", "approved"]


def _rewrite(at: Desk, position: int, change: Callable[[Any], object], *, hashed: Any = None) -> None:
    with at.instance.ledger.store.write() as connection:
        where = (entries.c.scope_id == at.scope.scope_id, entries.c.position == position)
        body = orjson.loads(unpack(connection.execute(entries.select().where(*where)).one().body))
        change(body)
        if hashed is not None:
            body[hashed.hash_member] = entry_hash(hashed, body)
        connection.execute(update(entries).where(*where).values(body=pack(orjson.dumps(body))))


def test_tampering_with_any_member_of_a_change_is_found(at: Desk, scope: Scope) -> None:
    at.route("prices", candidate("1"))
    # Positions 1 to 3: proposed, approved, the route.
    for position, kind in ((1, MIGRATIONS), (2, MIGRATIONS), (3, ROUTES)):
        with at.instance.ledger.store.read() as connection:
            where = (entries.c.scope_id == scope.scope_id, entries.c.position == position)
            original = connection.execute(entries.select().where(*where)).one().body
        for name in sorted(kind.members):
            for hashed in (None, kind):
                if (name, hashed) == (kind.hash_member, kind):
                    continue
                _rewrite(at, position, lambda body, name=name: body.update({name: "changed"}), hashed=hashed)  # type: ignore[misc]
                _, finding = check_chain(at.instance, scope.scope_id)
                assert finding is not None, (position, name, hashed)
                assert finding.position == position
                with at.instance.ledger.store.write() as connection:
                    connection.execute(update(entries).where(*where).values(body=original))
        assert check_chain(at.instance, scope.scope_id) == (3, None)


def test_a_route_that_was_changed_decides_nothing(at: Desk, authority: Authority, scope: Scope) -> None:
    at.route("prices_1", candidate("1"))
    at.route("prices_2", candidate("2", 0))
    hash_1 = candidate("1").hash
    _rewrite(at, 6, lambda body: body["to"].update(hash=hash_1, version="1"), hashed=ROUTES)
    error = refusal(lambda: decide(at.instance, authority, by_route()))
    assert (error.code, "route at chain position 6" in error.message) == ("SVC_STORAGE_UNAVAILABLE", True)


def test_rows_and_documents_beside_the_changes_are_held_against_them(
    at: Desk, authority: Authority, scope: Scope
) -> None:
    at.route("prices_1", candidate("1"))
    at.route("prices_2", candidate("2"))
    decide(at.instance, authority, by_route())
    store = at.instance.ledger.store

    def finding_after(statement: Any) -> Any:
        with store.read() as connection:
            kept = {
                table: connection.execute(table.select()).mappings().all() for table in (changes, migration_documents)
            }
        with store.write() as connection:
            connection.execute(statement)
        _, found = check_chain(at.instance, scope.scope_id)
        with store.write() as connection:
            for table, rows in kept.items():
                connection.execute(table.delete())
                connection.execute(table.insert(), [dict(row) for row in rows])
        assert found is not None
        return found

    # Without the last route's row, the route before it would decide.
    found = finding_after(changes.delete().where(changes.c.position == 6))
    assert (found.table, found.position) == ("changes", 6)
    found = finding_after(changes.update().where(changes.c.position == 6).values(subject="another"))
    assert (found.table, found.position) == ("changes", 6)
    row = {"scope_id": scope.scope_id, "entry_type": "route", "subject": POLICY}
    found = finding_after(changes.insert().values(position=7, **row))
    assert (found.table, found.position) == ("changes", 7)
    found = finding_after(changes.insert().values(position=70, **row))
    assert found.table == "changes"
    evidence_hash = at.migrations.migration(scope, "prices_2").standing.evidence_hash
    found = finding_after(migration_documents.delete().where(migration_documents.c.hash == evidence_hash))
    assert "migration_documents lacks" in found.reason
    found = finding_after(
        migration_documents.update().where(migration_documents.c.hash == evidence_hash).values(body=b'{"a":1}')
    )
    assert found.row == evidence_hash
    assert check_chain(at.instance, scope.scope_id) == (7, None)


def test_a_decision_by_a_version_that_was_not_active_is_found(
    at: Desk, authority: Authority, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.route("prices_1", candidate("1"))
    gate = at.instance.gate()
    gate.decide(authority, by_route(), request_id="req_0")
    at.route("prices_2", candidate("2"))
    append = at.instance.ledger.entries.append
    monkeypatch.setattr(at.instance.ledger.entries, "append", lambda entry: append(entry._replace(route_epoch=None)))
    assert version(gate.decide(authority, by_route(), request_id="req_0").record) == "1"
    _, finding = check_chain(at.instance, scope.scope_id)
    assert finding is not None
    assert finding.position == 8
    assert "at this position that route led to another version" in finding.reason


def test_under_load_routes_and_decisions_agree_in_the_order_of_the_chain(
    at: Desk, authority: Authority, scope: Scope
) -> None:
    # Any number of decisions may come between the evidence and the route.
    at = replace(at, max_new_share=1000)
    at.route("prices_0", candidate("0"))
    decide(at.instance, authority, by_route())
    gates = [at.instance.gate() for _ in range(3)]

    def work(number: int) -> list[str]:
        if number == 3:
            for step in range(1, 6):
                at.route(f"prices_{step}", candidate(str(step)))
            at.acts.rollback(scope, at.approver, POLICY, "")
            return []
        return [version(gates[number].decide(authority, by_route(), request_id="req_0").record) for _ in range(40)]

    found = in_threads(4, work)
    assert {of for each in found for of in each} <= {str(step) for step in range(6)}
    size, finding = check_chain(at.instance, scope.scope_id)
    # 3 entries a route; the audit holds each decision against the route at its position.
    assert (size, finding) == (3 + 1 + 15 + 1 + 120, None)


def test_the_audit_finds_routes_that_rest_on_nothing(at: Desk, scope: Scope) -> None:
    """Written with all hashes and links in order, by who can write to the database."""
    at.approve(at.propose("prices", candidate("1")))
    at.acts.apply(scope, at.author, "prices", "")
    (stored,) = at.migrations.routes(scope)[POLICY]

    def finding_of(**changes_: Any) -> str:
        forged: Any = {**stored, "route_entry_id": "rte_forged", "from": stored["to"], **changes_}
        forged["route_hash"] = entry_hash(ROUTES, forged)
        forging = _append(at, forged)
        _, finding = check_chain(at.instance, scope.scope_id)
        _cut(at, forging)
        assert finding is not None
        return finding.reason

    assert "cites an approval that does not come before it" in finding_of(approval_hash="0" * 64)
    assert "cites no approval" in finding_of(approval_hash=None)
    assert "did not propose" in finding_of(migration_id="another")
    assert "did not propose" in finding_of(to={"version": "9", "hash": "9" * 64})
    assert "does not continue from" in finding_of(**{"from": None})
    assert "no earlier apply to return to" in finding_of(cause="rollback")
    assert check_chain(at.instance, scope.scope_id)[1] is None


def _append(at: Desk, forged: RouteEntry) -> Any:
    with at.instance.ledger.store.read() as connection:
        before = connection.execute(text("SELECT * FROM chain_heads")).mappings().all()
    with at.instance.ledger.changes.changing(at.scope.scope_id, at.scope.name, utc_now()) as change:
        change.append(ROUTES, forged)
    return before


def _cut(at: Desk, before: Any) -> None:
    """Takes the last entry away again, as a test may."""
    with at.instance.ledger.store.write() as connection:
        (head,) = before
        for table in (entries, changes):
            connection.execute(table.delete().where(table.c.position > head["chain_size"]))
        values = {name: head[name] for name in ("chain_size", "merkle_root", "link_hash", "route_epoch")}
        connection.execute(
            text(
                "UPDATE chain_heads SET chain_size = :chain_size, merkle_root = :merkle_root, link_hash = :link_hash, "
                "route_epoch = :route_epoch"
            ),
            values,
        )


REFUNDS, SOLANA = (adapter.dependency for adapter in registered())
NEWER: AdapterDependency = {**REFUNDS, "version": "1.1.0", "manifest_hash": "1" * 64}


def bound(at: Desk, rulebook_id: str, number: str, adapter: AdapterDependency | None) -> None:
    """Registers a version whose facts are made by an adapter."""
    rulebook = load({**sample_rulebook(), "rulebook_id": rulebook_id, "version": number})
    at.instance.gate().sources.register_file(at.scope, rulebook, {}, adapter)


def made_by(at: Desk, number: str, *adapters: AdapterDependency) -> AdapterDependency | None:
    """What makes the facts of another version, in a migration that names some adapters."""
    return at.migrations.dependencies(at.scope, [candidate(number)], adapters)[POLICY]


def test_a_first_route_keeps_the_adapter_that_was_registered_last(at: Desk) -> None:
    bound(at, POLICY, "1", SOLANA)
    bound(at, POLICY, "2", REFUNDS)
    # A version registered last without an adapter takes it away from no candidate.
    bound(at, POLICY, "2a", None)
    assert made_by(at, "3") == REFUNDS
    assert made_by(at, "3", NEWER) == NEWER


def test_a_candidate_keeps_the_adapter_of_the_version_in_force(at: Desk) -> None:
    at.route("prices_1", candidate("1"))
    bound(at, POLICY, "2", REFUNDS)
    assert made_by(at, "3") is None
    assert refusal(lambda: made_by(at, "3", REFUNDS)).code == "MIGRATION_ADAPTER_UNCLEAR"


def test_a_version_that_is_registered_keeps_its_adapter(at: Desk) -> None:
    known = candidate("2")
    at.instance.gate().sources.register_file(at.scope, known, {}, REFUNDS)
    assert at.migrations.dependencies(at.scope, [known], [NEWER])[POLICY] == REFUNDS


def test_a_rulebook_of_which_nothing_is_registered_has_the_one_adapter_that_is_named(at: Desk) -> None:
    assert made_by(at, "1") is None
    assert made_by(at, "1", REFUNDS) == REFUNDS
    assert refusal(lambda: made_by(at, "1", REFUNDS, SOLANA)).code == "MIGRATION_ADAPTER_UNCLEAR"
    other = load({**sample_rulebook(), "rulebook_id": "another"})
    both = [candidate("1"), other]
    error = refusal(lambda: at.migrations.dependencies(at.scope, both, [REFUNDS]))
    assert error.code == "MIGRATION_ADAPTER_UNCLEAR"


def test_an_adapter_that_makes_the_facts_of_no_candidate_is_refused(at: Desk) -> None:
    bound(at, POLICY, "1", None)
    error = refusal(lambda: made_by(at, "2", REFUNDS))
    assert error.code == "MIGRATION_ADAPTER_UNCLEAR"
    assert "lists the adapter refund_facts, which none of its rulebooks has used so far." in error.message
    bound(at, POLICY, "2", REFUNDS)
    bound(at, "another", "1", SOLANA)
    other = load({**sample_rulebook(), "rulebook_id": "another", "version": "2"})
    both = [candidate("3"), other]
    assert at.migrations.dependencies(at.scope, both, [NEWER, SOLANA]) == {POLICY: NEWER, "another": SOLANA}
    assert refusal(lambda: made_by(at, "3", NEWER, SOLANA)).code == "MIGRATION_ADAPTER_UNCLEAR"
    assert at.migrations.dependencies(at.scope, [], [SOLANA]) == {}


def test_a_migration_that_was_rolled_back_says_so_and_how_its_candidate_comes_again(at: Desk, scope: Scope) -> None:
    at.route("prices_1", candidate("1"))
    at.route("prices_2", candidate("2", 20))
    back = at.acts.rollback(scope, at.approver, POLICY, "Too strict.")
    first, second = (at.migrations.migration(scope, name) for name in ("prices_1", "prices_2"))
    assert [(route["cause"], route["to"]["version"]) for route in second.routes] == [("apply", "2"), ("rollback", "1")]
    assert [route["cause"] for route in first.routes] == ["apply", "rollback"]
    assert (first.standing.rolled_back, second.standing.rolled_back) == (None, back)
    assert second.standing.sentence().endswith(f"applied, and rolled back by ben at {back['recorded_at']}")
    assert second.standing.state == "rolled_back"
    assert [of.rolled_back for of in at.migrations.migrations(scope)] == [back, None]
    error = refusal(lambda: at.acts.apply(scope, at.author, "prices_2", ""))
    assert (error.code, "propose them in a migration with another id" in error.message) == ("MIGRATION_NOT_OPEN", True)
    at.route("prices_3", candidate("2", 20))
    assert at.migrations.routes(scope)[POLICY][-1]["to"]["version"] == "2"


def test_a_version_that_is_in_force_already_is_not_applied_again(at: Desk, scope: Scope) -> None:
    first, other = candidate("1"), load({**sample_rulebook(), "rulebook_id": "another"})
    at.route("prices_1", first)
    error = refusal(lambda: at.approve(at.propose("again", first)))
    assert (error.code, "already active" in error.message) == ("MIGRATION_GATE_FAILED", True)
    at.approve(at.propose("both", first, other))
    (route,) = at.acts.apply(scope, at.author, "both", "")
    assert route["rulebook_id"] == "another"
    # So a rollback leads to another version, or nowhere.
    assert refusal(lambda: at.acts.rollback(scope, at.approver, POLICY, "")).code == "ROLLBACK_IMPOSSIBLE"


def test_who_makes_the_facts_changes_by_approval_alone(at: Desk, scope: Scope) -> None:
    at.route("prices_1", candidate("1"))
    equal = at.proposal("equal", candidate("2"), approval="not_required", equal=True)
    moved = replace(equal, rulebooks=[replace(of, dependency=REFUNDS) for of in equal.rulebooks])
    error = refusal(lambda: at.acts.propose(scope, at.author, moved, ""))
    assert error.code == "MIGRATION_APPROVAL_REQUIRED"
    assert at.acts.propose(scope, at.author, equal, "").state == "proposed"
