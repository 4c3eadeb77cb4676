"""gate review: owners are named, held decisions listed and shown, and an approver resolves them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from api.cli.output import minute
from gate.clock import utc_now
from gate.ids import parse_timestamp, timestamp
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.chain.reviews import Terms
from gate.ledger.reviews import OpenGrants
from gate.records.reports.receipts import EXECUTIONS
from gate.verify.resolution import verify_resolution
from tests.support.command_line import run_gate
from tests.support.samples import GRANT, HELD, sample_request

Gate = Callable[..., "CompletedProcess[str]"]
PASSWORD = "correct horse battery"


@pytest.fixture
def opened(home: Path) -> Iterator[Instance]:
    with closing(open_instance(load_settings(home))) as instance:
        scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
        for name, role in (("maya", "approver"), ("ben", "author")):
            user = instance.ledger.users.add(name, PASSWORD, [scope], role, None, utc_now())
            token, _ = instance.ledger.users.begin_session(user, timedelta(hours=1), utc_now())
            (home.parent / f"{name}.token").write_text(token)
        yield instance


@pytest.fixture
def gate(home: Path, opened: Instance) -> Gate:
    return lambda *arguments: run_gate("review", *arguments, "--home", str(home))


def hold(instance: Instance, **inputs: Any) -> Any:
    """A held decision's record."""
    scope = instance.ledger.directory.scope("acme")
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    authority = instance.ledger.directory.authenticate(key, utc_now())
    return instance.gate().decide(authority, sample_request(**(inputs or HELD)), request_id="req_1").record


def printed(done: CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(done: CompletedProcess[str], code: str) -> str:
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert f"({code})" in done.stderr
    return done.stderr


def test_owners_are_set_listed_and_removed(gate: Gate, opened: Instance) -> None:
    assert "There are no owners" in gate("owners", "list", "--scope", "acme").stdout
    said = gate("owners", "set", "--scope", "acme", "--owner", "refund desk", "--within", "2d").stdout
    assert said == (
        "refund desk answers every review without a more specific row within 2d. A grant is valid for 1d.\n"
    )
    own = ("--rulebook", "pricing_exception", "--action", "route_to_owner")
    set_ = printed(
        gate("owners", "set", "--scope", "acme", "--owner", "desk", *own, "--grant-for", "90m", "--reassign", "--json")
    )
    assert {name: set_[name] for name in ("owner", "within_seconds", "grant_seconds", "reassigned")} == {
        "owner": "desk",
        "within_seconds": None,
        "grant_seconds": 5400,
        "reassigned": 0,
    }
    listed = printed(gate("owners", "list", "--scope", "acme", "--json"))["owners"]
    assert [(each["rulebook_id"], each["action"], each["owner"]) for each in listed] == [
        (None, None, "refund desk"),
        ("pricing_exception", "route_to_owner", "desk"),
    ]
    shown = gate("owners", "list", "--scope", "acme").stdout
    assert "1h 30m" in shown
    assert "(all others)" in shown
    assert gate("owners", "remove", "--scope", "acme", *own).returncode == 0
    refused(gate("owners", "remove", "--scope", "acme", *own), "REVIEW_OWNER_UNKNOWN")
    actions = [entry.action for entry in opened.ledger.operator_log.latest(20)]
    assert actions.count("review.owner_set") == 2
    assert actions.count("review.owner_removed") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--owner", "desk", "--within", "4"], "USAGE_INVALID"),
        (["--owner", "desk", "--within", "0h"], "USAGE_INVALID"),
        (["--owner", "desk", "--grant-for", "one day"], "USAGE_INVALID"),
        (["--owner", "desk", "--within", "400d"], "REVIEW_OWNER_INVALID"),
        (["--owner", " "], "REVIEW_OWNER_INVALID"),
        (["--owner", "desk\x1b[31m"], "REVIEW_OWNER_INVALID"),
        (["--owner", "desk", "--action", "refund"], "REVIEW_OWNER_INVALID"),
    ],
)
def test_an_owner_that_cannot_be_set_is_refused(gate: Gate, arguments: list[str], code: str) -> None:
    refused(gate("owners", "set", "--scope", "acme", *arguments), code)


def test_a_held_decision_is_listed_shown_and_granted_by_an_approver(gate: Gate, opened: Instance, home: Path) -> None:
    assert gate("list", "--scope", "acme").stdout == "No review is held.\n"
    assert gate("owners", "set", "--scope", "acme", "--owner", "desk", "--within", "4h").returncode == 0
    record = hold(opened)
    decision_id = record["decision_id"]
    (listed,) = printed(gate("list", "--scope", "acme", "--json"))["reviews"]
    assert (listed["decision_id"], listed["state"], listed["owner"]) == (decision_id, "held", "desk")
    shown = gate("show", decision_id, "--scope", "acme").stdout
    assert "Proposed action: approve_discount on crm deal-1042" in shown
    assert "The rulebook sends the case to route_to_owner, the action of its outcome;" in shown
    assert "Held for desk, until " in shown
    assert "the fact is 40" in shown
    assert "The proposed action waits until somebody grants it." in shown
    assert "do not perform it" not in shown
    token = ("--token-file", str(home.parent / "maya.token"))
    told = ("--note", "Agreed with sales.", "--evidence", "ticket-1", "--record-hash", record["record_hash"])
    granted = printed(gate("grant", decision_id, "--scope", "acme", *token, *told, "--json"))
    assert (granted["resolution"], granted["actor"], granted["resolved_by"]) == (
        "granted",
        {"type": "user", "id": "maya"},
        "maya",
    )
    assert verify_resolution(granted, record, opened.trust()).verified
    after = gate("show", decision_id, "--scope", "acme").stdout
    assert "Granted at " in after
    assert "by user maya." in after
    assert "Agreed with sales." in after
    assert "SVC_RESOLUTION_FINAL" in gate("refuse", decision_id, "--scope", "acme", *token).stderr
    (found,) = printed(gate("list", "--scope", "acme", "--state", "granted", "--json"))["reviews"]
    assert (found["decision_id"], found["grant_ends_at"]) == (decision_id, granted["expires_at"])
    assert listed["grant_ends_at"] is None
    assert "waits until somebody" not in after
    assert "gate review show DECISION_ID --scope acme" in gate("list", "--scope", "acme", "--state", "granted").stdout


def test_who_rotates_or_compromises_a_signing_key_reads_that_grants_are_open(
    gate: Gate, opened: Instance, home: Path
) -> None:
    def changed(*arguments: str) -> str:
        done = run_gate("signing-keys", *arguments, "--home", str(home))
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert changed("rotate") == ""
    token = ("--token-file", str(home.parent / "maya.token"))
    granted = [
        printed(gate("grant", hold(opened)["decision_id"], "--scope", "acme", *token, "--json")) for _ in range(2)
    ]
    until = granted[1]["expires_at"][:16].replace("T", " ")
    assert changed("rotate", "--purpose", "registry") == ""
    said = changed("rotate")
    assert said.startswith(f"2 unused grants of held actions are open until {until} UTC at the latest. ")
    assert said.endswith("Those actions then need a new review.\n")
    shown = gate("show", granted[0]["decision_id"], "--scope", "acme").stdout
    assert f"WARNING: The key {granted[0]['key_id']} was retired after it signed the grant, so" in shown
    assert "The caller may act until" not in shown
    # The key before: the grants that the active one made are open, save those whose record the old one signed.
    assert changed("compromise", granted[0]["key_id"], "--yes") == (
        "2 unused grants of held actions have not ended. If this key signed such a grant or its record, the grant "
        "opens nothing from now on, and its caller must ask again with a different `intent`.\n"
    )
    active = opened.receipt_keys.registry().active_key_id
    assert active is not None
    assert changed("compromise", active, "--yes") == (
        "2 unused grants of held actions open nothing from now on. Each caller must ask again with a different "
        "`intent`.\n"
    )


def test_where_the_key_of_the_record_is_compromised_a_grant_is_said_to_open_nothing(
    gate: Gate, opened: Instance, home: Path
) -> None:
    records = [hold(opened) for _ in range(2)]
    token = ("--token-file", str(home.parent / "maya.token"))
    before, held = (record["decision_id"] for record in records)
    assert "The caller may act until" in gate("grant", before, "--scope", "acme", *token).stdout
    key_id = records[0]["receipt_key_id"]
    shut = (
        f"WARNING: The key {key_id} is compromised, and it signed the record, so a grant permits nothing. The "
        f"caller must ask again with a different `intent`."
    )
    assert shut not in gate("show", held, "--scope", "acme").stdout
    assert run_gate("signing-keys", "compromise", key_id, "--yes", "--home", str(home)).returncode == 0
    for decision_id in (before, held):
        shown = gate("show", decision_id, "--scope", "acme").stdout
        assert shut in shown
        assert "The caller may act until" not in shown
        assert "gate review grant" not in shown
    assert f"Close it: gate review refuse {held} --scope acme" in gate("show", held, "--scope", "acme").stdout
    granted = gate("grant", held, "--scope", "acme", *token).stdout
    assert shut in granted
    assert "The caller may act until" not in granted
    # What is decided from now on is signed with the new key.
    after = hold(opened)["decision_id"]
    assert "gate review grant" in gate("show", after, "--scope", "acme").stdout
    assert "WARNING" not in gate("grant", after, "--scope", "acme", *token).stdout


@pytest.mark.parametrize("minutes", [-1, 1])
def test_a_grant_is_open_until_it_ends(gate: Gate, opened: Instance, home: Path, minutes: int) -> None:
    assert gate("owners", "set", "--scope", "acme", "--owner", "desk", "--grant-for", "2h").returncode == 0
    token = ("--token-file", str(home.parent / "maya.token"))
    decision_id = hold(opened)["decision_id"]
    ends = printed(gate("grant", decision_id, "--scope", "acme", *token, "--json"))["expires_at"]
    now = parse_timestamp(ends) - timedelta(minutes=minutes)
    expected = OpenGrants(1, ends) if minutes > 0 else OpenGrants(0, None)
    assert opened.ledger.reviews.open_grants(now) == expected


def test_a_grant_that_ended_is_told_from_one_that_is_open(gate: Gate, opened: Instance) -> None:
    scope, approver = opened.ledger.directory.scope("acme"), opened.ledger.users.user("maya")
    ends = []
    for seconds in (1, 86_400):
        opened.ledger.review_owners.set(scope, "", "", Terms("desk", None, seconds), utc_now())
        found = opened.resolutions().resolve_as(approver, scope, hold(opened)["decision_id"], "granted")
        ends.append(found["expires_at"])
    while timestamp(utc_now()) < ends[0]:
        time.sleep(0.05)
    shown = gate("list", "--scope", "acme", "--state", "granted").stdout
    assert f"ended {minute(ends[0])}" in shown
    assert f"until {minute(ends[1])}" in shown


def test_an_action_that_was_executed_without_an_answer_is_told_to_who_answers(gate: Gate, opened: Instance) -> None:
    record = hold(opened)
    show = ("show", record["decision_id"], "--scope", "acme")
    assert "WARNING" not in gate(*show).stdout
    scope = opened.ledger.directory.scope("acme")
    key, _ = opened.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    authority = opened.ledger.directory.authenticate(key, utc_now())
    for status in ("executed", "reviewed"):
        opened.lifecycle().report(authority, EXECUTIONS, record["decision_id"], {"execution_status": status})
    shown = gate(*show).stdout
    assert "WARNING: the action was reported as executed at " in shown
    assert f"Answer: gate review grant {record['decision_id']} --scope acme" in shown


def test_an_executed_receipt_with_flags_is_told_behind_a_grant_and_leaves_it_open(gate: Gate, opened: Instance) -> None:
    decision_id = hold(opened)["decision_id"]
    scope = opened.ledger.directory.scope("acme")
    directory, accesses = opened.ledger.directory, (FULL_ACCESS, frozenset({"resolve"}))
    keys = [directory.create_key(scope, access, None, utc_now())[0] for access in accesses]
    caller, owner = (directory.authenticate(key, utc_now()) for key in keys)
    opened.resolutions().resolve(owner, decision_id, GRANT)
    show = ("show", decision_id, "--scope", "acme")
    assert "WARNING" not in gate(*show).stdout
    other = {"execution_status": "executed", "target_object_id": "something-else"}
    opened.lifecycle().report(caller, EXECUTIONS, decision_id, other)
    shown = gate(*show).stdout
    assert "a receipt with flags reported an execution" in shown
    assert "The caller may act until" in shown
    opened.lifecycle().report(caller, EXECUTIONS, decision_id, {"execution_status": "executed"})
    shown = gate(*show).stdout
    assert "The action was executed after that." in shown
    assert "WARNING" not in shown


def test_receipts_that_break_a_grant_are_told_though_its_state_is_executed(gate: Gate, opened: Instance) -> None:
    directory = opened.ledger.directory
    scope, approver = directory.scope("acme"), opened.ledger.users.user("maya")
    key, _ = directory.create_key(scope, FULL_ACCESS, None, utc_now())
    caller = directory.authenticate(key, utc_now())
    late, other = (hold(opened)["decision_id"] for _ in range(2))
    granted = [opened.resolutions().resolve_as(approver, scope, each, "granted") for each in (late, other)]
    ends_at = granted[0]["expires_at"]
    executed_at = timestamp(parse_timestamp(ends_at) + timedelta(minutes=6, seconds=30))
    lifecycle = opened.lifecycle(lambda: utc_now() + timedelta(days=2))
    lifecycle.report(caller, EXECUTIONS, late, {"execution_status": "executed", "executed_at": executed_at})
    another = {"execution_status": "executed", "action_taken": "delete_the_deal"}
    opened.lifecycle().report(caller, EXECUTIONS, other, another)
    shown = gate("show", late, "--scope", "acme").stdout
    assert "The action was executed after that." in shown
    assert (
        f"WARNING: A receipt is dated {minute(executed_at)} UTC, more than 5 minutes after the grant ended "
        f"({minute(ends_at)} UTC)."
    ) in shown
    assert f"To read the receipts: GET /api/decision/{late}/execution\n" in shown
    shown = gate("show", other, "--scope", "acme").stdout
    assert 'WARNING: A receipt states a different action from the granted one: "delete_the_deal".' in shown
    assert "more than 5 minutes" not in shown


def test_only_an_approver_who_signs_in_resolves(gate: Gate, opened: Instance, home: Path) -> None:
    record = hold(opened)
    author = ("--token-file", str(home.parent / "ben.token"))
    said = refused(gate("grant", record["decision_id"], "--scope", "acme", *author), "REVIEW_FORBIDDEN")
    assert "gate users grant ben --scope acme --role approver" in said
    refused(gate("grant", record["decision_id"], "--scope", "acme"), "USAGE_INVALID")
    token = ("--token-file", str(home.parent / "maya.token"))
    for answer in ("grant", "refuse"):
        both = gate(answer, record["decision_id"], "--scope", "acme", "--user", "maya", *token)
        assert "--token-file FILE of a session, not both." in refused(both, "USAGE_INVALID")
    another = ("--record-hash", "0" * 64)
    refused(gate("grant", record["decision_id"], "--scope", "acme", *token, *another), "SVC_RESOLUTION_RECORD_MISMATCH")
    approved = hold(opened, discount_percent=10, margin_percent=22)
    refused(gate("refuse", approved["decision_id"], "--scope", "acme", *token), "SVC_RESOLUTION_NOT_HELD")
    refused(gate("grant", "dec_0", "--scope", "acme", *token), "SVC_DECISION_NOT_FOUND")
    done = gate("refuse", record["decision_id"], "--scope", "acme", *token, "--note", "No budget.")
    assert done.stdout.startswith("Refused at ")
