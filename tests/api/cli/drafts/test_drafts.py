"""Drafts and their cases at the command line: the acts of the workbench, with the same checks and the same log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gate.encoding.yaml_text import read_yaml, write_yaml
from tests.support.migrating import SCOPE, CommandDesk, version


def drafts(desk: CommandDesk, *arguments: str, by: str | None = None, code: int = 0) -> Any:
    """What `gate drafts ... --json` answers."""
    signed = [] if by is None else ["--token-file", str(desk.token(by))]
    done = desk.gate("drafts", *arguments, "--scope", SCOPE, "--json", *signed)
    assert done.returncode == code, done.stderr or done.stdout
    return json.loads(done.stdout if code < 2 else done.stderr)


def said(desk: CommandDesk, *arguments: str, by: str | None = None, code: int = 0) -> str:
    """What it says to a person."""
    signed = [] if by is None else ["--token-file", str(desk.token(by))]
    done = desk.gate("drafts", *arguments, "--scope", SCOPE, *signed)
    assert done.returncode == code, done.stderr or done.stdout
    return done.stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A rulebook in YAML, with a comment."""
    found = tmp_path / "pricing.yaml"
    found.write_text("# The prices.\n" + write_yaml(version("1")))
    return found


@pytest.fixture
def draft(desk: CommandDesk, file: Path) -> str:
    """A draft of the file."""
    return str(drafts(desk, "new", "prices", "--file", str(file), by="ada")["draft_id"])


def test_a_draft_is_changed_checked_and_kept_with_all_that_it_was(
    desk: CommandDesk, draft: str, file: Path, tmp_path: Path
) -> None:
    (listed,) = drafts(desk, "list")["drafts"]
    assert (listed["name"], listed["edition"], listed["origin"]) == (
        "prices",
        1,
        {"made": "file", "of": file.name, "at": ""},
    )
    assert said(desk, "show", draft) == file.read_text()
    assert drafts(desk, "set", draft, "rules[0].priority", "51", by="ada")["edition"] == 2
    assert drafts(desk, "set", draft, "rules[0].condition.field", "margin_percnt", by="ada")["edition"] == 3
    checked = drafts(desk, "check", draft)
    assert (checked["valid"], [each["code"] for each in checked["problems"]]) == (True, ["undeclared_field"])
    assert said(desk, "show", draft).startswith("# The prices.\n")
    copy = tmp_path / "copy.yaml"
    assert said(desk, "show", draft, "--output", str(copy)) == ""
    copy.write_text(copy.read_text().replace("priority: 51", "priority: fifty"))
    assert drafts(desk, "save", draft, str(copy), "--after", "3", by="ada")["edition"] == 4
    assert "must be an integer" in said(desk, "check", draft, code=1)
    assert [each["saved_by"] for each in drafts(desk, "revisions", draft)["revisions"]] == ["ada"]
    # Nobody's text takes the place of one that they have not seen.
    assert drafts(desk, "save", draft, str(file), "--after", "1", by="ada", code=2)["error"] == "DRAFT_CHANGED"
    assert drafts(desk, "show", draft)["edition"] == 4


def test_a_rule_goes_and_a_comparison_tells_it(desk: CommandDesk, draft: str) -> None:
    drafts(desk, "remove", draft, "rules[0]", by="ada")
    compared = drafts(desk, "compare", draft, "--revision", "1")
    # A sitting is one revision, and it is that of the draft itself.
    assert (compared["edits"], compared["difference"]["equal"]) == ([], True)
    desk.route(version("1"), "first")
    assert "The rule" in said(desk, "compare", draft, "--rulebook", "pricing_exception 1")


def test_rules_and_tests_are_added_as_in_the_table(desk: CommandDesk, draft: str) -> None:
    before: Any = read_yaml(said(desk, "show", draft).encode()).value
    drafts(desk, "add", draft, "--like", before["rules"][0]["rule_id"], by="ada")
    drafts(desk, "add", draft, "--to", "rules[0].condition", by="ada")
    text = said(desk, "show", draft)
    after: Any = read_yaml(text.encode()).value
    assert len(after["rules"]) == len(before["rules"]) + 1
    assert text.startswith("# The prices.\n")
    assert drafts(desk, "check", draft)["valid"]
    told = drafts(desk, "add", draft, "--like", "a", "--to", "rules[0].condition", by="ada", code=2)
    assert told["error"] == "USAGE_INVALID"


def test_the_second_of_two_authors_merges_or_forks(desk: CommandDesk, draft: str, file: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(file.read_text().replace("# The prices.", "# My prices."))
    drafts(desk, "set", draft, "rules[0].priority", "51", by="ada")
    assert drafts(desk, "save", draft, str(mine), "--after", "1", by="ada", code=2)["error"] == "DRAFT_CHANGED"
    assert drafts(desk, "merge", draft, str(mine), "--base", str(file), by="ada")["edition"] == 3
    merged = said(desk, "show", draft)
    assert merged.startswith("# My prices.\n")
    assert "priority: 51" in merged
    mine.write_text(file.read_text().replace("# The prices.", "# Our prices."))
    assert "the same lines in 1 place" in said(desk, "merge", draft, str(mine), "--base", str(file), by="ada", code=1)
    assert "<<<<<<< yours" in said(desk, "show", draft)
    forked = drafts(desk, "fork", draft, "mine", "--file", str(mine), by="ada")
    assert forked["origin"]["made"] == "draft"
    assert said(desk, "show", forked["draft_id"]) == mine.read_text()


def test_a_draft_is_named_closed_and_opened_again(desk: CommandDesk, draft: str) -> None:
    assert said(desk, "rename", draft, "lower prices", by="ada") == "Renamed the draft to lower prices.\n"
    assert said(desk, "close", draft, by="ada").startswith("Closed lower prices.")
    assert drafts(desk, "list") == {"drafts": []}
    assert [each["name"] for each in drafts(desk, "list", "--closed")["drafts"]] == ["lower prices"]
    assert drafts(desk, "set", draft, "version", "2", by="ada", code=2)["error"] == "DRAFT_CLOSED"
    said(desk, "reopen", draft, by="ada")
    assert len(drafts(desk, "list")["drafts"]) == 1
    logged = json.loads(desk.gate("log", "--json").stdout)["entries"]
    assert {each["action"] for each in logged} >= {"draft.created", "draft.renamed", "draft.closed", "draft.reopened"}


def test_cases_are_added_made_of_decisions_run_and_removed(desk: CommandDesk, draft: str, tmp_path: Path) -> None:
    (record,) = desk.decide({"discount_percent": 5, "margin_percent": 17})
    made = drafts(desk, "cases", "of", draft, record["decision_id"], "--name", "as decided", by="ada")
    assert made["expect"] == {"verdict": record["verdict"], "reason_code": record["reason_code"]}
    drafts(desk, "cases", "of", draft, record["decision_id"], "--verdict", "no", by="ada")
    cases = tmp_path / "cases.json"
    case = {"name": "as decided", "facts": {}, "expect": {"verdict": "review"}}
    cases.write_text(json.dumps({"rulebook": "pricing.yaml", "cases": [case, {**case, "name": "empty"}]}))
    assert drafts(desk, "cases", "add", draft, str(cases), by="ada") == {"added": ["empty"]}
    ran = drafts(desk, "cases", "run", draft, code=1)["cases"]
    assert [(each["name"], each["held"]) for each in ran] == [
        ("as decided", True),
        (f"{record['decision_id']} is no", False),
        ("empty", True),
    ]
    assert ran[1]["reasons"]
    drafts(desk, "cases", "remove", draft, f"{record['decision_id']} is no", by="ada")
    assert said(desk, "cases", "run", draft) == "2 of 2 cases hold.\n"


def test_a_draft_is_proved_and_proposed(desk: CommandDesk, draft: str) -> None:
    desk.route(version("1"), "first")
    assert drafts(desk, "dry-run", draft, code=2)["error"] == "MIGRATION_IN_FORCE"
    drafts(desk, "set", draft, "version", "2", by="ada")
    for rule, path in ((0, "condition.value"), (1, "condition.all[1].value")):
        drafts(desk, "set", draft, f"rules[{rule}].{path}", "20", by="ada")
    assert drafts(desk, "dry-run", draft)["rulebooks"][0]["history"]["verdict_changed"]["decisions"] == 2
    assert [each["migration_id"] for each in desk.answer("list")["migrations"]] == ["first"]
    proposed = drafts(desk, "propose", draft, "--summary", "A higher floor.", by="ada")
    assert proposed["migration_id"] == "pricing_exception.2"
    desk.done("approve", "pricing_exception.2", "--evidence", proposed["evidence_hash"], by="ben")
    desk.done("apply", "pricing_exception.2", by="ada")
    assert desk.active() == "2"


@pytest.mark.parametrize("by", ["ben", "vic"])
def test_only_authors_change_drafts(desk: CommandDesk, draft: str, by: str) -> None:
    for act in (["set", draft, "version", "2"], ["close", draft], ["cases", "remove", draft, "x"]):
        assert drafts(desk, *act, by=by, code=2)["error"] == "DRAFT_FORBIDDEN"


def test_what_cannot_be_done_is_said(desk: CommandDesk, draft: str, file: Path, tmp_path: Path) -> None:
    for arguments, error in (
        (["new", "x"], "USAGE_INVALID"),
        (["new", "x", "--file", str(file), "--rulebook", "a 1"], "USAGE_INVALID"),
        (["new", "x", "--rulebook", "none 1"], "RULEBOOK_VERSION_UNKNOWN"),
        (["set", draft, "rules[7].priority", "1"], "DRAFT_PATH_UNKNOWN"),
        (["set", draft, "rules[0].priority", "high"], "DRAFT_VALUE_INVALID"),
        (["cases", "of", draft, "dec_none"], "SVC_DECISION_NOT_FOUND"),
        (["cases", "remove", draft, "none"], "CASE_UNKNOWN"),
        (["close", "drf_none"], "DRAFT_UNKNOWN"),
    ):
        assert drafts(desk, *arguments, by="ada", code=2)["error"] == error, arguments
    assert drafts(desk, "show", draft, "--output", str(file), code=2)["error"] == "FILE_EXISTS"
    assert drafts(desk, "show", draft, "--revision", "9", code=2)["error"] == "DRAFT_REVISION_UNKNOWN"
    assert drafts(desk, "compare", draft, code=2)["error"] == "USAGE_INVALID"
    assert drafts(desk, "set", draft, "version", "2", code=2)["error"] == "USAGE_INVALID"
    broken = tmp_path / "broken.yaml"
    broken.write_text("rules: [")
    drafts(desk, "save", draft, str(broken), "--after", "1", by="ada")
    for arguments in (["cases", "run", draft], ["dry-run", draft], ["compare", draft, "--revision", "1"]):
        assert drafts(desk, *arguments, code=2)["error"] == "DRAFT_NOT_VALID"
