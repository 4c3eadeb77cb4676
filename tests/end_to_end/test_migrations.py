"""Migrations with real processes: servers that decide while routes move, and commands that are killed."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gate.decisions.stored import stored_record
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from gate.ledger.packing import unpack
from tests.end_to_end.killing import THE_END, Killed, killed_everywhere
from tests.end_to_end.site import Crew, Site, verification, workers_of
from tests.end_to_end.support import post_decide
from tests.support.migrating import FACTS, POLICY, SCOPE, CommandDesk, lay_out, version
from tests.support.processes import forked
from tests.support.samples import sample_request
from tests.support.torture import size


@pytest.fixture(scope="module")
def laid_out_desk(tmp_path_factory: pytest.TempPathFactory) -> CommandDesk:
    """A desk that nobody changes."""
    return lay_out(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk(laid_out_desk: CommandDesk, tmp_path: Path) -> CommandDesk:
    """An author and an approver, and eight decisions."""
    return laid_out_desk.copy(tmp_path / "desk")


def test_requests_by_rulebook_id_go_on_while_routes_move(desk: CommandDesk) -> None:
    """Every request is answered by one version, the one in force at its place in the chain."""
    site = Site(desk.home, None)
    # Any number of decisions may come between the evidence and the route: ten times as many as it saw.
    desk.decide(*FACTS * 9)
    with (desk.home / "settings.toml").open("a") as settings:
        settings.write("\nmigration_stale_percent = 1000\n")
    desk.route(version("1"), "first")
    desk.done("approve", "second", "--evidence", desk.propose(version("2", 20), "second"), by="ben")
    key = (desk.home.parent / "key").read_text()
    request = {**sample_request(discount_percent=10, margin_percent=17), "rulebook_ref": {"rulebook_id": POLICY}}
    del request["rulebook"]
    answers: list[Any] = []
    lock = threading.Lock()

    def command(*arguments: str, by: str) -> None:
        """Another process, as an operator starts one."""
        signed = ("--token-file", str(desk.token(by)))
        done = subprocess.run(
            site.command("migrate", *arguments, "--scope", SCOPE, *signed), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    with site.serving(2) as server:

        def decide(_: int) -> None:
            answer = post_decide(server.url, key, request)
            assert answer.status_code == 200, answer.text
            with lock:
                answers.append(answer.json())
            # The commands need the processors as well.
            time.sleep(0.1)

        with Crew(2, decide) as crew:

            def more_by(version_: str) -> None:
                """Waits for answers that were asked for after all that was done so far."""
                there = len(answers)
                crew.wait_until(lambda: [of["rulebook"]["version"] for of in answers[there:]].count(version_) > 6)

            more_by("1")
            command("apply", "second", by="ada")
            more_by("2")
            command("rollback", POLICY, by="ben")
            more_by("1")
            desk.route(version("3", 5), "third")
            more_by("3")
        assert len(workers_of(server)) == 2
        records = [stored_record(entry) for entry in site.chain(SCOPE) if entry.link["entry_type"] == "decision"]
        assert set(verification(server.url, key, records[-20:]).values()) == {None}
    assert {(of["rulebook"]["version"], of["verdict"]) for of in answers} == {("1", "yes"), ("2", "no"), ("3", "yes")}

    active, routed = None, {}
    for entry in site.entries(SCOPE):
        if entry.link["entry_type"] == "route":
            active = json.loads(unpack(entry.body) if isinstance(entry.body, bytes) else entry.body)["to"]["version"]
        elif entry.link["entry_type"] == "decision" and active is not None:
            record = stored_record(entry)
            assert record["rulebook"]["version"] == active
            routed[record["decision_id"]] = record["record_hash"]
    assert routed == {of["decision_id"]: of["record_hash"] for of in answers}
    assert site.gate("chain", "check")["whole"] is True


def killed(desk: CommandDesk, folder: Path, *arguments: str, by: str) -> list[Killed]:
    """What comes of a command that is killed at each point of its transactions."""
    # Proving a proposal takes a second, and applying has two transactions.
    every = size({"propose": 5, "apply": 3}.get(arguments[0], 1), 1)
    with ProcessPoolExecutor(1, mp_context=forked()) as executor:
        return executor.submit(killed_everywhere, desk, folder, arguments, by, every).result(300)


def proposing(desk: CommandDesk) -> list[str]:
    desk.route(version("1"), "first")
    return ["propose", desk.write(version("2"), "second")]


def approving(desk: CommandDesk) -> list[str]:
    desk.route(version("1"), "first")
    return ["approve", "second", "--evidence", desk.propose(version("2"), "second")]


def applying(desk: CommandDesk) -> list[str]:
    desk.done(*approving(desk), by="ben")
    # Superseded by the other, in the same transaction.
    desk.propose(version("3"), "third")
    return ["apply", "second"]


def rolling_back(desk: CommandDesk) -> list[str]:
    desk.route(version("1"), "first")
    desk.route(version("2"), "second")
    desk.route(version("3"), "third")
    return ["rollback", POLICY, "--from", "3"]


@pytest.mark.parametrize(
    ("prepare", "by", "done", "refused"),
    [
        (proposing, "ada", ("1", {"second": "proposed"}), None),
        (approving, "ben", ("1", {"second": "approved"}), "was approved by ben"),
        (applying, "ada", ("2", {"second": "applied", "third": "superseded"}), "and applied, so it cannot be"),
        (rolling_back, "ben", ("2", {"third": "rolled_back"}), "is routed to 2, not to 3, so nothing was rolled back"),
    ],
    ids=["propose", "approve", "apply", "rollback"],
)
def test_a_command_that_is_killed_is_done_wholly_or_not_at_all(
    desk: CommandDesk,
    tmp_path: Path,
    prepare: Callable[[CommandDesk], list[str]],
    by: str,
    done: tuple[str, dict[str, str]],
    refused: str | None,
) -> None:
    arguments = prepare(desk)
    before = (desk.active(), {of["migration_id"]: of["state"] for of in desk.answer("list")["migrations"]})
    after = (done[0], {**before[1], **done[1]})
    with closing(open_instance(load_settings(desk.home))) as instance:
        scope = instance.ledger.directory.scope(SCOPE)
        entries_before = instance.ledger.entries.head(scope.scope_id).size
    found = killed(desk, tmp_path / "copies", *arguments, by=by)
    states = [((of.state.routes[POLICY], of.state.migrations), of.state.entries) for of in found]
    # The transaction begins, writes some, and ends: not one point in it shows half of it.
    assert len(found) > 2
    assert (found[0].before, found[-1].before) == ("BEGIN IMMEDIATE", THE_END)
    assert (states[0][0], states[-1][0]) == (before, after)
    for of, (state, entries) in zip(found, states, strict=True):
        assert of.state.whole, of
        assert of.again.whole, of
        assert state in (before, after), of
        assert (entries == entries_before) is (state == before), of
        assert (of.again.routes[POLICY], of.again.migrations) == after, of
        # Made again, it succeeds; or it says that it was done.
        if of.code:
            assert refused is not None, of
            assert (of.code, refused in of.told, state) == (2, True, after), of
