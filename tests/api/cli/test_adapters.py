"""gate adapters: what is registered, what one is for people and for machines, and running one as a decision would."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from gate.adapters.containment import BASELINE, MEASURES
from gate.adapters.registry import registered
from gate.instance import settings
from tests.support.adapters import registered_as
from tests.support.command_line import run_gate

TRANSFER: Final = {
    "sol_amount": 9,
    "risk_level": "low",
    "evidence_level": "strong",
    "quorum_signed": True,
    "budget_within_policy": True,
    "recipient_verified": True,
}
SOLANA: Final = registered_as("solana_execution_gate@1.0.0")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no home is named, `var` is meant, and there is none here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATE_HOME", raising=False)


@pytest.fixture
def transfer(tmp_path: Path) -> str:
    """A file with an input of solana_execution_gate."""
    file = tmp_path / "transfer.json"
    file.write_text(json.dumps(TRANSFER))
    return str(file)


@pytest.fixture
def walled(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an instance that requires a measure which no machine has."""
    monkeypatch.setattr(settings, "MEASURES", (*MEASURES, "a_moat"))
    with (home / "settings.toml").open("a") as file:
        file.write('adapter_isolation = ["a_moat", "seccomp"]\n')
    return home


def printed(done: CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(done: CompletedProcess[str]) -> Any:
    assert done.returncode == 2, done.stdout
    return json.loads(done.stderr)


class TestList:
    def test_it_needs_no_instance_and_says_what_is_required_and_in_force(self) -> None:
        listed = printed(run_gate("adapters", "list", "--json"))
        assert [adapter["manifest_hash"] for adapter in listed["adapters"]] == [
            adapter.manifest_hash for adapter in registered()
        ]
        assert (listed["required"], listed["reason"]) == (list(BASELINE), None)
        assert set(BASELINE) <= set(listed["in_force"])

    def test_what_an_instance_requires_is_held_against_what_is_in_force(self, walled: Path) -> None:
        listed = printed(run_gate("adapters", "list", "--home", str(walled), "--json"))
        assert listed["required"] == [*BASELINE, "a_moat"]
        assert "a_moat" in listed["reason"]
        told = run_gate("adapters", "list", "--home", str(walled))
        assert told.returncode == 0
        assert told.stderr == (
            "gate: Adapters cannot run here: adapter_isolation requires measures that are not available here: a_moat.\n"
        )
        assert f"Workers on this machine are contained by {', '.join(listed['in_force'])}." in told.stdout


class TestShow:
    def test_people_are_told_what_it_is_takes_and_makes(self) -> None:
        told = run_gate("adapters", "show", "refund_facts")
        assert told.returncode == 0
        rows = [" ".join(line.split()) for line in told.stdout.splitlines()]
        assert max(map(len, told.stdout.splitlines()[2:])) <= 100
        for row in (
            "refund_facts@1.0.0: Refund facts",
            "time 1000 ms",
            "memory 64 MiB",
            "facts 64 KiB of JSON",
            "order object yes The order, as the shop's",
            "order.lines list, at most 200 items of: no What was ordered.",
            "order.lines[].line_id string, 1 to 200 characters yes The line's id.",
            "payment.currency three capital letters no The currency's code in ISO",
            "chargeback_open true or false no Whether a dispute is open.",
        ):
            assert row in rows
        assert not {"{", "}", "def facts(given):"} & set(rows)

    @pytest.mark.parametrize("adapter", registered(), ids=lambda adapter: adapter.name)
    def test_people_are_told_of_every_member(self, adapter: Any) -> None:
        told = run_gate("adapters", "show", adapter.name).stdout
        first = [line.split()[0] for line in told.splitlines() if line]
        for schema in (adapter.manifest["input_schema"], adapter.manifest["output_schema"]):
            assert schema["properties"].keys() <= set(first)

    def test_a_choice_is_told_by_what_there_is_to_choose(self) -> None:
        rows = [" ".join(line.split()) for line in run_gate("adapters", "show", SOLANA.name).stdout.splitlines()]
        assert "evidence_level thin, usable, strong yes How well it is evidenced." in rows
        assert "sol_amount number, more than 0 yes How much is transferred, in SOL." in rows

    def test_machines_are_given_the_manifest_and_nothing_else(self) -> None:
        assert printed(run_gate("adapters", "show", SOLANA.name, "--json")) == SOLANA.manifest

    @pytest.mark.parametrize("adapter", registered(), ids=lambda adapter: adapter.name)
    def test_the_source_is_printed_as_it_is_hashed(self, adapter: Any) -> None:
        source = run_gate("adapters", "show", adapter.name, "--source").stdout.encode()
        assert hashlib.sha256(source).hexdigest() == adapter.manifest["implementation_hash"]

    def test_manifest_and_source_are_not_mixed(self) -> None:
        assert refused(run_gate("adapters", "show", SOLANA.name, "--source", "--json"))["error"] == "USAGE_INVALID"

    def test_an_unknown_adapter_is_refused_with_those_that_there_are(self) -> None:
        told = refused(run_gate("adapters", "show", "oracle", "--json"))
        assert told["error"] == "ADAPTER_UNKNOWN"
        assert all(adapter.name in told["message"] for adapter in registered())


class TestRun:
    def test_it_makes_the_facts_that_a_decision_would_be_made_over(self, transfer: str) -> None:
        made = printed(run_gate("adapters", "run", "solana_execution_gate", "--input", transfer, "--json"))
        assert made["adapter_facts"] == {
            **TRANSFER,
            "decision_score": 99,
            "decision_edge_points": 42,
            "confidence_pct": 94,
        }
        assert made["trusted_adapter"]["manifest_hash"] == SOLANA.manifest_hash

    @pytest.mark.parametrize("by", ["option", "environment", "the usual place"])
    def test_it_heeds_what_the_instance_requires(
        self, by: str, transfer: str, walled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = ["--home", str(walled)] if by == "option" else []
        if by == "environment":
            monkeypatch.setenv("GATE_HOME", str(walled))
        if by == "the usual place":
            (tmp_path / "var").symlink_to(walled)
        told = refused(run_gate("adapters", "run", "solana_execution_gate", "--input", transfer, "--json", *named))
        assert told["error"] == "TRUSTED_ADAPTER_EXECUTION_FAILED"
        assert "adapter_isolation requires measures that are not available here: a_moat" in told["message"]

    def test_an_instance_that_is_named_and_not_there_is_refused(self, transfer: str, tmp_path: Path) -> None:
        nowhere = str(tmp_path / "nowhere")
        command = ("adapters", "run", "solana_execution_gate", "--input", transfer, "--home", nowhere, "--json")
        assert refused(run_gate(*command))["error"] == "INSTANCE_MISSING"

    def test_an_input_that_it_does_not_take_is_refused_member_by_member(self, tmp_path: Path) -> None:
        file = tmp_path / "input.json"
        file.write_text(json.dumps({"as_of": "2026-02-30", "order": {}, "payment": {"currency": "eur"}, "claim": {}}))
        told = refused(run_gate("adapters", "run", "refund_facts", "--input", str(file), "--json"))
        assert told["error"] == "TRUSTED_ADAPTER_INPUT_INVALID"
        assert {(error["field"], error["message"]) for error in told["errors"]} == {
            ("input.as_of", "It must be a calendar date, written YYYY-MM-DD."),
            ("input.payment.currency", "It must be three capital letters."),
        }


@pytest.mark.parametrize("command", ["list", "show", "run"])
def test_options_of_an_instance_are_taken_and_shown_only_where_they_do_something(command: str) -> None:
    told = run_gate("adapters", command, "--help").stdout
    assert "--database-url" not in told
    assert ("adapter_isolation" in told) is ("--home" in told) is (command != "show")


def test_every_command_takes_the_options_of_an_instance(home: Path, transfer: str) -> None:
    common = ("--home", str(home), "--database-url", "sqlite:////else.db", "--json")
    printed(run_gate("adapters", "list", *common))
    printed(run_gate("adapters", "show", "refund_facts", *common))
    printed(run_gate("adapters", "run", "solana_execution_gate", "--input", transfer, *common))
