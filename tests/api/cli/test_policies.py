"""`gate policies`: the tables in force, files checked before the service reads them, and tables to edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gate.services.policies.in_force import released, released_file
from gate.services.policies.questions import BY_SERVICE
from tests.support.command_line import run_gate
from tests.support.samples import CASES

REFUND = CASES / "policy_tables" / "refund.json"


def test_a_new_instance_has_the_tables_of_the_release(home: Path) -> None:
    listed = run_gate("policies", "list", "--home", str(home))
    assert listed.returncode == 0
    rows = [line.split() for line in listed.stdout.splitlines()[1:5]]
    assert [[row[0], row[1], row[2]] for row in rows] == [
        [service, "release", str(len(released(service).entries))] for service in BY_SERVICE
    ]


def test_a_copied_table_is_the_operators_and_is_never_written_over(home: Path) -> None:
    copied = run_gate("policies", "copy", "refund", "--home", str(home))
    file = home / "policies" / "refund.json"
    assert copied.stdout == (f"Wrote {file}. The service reads it at the next question, and again after each change.\n")
    assert (copied.returncode, file.read_bytes()) == (0, released_file("refund").read_bytes())
    file.write_bytes(REFUND.read_bytes())
    again = run_gate("policies", "copy", "refund", "--home", str(home))
    assert (again.returncode, file.read_bytes()) == (0, REFUND.read_bytes())
    assert "already exists" in again.stderr
    tables = json.loads(run_gate("policies", "list", "--home", str(home), "--json").stdout)["tables"]
    assert [table["origin"] for table in tables] == ["operator", "release", "release", "release"]


def test_a_broken_file_is_named_in_the_list_with_its_fault(home: Path) -> None:
    (home / "policies").mkdir()
    body = json.loads(REFUND.read_bytes())
    body["entries"][0]["widnows"] = {}
    (home / "policies" / "refund.json").write_text(json.dumps(body))
    listed = run_gate("policies", "list", "--home", str(home))
    assert (listed.returncode, listed.stderr) == (1, "")
    # The fault goes on over several lines of the last column.
    heading, row, *_ = listed.stdout.splitlines()
    assert row.split()[:2] == ["refund", "release"]
    assert row[heading.index("fault") :].startswith("refund.json is not active.")
    in_json = run_gate("policies", "list", "--home", str(home), "--json")
    assert in_json.returncode == 1
    refund, cancel, *_ = json.loads(in_json.stdout)["tables"]
    assert refund["fault"].startswith(
        "refund.json is not active. The file is not a policy table. entries[0].widnows: It is unknown"
    )
    assert cancel["fault"] is None


def test_a_table_that_was_listed_stays_in_force_when_its_file_breaks(home: Path) -> None:
    file = home / "policies" / "refund.json"
    file.parent.mkdir()
    file.write_bytes(REFUND.read_bytes())
    assert run_gate("policies", "list", "--home", str(home)).returncode == 0
    file.write_text("{")
    tables = json.loads(run_gate("policies", "list", "--home", str(home), "--json").stdout)["tables"]
    assert (tables[0]["origin"], tables[0]["entries"]) == ("operator", 15)
    assert "refund.json is not active." in tables[0]["fault"]


def test_a_broken_table_does_not_make_the_service_unready(home: Path) -> None:
    (home / "policies").mkdir()
    (home / "policies" / "refund.json").write_text("{")
    status = run_gate("status", "--home", str(home), "--json")
    report = json.loads(status.stdout)
    assert (status.returncode, report["ok"]) == (0, True)
    assert report["policy_tables"]["ready"] is False
    assert "refund.json is not active" in report["policy_tables"]["reason"]


def test_files_that_no_service_reads_are_named(home: Path) -> None:
    folder = home / "policies"
    folder.mkdir()
    for name in ("refunds.json", "cancellation_penalty.json", "trial.json.bak", "notes.txt", ".hidden.json"):
        (folder / name).write_text("{}")
    (folder / "trial.json").write_bytes((CASES / "policy_tables" / "trial.json").read_bytes())
    listed = run_gate("policies", "list", "--home", str(home))
    assert listed.returncode == 0
    assert listed.stderr.splitlines() == [
        "gate: No service reads cancellation_penalty.json. Rename it to cancel.json.",
        "gate: No service reads notes.txt. The names of tables are refund.json, cancel.json, return.json, trial.json.",
        "gate: No service reads refunds.json. Rename it to refund.json.",
        "gate: No service reads trial.json.bak; the service reads trial.json.",
    ]
    told = json.loads(run_gate("policies", "list", "--home", str(home), "--json").stdout)
    assert told["ignored"] == ["cancellation_penalty.json", "notes.txt", "refunds.json", "trial.json.bak"]


def test_files_are_checked_before_the_service_reads_them(tmp_path: Path) -> None:
    good, bad = tmp_path / "refund.json", tmp_path / "trial.json"
    good.write_bytes(REFUND.read_bytes())
    assert run_gate("policies", "check", str(good)).stdout == (
        f"{good} is a valid policy table of refund: 15 entries (1 conditional, 13 deterministic, 1 review_only)\n"
    )
    bad.write_text('{"policy_table_version": "policy_table_v1", "service": "trial"}')
    checked = run_gate("policies", "check", str(good), str(bad))
    assert checked.returncode == 1
    assert "entries: It is missing; add it. (required)" in checked.stdout
    told = json.loads(run_gate("policies", "check", str(good), str(bad), "--json").stdout)["files"]
    assert [one["ok"] for one in told] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "refunds.json"], "No service reads refunds.json. Rename it to refund.json."),
        (["check", "refund.yaml"], "No service reads refund.yaml. Rename it to refund.json."),
        (["check", "returns.json"], "No service reads returns.json. Rename it to return.json."),
        (["check", "nowhere/refund.json"], "cannot be read"),
        (["copy", "refunds"], "There is no service refunds"),
    ],
)
def test_what_cannot_be_done_is_refused(home: Path, arguments: list[str], says: str) -> None:
    refused = run_gate("policies", *arguments, "--home", str(home))
    assert refused.returncode == 2
    assert says in refused.stderr
