"""`gate whatif`: past decisions, or one of them, with other facts or by another version, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gate.clock import utc_now
from gate.instance.instance import create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from tests.support.command_line import run_gate
from tests.support.migrating import FACTS, version
from tests.support.samples import sample_request, sample_rulebook
from tests.workbench.support import Chain, claim_request
from workbench.lake import fresh
from workbench.lake.manifest import FILE_NAME

POLICY = "pricing_exception"
OWN = str(sample_rulebook()["version"])
HAPPENED = "2020-05-01T12:00:00.000Z"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The home of an instance, and the decisions of `acme`: eight over `FACTS`, of which two are no since their margin
    is below 15, four on each of two days, and of which the first happened long before; then one by a version whose
    floor is 20; then one whose facts were erased; then one by another policy.
    """
    home = tmp_path_factory.mktemp("instance") / "home"
    create_instance(home, base_url="http://gate.example")
    with closing(open_instance(load_settings(home))) as instance:
        scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
        key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
        chain = Chain(instance, instance.ledger.directory.authenticate(key, utc_now()))
        for number, facts in enumerate(FACTS):
            if number == 4:
                chain.now = datetime(2090, 3, 6, tzinfo=UTC)
            chain.decide(sample_request(**facts) | ({"occurred_at": HAPPENED} if number == 0 else {}))
        chain.decide({**sample_request(discount_percent=5, margin_percent=17), "rulebook": version("2", 20)})
        chain.erase(chain.decide(discount_percent=5, margin_percent=30))
        chain.decide(claim_request())
        for at, revenue in ((0, 999), (1, 100), (2, 250.5)):
            chain.outcome(chain.decided[at], observed_metrics={"revenue_eur": revenue})
    assert run_gate("lake", "export", "--home", str(home)).returncode == 0
    return home, chain.decided


def told(home: Path, *arguments: str, policy: str = POLICY, scope: str = "acme") -> Any:
    """What the command prints with --json."""
    done = run_gate("whatif", policy, "--scope", scope, *arguments, "--home", str(home), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def said(home: Path, *arguments: str) -> list[str]:
    """The lines that it prints for a person."""
    done = run_gate("whatif", POLICY, "--scope", "acme", *arguments, "--home", str(home))
    assert (done.returncode, done.stderr) == (0, "")
    return [line.rstrip() for line in done.stdout.splitlines()]


def refused(home: Path, *arguments: str, policy: str = POLICY, scope: str = "acme") -> tuple[str, str]:
    """The code and the sentence of the error."""
    done = run_gate("whatif", policy, "--scope", scope, *arguments, "--home", str(home), "--json")
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    found = json.loads(done.stderr)
    return found["error"], found["message"]


def moves(found: Any) -> list[tuple[str, str, int]]:
    """How many decisions go from which verdict to which."""
    return [(each["verdict"], each["then_verdict"], each["decisions"]) for each in found["verdicts"]]


def test_a_slice_is_decided_anew_with_other_facts_and_adds_up_what_moves(made: tuple[Path, list[str]]) -> None:
    home, decisions = made
    found = told(home, "--set", "discount_percent=20", "--metric", "revenue_eur")
    # Of both decisions with a margin of 10, and that by the floor of 20, the margin is still too low.
    assert found["verdicts"] == [
        {
            "verdict": "yes",
            "then_verdict": "review",
            "decisions": 6,
            "worth": [{"metric": "revenue_eur", "values": 2, "sum": 350.5}],
        }
    ]
    report = found["report"]
    counted = ("decisions", "redecided", "unknown", "verdict_changed", "changed", "patch", "rulebook")
    assert [report[name] for name in counted] == [10, 9, 1, 6, 6, {"discount_percent": 20}, None]
    assert (found["scope"], found["metrics"]) == ("acme", ["revenue_eur"])
    assert said(home, "--set", "discount_percent=20", "--metric", "revenue_eur") == [
        f"Decisions of {POLICY} in acme, with discount_percent = 20:",
        "6 of 9 decisions would get another verdict; 6 would change in verdict, action, reason or rule.",
        "0 more would be approved, and 6 would no longer be.",
        "Of the 6 that would no longer be approved, 2 have values of revenue_eur, which come to 350.5; the other 4 "
        "have none.",
        "The facts of 1 more are unknown.",
        "",
        "was  would be  decisions  with revenue_eur  sum",
        "yes  review    6          2                 350.5",
        "",
        "was, by                          would be, by                 decisions  one of them",
        f"yes, approve_standard_exception  review, the default outcome  6          {decisions[1]}",
        "",
        "Outcomes are those of the original decisions. The outcome of another verdict is unknown.",
    ]


def test_a_fact_can_be_added_up_as_well(made: tuple[Path, list[str]]) -> None:
    (moved,) = told(made[0], "--set", "discount_percent=20", "--metric", "inputs.margin_percent")["verdicts"]
    assert moved["worth"] == [{"metric": "inputs.margin_percent", "values": 6, "sum": 2 * (17 + 22 + 30)}]


def test_several_values_are_added_up_side_by_side(made: tuple[Path, list[str]]) -> None:
    change = ("--set", "discount_percent=20", "--metric", "revenue_eur", "--metric", "inputs.margin_percent")
    (moved,) = told(made[0], *change)["verdicts"]
    assert [(of["metric"], of["sum"]) for of in moved["worth"]] == [
        ("revenue_eur", 350.5),
        ("inputs.margin_percent", 138.0),
    ]
    assert said(made[0], *change)[8].split() == ["yes", "review", "6", "2", "350.5", "6", "138"]
    many = [word for at in range(6) for word in ("--metric", f"m{at}")]
    assert refused(made[0], "--set", "discount_percent=20", *many)[0] == "ENGINE_ARGUMENT_INVALID"
    assert refused(made[0], *change, "--metric", "revenue_eur")[1].endswith("a list of at most 5 different names.")


def test_a_metric_that_nobody_measured_is_refused_with_those_that_are(made: tuple[Path, list[str]]) -> None:
    code, message = refused(made[0], "--set", "discount_percent=20", "--metric", "revenue")
    assert code == "METRIC_UNKNOWN"
    assert message.startswith(
        "No outcome has the metric 'revenue', and it is not a fact in the form inputs.NAME. Did you mean"
    )
    assert "'inputs.margin_percent' and 'revenue_eur'." in message
    # Known, but of none of the decisions that would move.
    few = told(made[0], "--set", "discount_percent=20", "--metric", "revenue_eur", "--since", "2090-03-06")
    assert [each["worth"] for each in few["verdicts"]] == [[{"metric": "revenue_eur", "values": 0, "sum": None}]]


def test_past_decisions_can_be_chosen_by_when_they_happened(made: tuple[Path, list[str]]) -> None:
    home, early = made[0], ("--set", "discount_percent=20", "--until", "2020-12-31")
    for clock, decisions in (([], 0), (["--clock", "recorded"], 0), (["--clock", "occurred"], 1)):
        report = told(home, *early, *clock)["report"]
        assert (report["decisions"], report["clock"]) == (decisions, "occurred" if decisions else "recorded")
    assert said(home, *early, "--clock", "occurred")[0] == (
        f"Decisions of {POLICY} in acme until 2020-12-31 by when they occurred, with discount_percent = 20:"
    )
    assert refused(home, "--decision", made[1][0], "--by", "2", "--clock", "occurred")[1].startswith(
        "--clock selects many decisions"
    )


def test_another_version_decides_with_and_without_other_facts(made: tuple[Path, list[str]]) -> None:
    home = made[0]
    found = told(home, "--by", "2")
    assert (moves(found), found["report"]["rulebook"]["version"]) == ([("yes", "no", 2)], "2")
    assert moves(told(home, "--by", "2", "--set", "margin_percent=20")) == [("no", "yes", 3)]
    assert moves(told(home, "--by", OWN)) == [("no", "yes", 1)]
    assert said(home, "--by", "2", "--leave-out", "margin_percent")[:1] == [
        f"Decisions of {POLICY} in acme, with margin_percent left out, decided by version 2:"
    ]


@pytest.mark.parametrize(
    ("options", "decisions", "verdicts"),
    [
        (["--until", "2090-03-05"], 4, [("yes", "review", 3)]),
        (["--since", "2090-03-06"], 6, [("yes", "review", 3)]),
        (["--since", "2090-03-05", "--until", "2090-03-05T14:30:00.000Z"], 2, [("yes", "review", 1)]),
        (["--version", "2"], 1, []),
        (["--verdict", "no"], 3, []),
        (["--verdict", "review"], 0, []),
    ],
)
def test_a_slice_is_chosen_as_on_the_page(
    made: tuple[Path, list[str]], options: Sequence[str], decisions: int, verdicts: list[tuple[str, str, int]]
) -> None:
    found = told(made[0], "--set", "discount_percent=20", *options)
    assert (found["report"]["decisions"], moves(found)) == (decisions, verdicts)


def test_a_slice_without_decisions_is_called_empty(made: tuple[Path, list[str]]) -> None:
    assert said(made[0], "--set", "discount_percent=20", "--verdict", "review", "--since", "2090-03-05") == [
        f"Decisions of {POLICY} in acme that were review from 2090-03-05 on, with discount_percent = 20:",
        "There are no such decisions.",
    ]


@pytest.mark.parametrize("change", [["--leave-out", "discount_percent"], ["--set", "discount_percent=true"]])
def test_what_fails_the_schema_check_is_counted(made: tuple[Path, list[str]], change: Sequence[str]) -> None:
    assert sorted(moves(told(made[0], *change))) == [("no", "review", 3), ("yes", "review", 6)]
    lines = said(made[0], *change)
    assert "9 would fail the schema check: a fact is missing or has the wrong type." in lines
    assert any(line.startswith("yes, approve_standard_exception  review, the schema check") for line in lines)


def test_a_decision_is_decided_anew_and_says_before_and_after(made: tuple[Path, list[str]]) -> None:
    home, decisions = made
    found = told(home, "--decision", decisions[1], "--set", "discount_percent=20")
    assert found["was"] == {
        "verdict": "yes",
        "reason_code": "STANDARD_EXCEPTION_ALLOWED",
        "matched_rule_id": "approve_standard_exception",
        "policy_version": OWN,
    }
    assert (found["then"]["verdict"], found["then"]["reason_code"]) == ("review", "NO_RULE_MATCHED")
    assert found["changes"] == [{"field": "discount_percent", "before": 5, "after": 20}]
    assert "flips" not in found
    assert said(home, "--decision", decisions[1], "--set", "discount_percent=20") == [
        f"{decisions[1]} was yes (STANDARD_EXCEPTION_ALLOWED; approve_standard_exception), by version {OWN}.",
        "  discount_percent: 5 -> 20",
        f"It would be review (NO_RULE_MATCHED; the default outcome), by version {OWN}: the verdict flips.",
    ]
    assert said(home, "--decision", decisions[1], "--by", "2")[1:] == [
        "It would be no (MARGIN_FLOOR_BREACH; block_below_margin_floor), by version 2: the verdict flips.",
    ]
    # Its own version decides, whichever was registered last.
    assert said(home, "--decision", decisions[1], "--set", "discount_percent=6")[-1].endswith("the verdict stays.")


def test_a_fact_of_one_decision_can_be_left_out_or_null(made: tuple[Path, list[str]]) -> None:
    home, decisions = made
    lines = said(home, "--decision", decisions[1], "--leave-out", "margin_percent")
    assert lines[1:] == [
        "  margin_percent: 17 -> absent",
        f"It would be review (INPUT_SCHEMA_FAILED; the schema check), by version {OWN}: the verdict flips.",
        "  margin_percent is required but missing",
    ]
    found = told(home, "--decision", decisions[1], "--set", "margin_percent=null", "--leave-out", "discount_percent")
    assert found["changes"] == [
        {"field": "discount_percent", "before": 5},
        {"field": "margin_percent", "before": 17, "after": None},
    ]
    assert said(home, "--decision", decisions[1], "--set", "margin_percent=null")[-1] == (
        "  margin_percent must be of type number, but is of type null"
    )


def test_the_smallest_changes_of_a_decision_are_found(made: tuple[Path, list[str]]) -> None:
    home, decisions = made
    found = told(home, "--decision", decisions[1], "--flip", "no")
    assert found["then"] is None
    assert [each["changes"][0]["field"] for each in found["flips"]] == ["margin_percent"]
    assert found["flips"][0]["result"]["reason_code"] == "MARGIN_FLOOR_BREACH"
    # They are those of its stored facts, by the version that decides, whatever else is changed.
    lines = said(home, "--decision", decisions[1], "--by", "2", "--set", "margin_percent=40", "--flip", "yes")
    assert lines[2:] == [
        "It would be yes (STANDARD_EXCEPTION_ALLOWED; approve_standard_exception), by version 2: the verdict stays.",
        "With its stored facts, decided by version 2:",
        "  the smallest changes that give yes:",
        "    margin_percent 17 -> 20 gives yes (STANDARD_EXCEPTION_ALLOWED)",
    ]
    assert said(home, "--decision", decisions[1], "--flip", "yes")[-1] == "  the verdict is already yes"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], "USAGE_INVALID", "Give at least one change: --set FIELD=VALUE, --leave-out FIELD or --by VERSION."),
        (
            ["--by", "2", "--since", "2026-08-01", "--until", "2026-07-01"],
            "USAGE_INVALID",
            "--since 2026-08-01 is after --until 2026-07-01; swap them.",
        ),
        (["--set", "a"], "USAGE_INVALID", "--set a has no value; write --set FIELD=VALUE."),
        (["--set", "=1"], "USAGE_INVALID", "--set =1 has no value; write --set FIELD=VALUE."),
        (["--set", "a=1", "--leave-out", "a"], "USAGE_INVALID", "a is changed more than once; change it once."),
        (["--by", "2", "--flip", "any"], "USAGE_INVALID", "--flip needs a single decision; give it with --decision."),
        (
            ["--set", "discount_percnt=1"],
            "FACT_UNKNOWN",
            "pricing_exception 2 neither declares nor tests a fact 'discount_percnt'. Did you mean 'discount_percent'? "
            "There are 'discount_percent' and 'margin_percent'.",
        ),
        (
            ["--leave-out", "coupon"],
            "FACT_UNKNOWN",
            "pricing_exception 2 neither declares nor tests a fact 'coupon'. There are 'discount_percent' and "
            "'margin_percent'.",
        ),
        (["--set", "margin_percent=ten"], "FACT_INVALID", "--set margin_percent=ten: This is not a number."),
        (
            ["--set", "margin_percent="],
            "FACT_INVALID",
            "--set margin_percent=: This is not a number. To leave it out, write --leave-out margin_percent.",
        ),
        (
            ["--set", "margin_percent=null"],
            "WHAT_IF_NULL",
            "A fact of past decisions cannot be set to null: leave margin_percent out, or give it a value.",
        ),
        (
            ["--by", "3"],
            "RULEBOOK_VERSION_UNKNOWN",
            f"The scope acme has no version '3' of 'pricing_exception'. There are '2' and '{OWN}'.",
        ),
        (
            ["--by", "2", "--version", "3"],
            "LAKE_POLICY_UNKNOWN",
            f"'pricing_exception' in scope 'acme' has no version '3'. There are '2' and '{OWN}'.",
        ),
        (["--by", "2", "--until", "July"], "DATE_INVALID", "'July' is not a day; write --until 2026-07-31."),
        (
            ["--flip", "any", "--decision", "dec_none"],
            "SVC_DECISION_NOT_FOUND",
            "The scope acme has no decision dec_none; check the id.",
        ),
        (
            ["--by", "2", "--decision", "dec_none", "--since", "2090-03-05"],
            "USAGE_INVALID",
            "--since selects many decisions, but --decision selects one; leave one of them out.",
        ),
        (
            ["--decision", "dec_none"],
            "USAGE_INVALID",
            "Give at least one change: --set FIELD=VALUE, --leave-out FIELD or --by VERSION, or ask for the "
            "smallest changes with --flip any.",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    made: tuple[Path, list[str]], options: Sequence[str], code: str, message: str
) -> None:
    assert refused(made[0], *options) == (code, message)


def test_what_is_not_there_is_named(made: tuple[Path, list[str]]) -> None:
    home, decisions = made
    assert refused(home, "--by", "1", policy="pricing") == (
        "RULEBOOK_VERSION_UNKNOWN",
        "The scope acme has no rulebook 'pricing'. There are 'claims' and 'pricing_exception'.",
    )
    assert refused(home, "--by", "2", scope="other")[0] == "SCOPE_UNKNOWN"
    assert refused(home, "--flip", "any", "--decision", decisions[9]) == (
        "FACTS_ERASED",
        f"The facts of {decisions[9]} were erased; choose another decision.",
    )
    assert refused(home, "--flip", "any", "--decision", decisions[10]) == (
        "USAGE_INVALID",
        f"{decisions[10]} was decided by claims, not 'pricing_exception'; give that policy.",
    )


def test_without_a_lake_the_ledger_answers_as_long_as_it_is_short(
    made: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(shutil.copytree(made[0], tmp_path / "home"))
    shutil.rmtree(home / "lake")
    change = ("--set", "discount_percent=20", "--metric", "revenue_eur")
    assert told(home, *change) == told(made[0], *change)
    monkeypatch.setattr(fresh, "MAX_TAIL", 3)
    code, message = refused(home, *change)
    assert code == "SVC_REPORT_UNAVAILABLE"
    assert message.endswith("If no service is running, run `gate lake export --scope acme` first.")
    # One decision is read from the ledger alone.
    assert told(home, "--decision", made[1][1], "--by", "2")["then"]["verdict"] == "no"
    assert run_gate("lake", "export", "--scope", "acme", "--home", str(home)).returncode == 0
    assert moves(told(home, *change)) == [("yes", "review", 6)]


def test_a_lake_that_cannot_be_used_is_told_with_its_reason(made: tuple[Path, list[str]], tmp_path: Path) -> None:
    home = Path(shutil.copytree(made[0], tmp_path / "home"))
    (manifest,) = home.glob(f"lake/scope=*/{FILE_NAME}")
    manifest.write_text("{")
    code, message = refused(home, "--by", "2")
    assert (code, "`gate lake export`" in message) == ("LAKE_MANIFEST_INVALID", True)
