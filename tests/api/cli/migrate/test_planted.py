"""A candidate with one loosened rule is caught in every way there is, and a harmless one in none."""

from __future__ import annotations

from typing import Any

import pytest

from gate.encoding import resources
from gate.encoding.yaml_text import read_yaml
from tests.support.corpora import deals, expecting, write
from tests.support.migrating import POLICY, CommandDesk, version

LOOSE = "approve_standard_exception"
"""The rule that wins where it must not."""


@pytest.fixture
def routed(desk: CommandDesk) -> CommandDesk:
    """The desk with the sample rulebook in force, the cases that are shipped for it, and a corpus about it."""
    desk.route(version("2026-06-11"), "first")
    cases: Any = read_yaml(
        resources.path("data", "cases", "pricing_exception.yaml").read_bytes(), max_depth=20, max_values=100_000
    ).value
    write(desk.folder, {"cases.json": {**cases, "rulebook": "pricing.json"}, **deals()})
    return desk


def loosened() -> dict[str, Any]:
    """The sample rulebook with one rule that accepts a margin of 10 %, and comes before the floor."""
    body = version("2026-12-01")
    (rule,) = [of for of in body["rules"] if of["rule_id"] == LOOSE]
    for test in rule["condition"]["all"]:
        if test["field"] == "margin_percent":
            test["value"] = 10
    return {**body, "rules": [{**rule, "priority": 1000} if of is rule else of for of in body["rules"]]}


def refactored() -> dict[str, Any]:
    """The sample rulebook with its rules in another order, and the floor in two parts."""
    body = version("2026-12-01")
    (floor,) = [of for of in body["rules"] if of["rule_id"] == "block_below_margin_floor"]
    low = {"field": "margin_percent", "operator": "lt", "value": 0}
    rest = {"all": [{**low, "operator": "gte"}, {**low, "value": 15}]}
    rules = [{**of, "condition": {"any": [low, rest]}} if of is floor else of for of in body["rules"]]
    return {**body, "rules": rules[::-1]}


def cases_of(desk: CommandDesk) -> str:
    return str(desk.folder / "cases.json")


class TestLoosened:
    """The candidate whose rule wins where it must not."""

    def test_its_cases_fail(self, routed: CommandDesk) -> None:
        told = routed.done("dry-run", routed.write(loosened()), "--cases", cases_of(routed), code=1)
        faults = [line for line in told.splitlines() if line.startswith("The gate: A case of pricing_exception fails")]
        assert faults
        assert LOOSE in faults[0]

    def test_the_analysis_shows_what_it_would_approve(self, routed: CommandDesk) -> None:
        file = routed.write(loosened())
        (of,) = routed.answer("dry-run", file)["rulebooks"]
        assert of["difference"]["equal"] is False
        (danger,) = [region for region in of["difference"]["regions"] if region["severity"] == "danger"]
        assert LOOSE in str(danger)
        assert "in 1 region, facts that are now blocked or held would be approved" in routed.done("dry-run", file)

    def test_the_corpus_drifts(self, routed: CommandDesk) -> None:
        file = routed.write(loosened(), corpus="index.json")
        checked = routed.gate("migrate", "check", file)
        assert checked.returncode == 1
        assert (
            "deals.thin: semantic_output, rulebook, attestation_hash; no by the rule block_below_margin_floor, now "
            f"yes by the rule {LOOSE} (unexpected)\n"
        ) in checked.stdout
        tried = routed.done("dry-run", file, code=1)
        assert "The gate: The fixture deals.thin drifts in semantic_output, rulebook, attestation_hash" in tried

    def test_the_history_shows_what_it_would_have_approved(self, routed: CommandDesk) -> None:
        told = routed.done("dry-run", routed.write(loosened()))
        assert "2 decisions that are blocked would be approved.\n" in told
        assert f"2 decisions: block_below_margin_floor (no) becomes {LOOSE} (yes).\n" in told

    def test_the_gate_lets_nobody_approve_it(self, routed: CommandDesk) -> None:
        file = routed.write(loosened())
        proposed = routed.answer("propose", file, "--cases", cases_of(routed), by="ada", code=1)
        assert any(LOOSE in fault for fault in proposed["gate_faults"])
        for told in (routed.done("status"), routed.done("show", "prices")):
            assert "The gate: A case of pricing_exception fails" in told
        approving = ("approve", "prices", "--evidence", proposed["evidence_hash"])
        code, message = routed.refusal(*approving, by="ben")
        assert (code, LOOSE in message) == ("MIGRATION_GATE_FAILED", True)
        assert message.endswith("Fix the candidate or the manifest, and propose the migration again.")
        assert routed.refusal("apply", "prices", by="ada")[0] == "MIGRATION_NOT_APPROVED"
        assert routed.active() == "2026-06-11"

    def test_it_cannot_go_without_an_approval(self, routed: CommandDesk) -> None:
        file = routed.write(loosened(), approval={"status": "not_required"})
        assert routed.refusal("propose", file, by="ada")[0] == "MIGRATION_APPROVAL_REQUIRED"


class TestRefactored:
    """The candidate that decides the same."""

    def test_it_is_proved_equal_and_applied_without_an_approval(self, routed: CommandDesk) -> None:
        file = routed.write(refactored(), approval={"status": "not_required"})
        assert routed.gate("migrate", "check", file).returncode == 0
        told = routed.done("propose", file, "--cases", cases_of(routed), by="ada")
        assert "It decides all facts as the active version does; the exact analysis proves it.\n" in told
        assert (
            "Next: it needs no approval; apply it with `gate migrate apply prices --scope acme --user NAME`.\n" in told
        )
        assert "fail" not in told
        assert "and waits to be applied." in routed.done("status")
        (of,) = routed.answer("report", "prices")["rulebooks"]
        assert (of["difference"]["equal"], of["difference"]["regions"]) == (True, [])
        assert (of["history"]["changed"]["decisions"], of["tests"]["failed"]) == (0, 0)
        routed.done("apply", "prices", by="ada")
        assert routed.active() == "2026-12-01"
        assert routed.answer("show", "prices")["routes"][0]["approval_hash"] is None
        routed.done("rollback", POLICY, by="ada")
        assert routed.active() == "2026-06-11"
        assert '"whole": true' in routed.gate("chain", "check", "--json").stdout

    def test_over_a_corpus_of_its_own_only_its_hashes_drift_which_somebody_approves(self, routed: CommandDesk) -> None:
        file = routed.write(refactored(), corpus="index.json", approval={"status": "not_required"})
        routed.done("dry-run", file, code=1)
        code, message = routed.refusal("propose", file, by="ada")
        assert (code, "Set approval.status to pending" in message) == ("MIGRATION_APPROVAL_REQUIRED", True)
        drifting = expecting("deals.usual", "deals.floor", "deals.thin", "deals.large", "deals.unknown")
        evidence = routed.propose(refactored(), corpus="index.json", expected_drift=drifting)
        assert "5 fixtures of the corpus drift, exactly as the manifest expects." in routed.done("report", "prices")
        routed.done("approve", "prices", "--evidence", evidence, by="ben")
        routed.done("apply", "prices", by="ada")
        assert routed.active() == "2026-12-01"

    def test_whoever_approves_may_reject_it_all_the_same(self, routed: CommandDesk) -> None:
        routed.propose(refactored(), approval={"status": "not_required"})
        routed.done("reject", "prices", by="ben")
        assert routed.refusal("apply", "prices", by="ada")[0] == "MIGRATION_NOT_OPEN"
        assert routed.active() == "2026-06-11"
