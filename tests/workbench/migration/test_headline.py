"""The sentences that a report begins with: each follows from a figure, and none says more."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest

from tests.support.migrations import Example
from workbench.migration.headline import headline, history_lines, worst

EXAMPLE: Final = Example().stored[0].evidence


def evidence(**history: Any) -> dict[str, Any]:
    """The example, with other figures of the history."""
    found = copy.deepcopy(dict(EXAMPLE))
    for name, figures in history.items():
        of = found["rulebooks"][0]["history"]
        of[name] = {**of[name], **figures} if isinstance(figures, dict) else figures
    return found


def told(found: dict[str, Any]) -> list[str]:
    return [line.text for line in headline(found)]


def test_a_danger_is_a_danger() -> None:
    lines = headline(EXAMPLE)
    assert worst(lines) == "danger"
    assert [line.text for line in lines if line.level == "danger"] == [
        "7 decisions that are blocked would be approved.",
        "For all facts, not only past ones: in 1 region, facts that are now blocked or held would be approved.",
    ]


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ((1, 0), "1 decision that is approved would be blocked."),
        ((0, 2), "2 decisions that are approved would be held."),
        ((3, 4), "7 decisions that are approved would be blocked (3) or held (4)."),
    ],
)
def test_approvals_that_end_are_told_by_where_they_go(to: tuple[int, int], sentence: str) -> None:
    blocked = {"decisions": sum(to), "to_no": to[0], "to_review": to[1]}
    assert sentence in told(evidence(newly_blocked=blocked))


def test_a_move_between_blocked_and_held_is_told() -> None:
    moved = {"decisions": 1, "to_no": 0, "to_review": 1}
    assert "1 decision that is blocked would be held." in told(evidence(otherwise_refused=moved))


def test_the_metric_of_what_begins_and_ends_to_be_approved_is_told() -> None:
    money = [
        {"verdict": "no", "then_verdict": "yes", "values": 300, "sum": 40000.0},
        {"verdict": "review", "then_verdict": "yes", "values": 12, "sum": 1000.5},
        {"verdict": "yes", "then_verdict": "no", "values": 1, "sum": -3.0},
        {"verdict": "yes", "then_verdict": "yes", "values": 900, "sum": 9e9},
    ]
    approved = {"decisions": 340, "from_no": 300, "from_review": 40}
    blocked = {"decisions": 1, "to_no": 1, "to_review": 0}
    lines = told(evidence(metric="loss_eur", money=money, newly_approved=approved, newly_blocked=blocked))
    assert any("312 have values of loss_eur, which come to 41,000.5; the other 28 have none." in of for of in lines)
    assert "loss_eur of the one that would no longer be approved comes to -3." in lines
    assert "None of the 340 that would be approved has a value of loss_eur." in told(
        evidence(metric="loss_eur", money=money[2:], newly_approved=approved)
    )


def test_a_metric_that_no_decision_has_is_probably_misspelt() -> None:
    sentence = "No past decision has a value of revnue: check the metric's name."
    assert sentence in told(evidence(metric="revnue"))
    assert sentence not in told(evidence(metric="revnue", redecided=0))
    assert "value of" not in " ".join(told(evidence()))


def test_an_equal_candidate_is_told_as_such_and_nothing_else_of_its_effect() -> None:
    found = evidence()
    found["rulebooks"][0]["difference"] = {"equal": True, "decided": True, "regions": [], "undecided": []}
    lines = [line.text for line in history_lines(found["rulebooks"][0])]
    assert "It decides all facts as the active version does; the exact analysis proves it." in lines
    assert not any("would get another verdict" in line for line in lines)


def test_a_first_route_is_told_by_the_version_that_decided() -> None:
    versions = [
        {
            "policy_version": name,
            "decisions": redecided,
            "redecided": redecided,
            "changed": redecided,
            "newly_approved": begin,
            "newly_blocked": end,
            "decision_ids": [],
        }
        for name, begin, end, redecided in (("B", 1, 2, 9), ("A", 1200, 0, 4000), ("gone", 0, 0, 0))
    ]
    found = evidence(base=None, versions=versions)
    found["rulebooks"][0] |= {"base": None, "difference": None}
    lines = told(found)
    assert any("the dry run compares it with the stored decisions of all versions" in line for line in lines)
    assert "Approvals gained or lost, by the version that decided: 3 of 9 by B and 1,200 of 4,000 by A." in lines
    assert not any("by the version that decided" in line for line in told(evidence(versions=versions)))
    found["rulebooks"][0]["history"]["versions"] = versions[:1]
    assert not any("by the version that decided" in line for line in told(found))


def test_a_version_that_is_in_force_already_replaces_nothing() -> None:
    found = evidence()
    of = found["rulebooks"][0]
    assert f"pricing_exception: version 2026-12-01 would replace {of['base']['version']}." in told(found)
    of["base"] = of["candidate"]
    assert "pricing_exception: version 2026-12-01 is already active." in told(found)


def test_the_first_warning_of_the_analysis_is_told_and_the_others_are_counted() -> None:
    found = evidence()
    warning: dict[str, Any] = {
        "kind": "rule_never_matches",
        "severity": "warning",
        "rule_ids": [],
        "path": "",
        "witness": None,
    }
    findings = [
        {**warning, "message": "Said to be meant.", "accepted": True},
        {**warning, "message": "The rule a never matches.", "accepted": False},
        {**warning, "message": "The rule b never matches.", "accepted": False},
    ]
    found["rulebooks"][0]["analysis"]["findings"] = findings
    assert "The analysis of the candidate: The rule a never matches. It has 1 more warning." in told(found)
    found["rulebooks"][0]["analysis"]["findings"] = findings[:2]
    assert "The analysis of the candidate: The rule a never matches." in told(found)
    found["rulebooks"][0]["analysis"]["findings"] = findings[:1]
    assert not any("The analysis" in line for line in told(found))


def test_facts_that_the_version_in_force_needs_as_well_are_no_warning() -> None:
    lacking = [{"field": "amount", "required": True, "decisions": 17, "share": 0.1, "decision_ids": []}]
    said = "Past decisions lack facts that the candidate requires: amount (17)."
    of = {line.text: line.level for line in headline(evidence(missing_facts=lacking, needs_input={"decisions": 3}))}
    assert of[said] == "warning"
    of = {line.text: line.level for line in headline(evidence(missing_facts=lacking, needs_input={"decisions": 0}))}
    assert of[f"{said} The active version does not accept them either."] == "note"


def test_new_approvals_are_told_by_where_they_come_from() -> None:
    both = {"decisions": 7, "from_no": 3, "from_review": 4}
    assert "7 decisions that are blocked (3) or held (4) would be approved." in told(evidence(newly_approved=both))
    held = {"decisions": 1, "from_no": 0, "from_review": 1}
    assert "1 decision that is held would be approved." in told(evidence(newly_approved=held))


def test_approvals_that_end_for_all_facts_are_told_also_where_the_past_is_silent() -> None:
    found = evidence(changed={"decisions": 0})
    difference = found["rulebooks"][0]["difference"]
    region = difference["regions"][0]
    ends = [{**region, "severity": "warning", "from": {**region["from"], "decision": "yes"}} for _ in range(3)]
    for end, decision in zip(ends, ("no", "review", "review"), strict=True):
        end["to"] = {**region["to"], "decision": decision}
    difference["regions"] = ends[1:]
    assert "For all facts: in 2 regions, facts that are now approved would be held." in told(found)
    difference["regions"] = ends
    assert "For all facts: in 3 regions, facts that are now approved would be blocked (1) or held (2)." in told(found)
    difference["regions"] = [{**ends[0], "to": {**region["to"], "decision": "yes"}}]
    assert not any("what is approved now" in line for line in told(found))


def test_the_weeks_of_the_decisions_are_told() -> None:
    weeks = [{**EXAMPLE["rulebooks"][0]["history"]["weeks"][0], "week": day} for day in ("2025-12-29", "2026-03-02")]
    assert any("past decisions (weeks of 2025-12-29 to 2026-03-02), " in line for line in told(evidence(weeks=weeks)))
    assert any("past decisions (week of 2025-12-29), " in line for line in told(evidence(weeks=weeks[:1])))
    cut = evidence(weeks=weeks, left_out={"weeks": 3})
    assert any("past decisions, " in line for line in told(cut))


def test_expected_drift_that_did_not_happen_is_told_where_nothing_drifts() -> None:
    found = evidence()
    found["corpus"] |= {"ok": True, "errors": ["The expected fixture a did not drift."]}
    assert told(found)[-1] == "The corpus: The expected fixture a did not drift."


def test_facts_that_callers_would_send_in_place_of_an_adapter_are_a_danger() -> None:
    lost = [{"reason": "adapter_changed", "decisions": 310, "decision_ids": []}]
    said = "An adapter made the facts of 310 past decisions, but callers would send the candidate's facts."
    lines = headline(evidence(not_redecided=lost, adapter_manifest_hash=None))
    assert [line.level for line in lines if line.text.startswith(said)] == ["danger"]
    lines = headline(evidence(not_redecided=lost, adapter_manifest_hash="a" * 64))
    assert [line.level for line in lines if "or no adapter did" in line.text] == ["warning"]
