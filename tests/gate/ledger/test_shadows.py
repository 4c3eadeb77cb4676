"""Shadows in a real ledger: who starts and stops them and when, what ends them, and whose findings are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gate.clock import utc_now
from gate.errors import AccessForbidden, GateError, OperatorError
from gate.instance.audit import check_chain
from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.shadows import Shadow
from gate.migration.standing import Standing
from tests.support.migrations import Desk, candidate, desk, user
from tests.support.samples import sample_request


@pytest.fixture
def at(instance: Instance, scope: Scope) -> Desk:
    """The desk of an author and an approver."""
    return desk(instance, scope)


def refusal(attempt: Callable[[], object]) -> GateError:
    with pytest.raises(GateError) as refused:
        attempt()
    return refused.value


def start(at: Desk, migration_id: str) -> Shadow:
    return at.acts.start_shadow(at.scope, at.author, migration_id)


def running(at: Desk) -> list[str]:
    return list(at.migrations.shadows(at.scope))


def logged(at: Desk) -> list[tuple[int, str, str, str]]:
    """What the operator log has of shadows, the latest last."""
    entries = [entry for entry in at.instance.ledger.operator_log.latest(50) if "shadow" in entry.action]
    return sorted((entry.position, entry.action, entry.subject, str(entry.details["by"])) for entry in entries)


def found_of(of: Standing, decisions: int) -> dict[str, Any]:
    figures = {"pricing_exception": {"decisions": decisions}}
    return {"evidence_hash": of.evidence_hash, "read_at": {"chain_position": decisions}, "rulebooks": figures}


def test_a_shadow_runs_from_the_next_decision_until_it_is_stopped(
    instance: Instance, authority: Authority, scope: Scope, at: Desk
) -> None:
    instance.gate().decide(authority, sample_request(), request_id="req_0")
    proposed = at.propose("prices_1", candidate("1"))
    size = instance.ledger.entries.head(scope.scope_id).size
    shadow = start(at, "prices_1")
    assert (shadow.migration_id, shadow.started_by, shadow.from_position) == ("prices_1", "ada", size)
    assert (shadow.found, shadow.found_at, shadow.failure) == (None, None, None)
    assert at.migrations.shadows(scope) == {"prices_1": shadow}
    assert instance.ledger.shadows.running() == [shadow]
    # It decides nothing, so that the chain has nothing of it.
    assert instance.ledger.entries.head(scope.scope_id).size == size
    assert check_chain(instance, scope.scope_id)[1] is None

    instance.ledger.shadows.keep(shadow, found_of(proposed, 7), utc_now())
    at.approve(proposed)
    stopped = at.acts.stop_shadow(scope, at.approver, "prices_1")
    assert stopped.found == found_of(proposed, 7)
    assert running(at) == []
    assert [entry[1:] for entry in logged(at)] == [
        ("migration.shadow_started", "prices_1", "ada"),
        ("migration.shadow_stopped", "prices_1", "ben"),
    ]
    assert instance.ledger.operator_log.find_break() is None


def test_what_cannot_be_done_with_a_shadow_is_told(at: Desk, scope: Scope) -> None:
    at.propose("prices_1", candidate("1"))
    assert refusal(lambda: start(at, "prices_9")).code == "MIGRATION_UNKNOWN"
    stop = lambda: at.acts.stop_shadow(scope, at.author, "prices_1")  # noqa: E731
    assert refusal(stop).code == "SHADOW_NOT_RUNNING"
    assert refusal(lambda: at.acts.stop_shadow(scope, at.author, "prices_9")).code == "MIGRATION_UNKNOWN"
    start(at, "prices_1")
    error = refusal(lambda: start(at, "prices_1"))
    assert (error.code, "ada started it" in error.message) == ("SHADOW_RUNNING", True)
    viewer = user("eve", scope, "viewer")
    for attempt in (at.acts.start_shadow, at.acts.stop_shadow):
        error = refusal(lambda attempt=attempt: attempt(scope, viewer, "prices_1"))  # type: ignore[misc]
        assert (type(error), error.code) == (AccessForbidden, "MIGRATION_FORBIDDEN")
    assert running(at) == ["prices_1"]


def test_a_migration_without_a_rulebook_has_no_shadow(at: Desk) -> None:
    at.propose("release_1")
    assert refusal(lambda: start(at, "release_1")).code == "MIGRATION_WITHOUT_ROUTE"


def test_applying_rejecting_and_superseding_end_a_shadow(at: Desk, scope: Scope) -> None:
    for number in (1, 2, 3):
        at.propose(f"prices_{number}", candidate(str(number)))
        start(at, f"prices_{number}")
    at.acts.reject(scope, at.approver, "prices_1", "")
    assert running(at) == ["prices_2", "prices_3"]
    standing = at.migrations.standing(scope, "prices_2")
    assert standing is not None
    at.approve(standing)
    assert running(at) == ["prices_2", "prices_3"]
    at.acts.apply(scope, at.author, "prices_2", "")
    assert running(at) == []
    for number in (1, 2, 3):
        assert refusal(lambda number=number: start(at, f"prices_{number}")).code == "MIGRATION_NOT_OPEN"  # type: ignore[misc]
    assert sorted(entry[2] for entry in logged(at) if entry[1] == "migration.shadow_stopped") == [
        "prices_1",
        "prices_2",
        "prices_3",
    ]


def test_a_new_proposal_leaves_its_shadow_running_without_what_it_found_before(at: Desk, scope: Scope) -> None:
    proposed = at.propose("prices_1", candidate("1"))
    shadow = start(at, "prices_1")
    ledger = at.instance.ledger
    ledger.shadows.keep(shadow, found_of(proposed, 7), utc_now())
    again = at.propose("prices_1", candidate("2"))
    assert at.migrations.shadows(scope) == {"prices_1": shadow}
    # A look that began before the new proposal ends after it.
    ledger.shadows.keep(shadow, found_of(proposed, 8), utc_now())
    assert at.migrations.shadows(scope)["prices_1"].found is None
    ledger.shadows.keep(shadow, found_of(again, 9), utc_now())
    assert at.migrations.shadows(scope)["prices_1"].found == found_of(again, 9)


def test_a_look_that_ends_after_its_shadow_was_started_anew_is_not_kept(at: Desk, scope: Scope) -> None:
    proposed = at.propose("prices_1", candidate("1"))
    shadow = start(at, "prices_1")
    earlier = replace(shadow, started_at="2026-06-11T12:00:00.000Z")
    at.instance.ledger.shadows.keep(earlier, found_of(proposed, 7), utc_now())
    at.instance.ledger.shadows.fail(earlier, "It failed.")
    assert at.migrations.shadows(scope) == {"prices_1": shadow}
    at.acts.stop_shadow(scope, at.author, "prices_1")
    at.instance.ledger.shadows.keep(shadow, found_of(proposed, 7), utc_now())
    assert running(at) == []


def test_a_lake_that_lags_does_not_replace_what_one_found_that_is_further_on(at: Desk, scope: Scope) -> None:
    proposed = at.propose("prices_1", candidate("1"))
    shadow = start(at, "prices_1")
    ledger = at.instance.ledger
    for decisions, kept in ((7, 7), (5, 7), (7, 7), (8, 8)):
        ledger.shadows.keep(shadow, found_of(proposed, decisions), utc_now())
        assert at.migrations.shadows(scope)["prices_1"].found == found_of(proposed, kept)


def test_why_a_look_failed_is_kept_beside_what_was_found_until_one_succeeds(at: Desk, scope: Scope) -> None:
    proposed = at.propose("prices_1", candidate("1"))
    shadow = start(at, "prices_1")
    ledger = at.instance.ledger
    ledger.shadows.keep(shadow, found_of(proposed, 7), utc_now())
    ledger.shadows.fail(shadow, "The lake is Grüße.")
    failed = at.migrations.shadows(scope)["prices_1"]
    assert (failed.failure, failed.found) == ("The lake is Grüße.", found_of(proposed, 7))
    assert failed.to_dict()["rulebooks"] == {"pricing_exception": {"decisions": 7}}
    ledger.shadows.keep(shadow, found_of(proposed, 8), utc_now())
    assert at.migrations.shadows(scope)["prices_1"].failure is None


def test_shadows_of_one_scope_are_no_other_scopes(at: Desk, instance: Instance) -> None:
    at.propose("prices_1", candidate("1"))
    start(at, "prices_1")
    other = desk(instance, instance.ledger.directory.create_scope("other", "team", utc_now()))
    assert running(other) == []
    assert refusal(lambda: start(other, "prices_1")).code == "MIGRATION_UNKNOWN"
    with pytest.raises(OperatorError):
        other.acts.stop_shadow(other.scope, other.author, "prices_1")
    assert running(at) == ["prices_1"]
