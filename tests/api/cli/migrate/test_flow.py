"""A migration from its check to a rollback, as an author and an approver do it at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support.migrating import POLICY, SCOPE, CommandDesk, version


def test_from_the_check_to_a_rollback(desk: CommandDesk, tmp_path: Path) -> None:
    desk.route(version("1"), "first")
    file = desk.write(version("2", 20), "second", summary="Discounts need a margin of 20 %.")
    assert desk.gate("migrate", "check", file).returncode == 0

    tried = desk.done("dry-run", file)
    assert "pricing_exception: version 2 would replace 1.\n" in tried
    assert "Of 8 past decisions (week of " in tried
    assert "), 2 would get another verdict (25.0 %, 95 % interval 7.1 to 59.1 %).\n" in tried
    assert "2 decisions that are approved would be blocked.\n" in tried
    assert f"Next: propose it with `gate migrate propose {file} --scope {SCOPE} --user NAME`." in tried
    assert [of["migration_id"] for of in desk.answer("list")["migrations"]] == ["first"]

    proposed = desk.done("propose", file, "--note", "Too many thin deals.", by="ada")
    evidence = desk.answer("list")["migrations"][0]["evidence_hash"]
    assert f"Proposed second as ada. Evidence: {evidence}\n" in proposed
    assert f"  gate migrate approve second --scope {SCOPE} --user NAME \\\n    --evidence {evidence}\n" in proposed
    assert "second was proposed by ada at " in desk.done("status")
    assert "and waits for an approver." in desk.done("status")

    told = desk.done("report", "second")
    assert told.startswith("# Migration second\n")
    assert "(25.0 %, 95 % interval 7.1 to 59.1 %)" in told
    assert evidence in told

    approved = desk.done("approve", "second", "--evidence", evidence, by="ben")
    applying = f"gate migrate apply second --scope {SCOPE} --user NAME"
    assert approved == f"Approved second as ben. It decides nothing yet; apply it with `{applying}`.\n"
    assert desk.active() == "1"
    assert "and waits to be applied." in desk.done("status")

    assert desk.done("apply", "second", by="ada").splitlines() == [
        "pricing_exception: 1 -> 2.",
        "Active from the next decision on.",
        f"To roll back: `gate migrate rollback pricing_exception --scope {SCOPE} --from 2 --user NAME`.",
    ]
    facts = {"discount_percent": 10, "margin_percent": 17}
    assert _decided(desk.routed(**facts)) == ("2", "no")

    assert desk.done("rollback", POLICY, "--from", "2", "--note", "Too strict.", by="ben").splitlines() == [
        "pricing_exception: 2 -> 1.",
        "Active from the next decision on. Its evidence is that of first.",
    ]
    assert _decided(desk.routed(**facts)) == ("1", "yes")

    shown = desk.done("show", "second")
    assert "Discounts need a margin of 20 %." in shown
    assert "proposed by ada: Too many thin deals.\n" in shown
    assert "approved by ben\n" in shown
    assert "pricing_exception -> 2, applied by ada\n" in shown
    assert "pricing_exception -> 1, rolled back by ben: Too strict.\n" in desk.done("show", "first")
    (row,) = [line.split() for line in desk.done("status").splitlines() if line.startswith(POLICY)]
    assert row[:5] == [POLICY, "1", "rollback", "first", "ben"]
    checked = json.loads(desk.gate("chain", "check", "--json").stdout)
    # 8 decisions, three entries of each migration, two decisions and the rollback.
    assert (checked["whole"], checked["chains"][0]["entries_checked"]) == (True, 8 + 3 + 3 + 2 + 1)


def _decided(record: Any) -> tuple[str, str]:
    return record["rulebook"]["version"], record["verdict"]


def test_machines_are_told_the_same(desk: CommandDesk) -> None:
    file = desk.write(version("1", 20), "first")
    tried = desk.answer("dry-run", file)
    assert tried["rulebooks"][0]["candidate"]["version"] == "1"
    assert tried["rulebooks"][0]["history"]["verdict_changed"]["decisions"] == 2
    proposed = desk.answer("propose", file, by="ada")
    assert proposed == {"migration_id": "first", "evidence_hash": tried["evidence_hash"], "gate_faults": []}
    assert desk.answer("report", "first") == tried
    shown = desk.answer("show", "first")
    assert (shown["state"], shown["stale"], shown["routes"]) == ("proposed", [], [])
    assert desk.answer("status") == {
        "count": 0,
        "routes": [],
        "shadows": [],
        "waiting": desk.answer("list")["migrations"],
    }
    approved = desk.answer("approve", "first", "--evidence", tried["evidence_hash"], by="ben")
    assert (approved["status"], approved["entry"]["actor"]) == ("approved", {"type": "user", "id": "ben"})
    applied = desk.answer("apply", "first", "--note", "now", by="ben")
    (route,) = applied["routes"]
    assert (route["from"], route["to"]["version"], route["note"]) == (None, "1", "now")
    assert route["approval_hash"] == approved["entry"]["migration_hash"]
    assert desk.answer("status")["routes"] == [route]
    desk.route(version("2"), "second")
    assert desk.answer("rollback", POLICY, by="ben")["route"]["to"] == route["to"]
    assert [of["state"] for of in desk.answer("list")["migrations"]] == ["rolled_back", "applied"]


@pytest.mark.parametrize("command", ["dry-run", "report"])
def test_reports_are_written_as_their_names_say(desk: CommandDesk, tmp_path: Path, command: str) -> None:
    file = desk.write(version("1", 20))
    if command == "report":
        desk.propose(version("1", 20))
    for ending, begins in ((".html", "<!doctype html>"), (".md", "# Migration prices"), (".json", "{\n")):
        output = tmp_path / f"report{ending}"
        if command == "dry-run":
            assert f"Wrote the report to {output}.\n" in desk.done("dry-run", file, "--report", str(output))
        else:
            done = desk.migrate("report", "prices", "--output", str(output))
            assert (done.returncode, done.stdout) == (0, "")
            assert done.stderr == f"Wrote the report of prices to {output}.\n"
        assert output.read_text().lower().startswith(begins.lower())
    assert json.loads((tmp_path / "report.json").read_text())["migration_id"] == "prices"


def test_the_decisions_that_change_are_written(desk: CommandDesk, tmp_path: Path) -> None:
    file = desk.write(version("1", 20))
    for ending in (".parquet", ".csv"):
        output = tmp_path / f"decisions{ending}"
        desk.done("dry-run", file, "--decisions", str(output))
        rows = pl.read_parquet(output) if ending == ".parquet" else pl.read_csv(output)
        assert rows["rulebook_id"].to_list() == [POLICY] * 2


def test_cases_that_hold_and_a_first_day_are_in_the_evidence(desk: CommandDesk) -> None:
    file = desk.write(version("1"))
    cases = desk.folder / "cases.json"
    cases.write_text(json.dumps(_cases("yes")))
    told = desk.done("dry-run", file, "--cases", str(cases), "--since", "2020-01-01")
    assert "The one case holds.\n" in told
    assert "Only decisions since 2020-01-01T00:00:00.000Z were compared: 8.\n" in told
    failing = desk.folder / "failing.json"
    failing.write_text(json.dumps(_cases("no")))
    told = desk.done("dry-run", file, "--cases", str(failing), code=1)
    assert "1 of 1 case fails: thin.\n" in told
    assert "The gate: A case of pricing_exception fails: thin: " in told
    assert "Next:" not in told


def _cases(verdict: str) -> Any:
    case = {"name": "thin", "facts": {"discount_percent": 10, "margin_percent": 16}, "expect": {"verdict": verdict}}
    return {"schema_version": "rulebook_cases_v1", "rulebook": "pricing.json", "cases": [case]}


def test_only_those_in_a_state_are_listed(desk: CommandDesk) -> None:
    desk.route(version("1"), "first")
    desk.propose(version("2"), "second")
    desk.propose(version("3"), "third")
    desk.done("reject", "third", by="ben")

    def listed(state: str) -> list[str]:
        return [of["migration_id"] for of in desk.answer("list", "--state", state)["migrations"]]

    assert [listed(state) for state in ("applied", "proposed", "rejected")] == [["first"], ["second"], ["third"]]
    assert desk.refusal("list", "--state", "waiting") == (
        "USAGE_INVALID",
        "'waiting' is no state of migrations; it is one of proposed, approved, rejected, superseded, applied, "
        "rolled_back.",
    )


def test_a_scope_without_migrations_says_so(desk: CommandDesk) -> None:
    assert (
        desk.done("status") == "The scope acme has no route yet, so each request states the version of its rulebook.\n"
    )
    assert desk.answer("list") == {"migrations": []}
    assert desk.answer("status") == {"count": 0, "routes": [], "shadows": [], "waiting": []}
