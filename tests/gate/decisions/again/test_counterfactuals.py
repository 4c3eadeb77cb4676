"""Counterfactuals without a ledger: merge patches, scenarios, and what the rulebook would say."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.decisions.again.counterfactuals import (
    SCENARIO_FIELDS,
    Counterfactuals,
    Scenario,
    facts_of_scenarios,
    merge_patch,
    read_counterfactuals,
    simulate,
)
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.errors import RequestRefused
from gate.rulebooks.rulebook import load
from tests.reference import evaluator as reference
from tests.reference.strategies import json_values, rulebooks_and_facts
from tests.support.rulebooks import example, stricter_rulebook
from tests.support.samples import cases, make_record, same_json, sample_request, sample_rulebook
from tests.support.tiers import examples
from tests.support.torture import size

PATCH = {"inputs": {"margin_percent": 10}}
THIN: dict[str, Any] = {"scenario_id": "thin", "label": "A thin margin", "context_patch": PATCH}


def scenario(patch: dict[str, Any], name: str = "s") -> Scenario:
    return Scenario(name, "A scenario", patch)


def patched_in_place(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2, as its pseudocode reads: it changes its target."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name in patch:
        if patch[name] is None:
            if name in target:
                del target[name]
        else:
            target[name] = patched_in_place(target.get(name), patch[name])
    return target


def simulated(
    patches: list[dict[str, Any]], *, rulebook: dict[str, Any] | None = None, view: str = "full"
) -> Counterfactuals:
    """What the sample decision's context, patched, is answered with."""
    scenarios = [scenario(patch, f"s{number}") for number, patch in enumerate(patches)]
    facts = facts_of_scenarios(sample_request()["context"], scenarios)
    return simulate(make_record(), load(rulebook or sample_rulebook()), scenarios, facts, view)


class TestMergePatch:
    """RFC 7396."""

    @pytest.mark.parametrize(("target", "patch", "result"), cases("merge_patch"))
    def test_the_cases_of_the_rfc_hold(self, target: Any, patch: Any, result: Any) -> None:
        before = copy.deepcopy((target, patch))
        assert same_json(merge_patch(target, patch), result)
        assert same_json([target, patch], list(before))

    @given(json_values(), json_values())
    def test_it_is_what_the_pseudocode_of_the_rfc_says(self, target: Any, patch: Any) -> None:
        assert same_json(merge_patch(target, patch), patched_in_place(copy.deepcopy(target), patch))

    @given(json_values(), json_values())
    def test_a_patch_says_the_same_twice_as_once(self, target: Any, patch: Any) -> None:
        once = merge_patch(target, patch)
        assert same_json(merge_patch(once, patch), once)

    @given(st.dictionaries(st.text(max_size=3), json_values(), max_size=3))
    def test_an_empty_patch_changes_nothing(self, target: dict[str, Any]) -> None:
        assert same_json(merge_patch(target, {}), target)


class TestReading:
    """Bodies of counterfactuals."""

    def test_everything_is_read_in_order(self) -> None:
        body = {"scenarios": [THIN, {**THIN, "scenario_id": "2"}], "response_view": "minimal"}
        asked = read_counterfactuals(body)
        assert asked.scenarios == (Scenario(**THIN), Scenario(**{**THIN, "scenario_id": "2"}))
        assert (asked.view, read_counterfactuals({"scenarios": [THIN]}).view) == ("minimal", None)

    @pytest.mark.parametrize(
        ("body", "fields"),
        [
            ({}, ["scenarios"]),
            ([], [""]),
            (None, [""]),
            ({"scenarios": []}, ["scenarios"]),
            ({"scenarios": {}}, ["scenarios"]),
            ({"scenarios": [THIN] * 51}, ["scenarios"]),
            ({"scenarios": ["thin"]}, ["scenarios[0]"]),
            ({"scenarios": [THIN, {"scenario_id": "b", "label": "B"}]}, ["scenarios[1].context_patch"]),
            ({"scenarios": [{"label": "B", "context_patch": {}}]}, ["scenarios[0].scenario_id"]),
            ({"scenarios": [{**THIN, "patch": {}}]}, ["scenarios[0].patch"]),
            ({"scenarios": [{**THIN, "context_patch": []}]}, ["scenarios[0].context_patch"]),
            ({"scenarios": [{**THIN, "context_patch": None}]}, ["scenarios[0].context_patch"]),
            ({"scenarios": [{**THIN, "label": ""}]}, ["scenarios[0].label"]),
            ({"scenarios": [{**THIN, "label": "x" * 201}]}, ["scenarios[0].label"]),
            ({"scenarios": [{**THIN, "scenario_id": ""}]}, ["scenarios[0].scenario_id"]),
            ({"scenarios": [{**THIN, "scenario_id": "thin\n"}]}, ["scenarios[0].scenario_id"]),
            ({"scenarios": [{**THIN, "scenario_id": "x" * 121}]}, ["scenarios[0].scenario_id"]),
            ({"scenarios": [THIN, THIN]}, ["scenarios[0].scenario_id", "scenarios[1].scenario_id"]),
            ({"scenario": [THIN]}, ["scenario", "scenarios"]),
        ],
    )
    def test_scenarios_that_are_none_are_told_by_their_place(self, body: Any, fields: list[str]) -> None:
        with pytest.raises(RequestRefused) as refusal:
            read_counterfactuals(body)
        assert refusal.value.code == "COUNTERFACTUAL_SCENARIOS_INVALID"
        assert [error.field for error in refusal.value.errors] == fields

    @pytest.mark.parametrize("member", [{"response_view": "whole"}, {"view": "full"}, {"scenarios_2": []}])
    def test_what_else_is_wrong_has_the_code_of_any_body(self, member: dict[str, Any]) -> None:
        with pytest.raises(RequestRefused) as refusal:
            read_counterfactuals({"scenarios": [THIN], **member})
        assert refusal.value.code == "SVC_API_REQUEST_INVALID"
        assert [error.field for error in refusal.value.errors] == list(member)

    def test_a_scenario_without_a_label_goes_by_its_id(self) -> None:
        asked = read_counterfactuals({"scenarios": [{"scenario_id": "b", "context_patch": {}}]})
        assert [(scenario.scenario_id, scenario.label) for scenario in asked.scenarios] == [("b", "b")]

    def test_ids_and_labels_reach_to_their_limits(self) -> None:
        longest = {"scenario_id": "9" * 120, "label": "\u0000" * 200, "context_patch": {}}
        assert len(read_counterfactuals({"scenarios": [longest]}).scenarios) == 1


class TestPatchedContexts:
    """A scenario's context must be one that a decision would take."""

    @pytest.mark.parametrize(
        ("patch", "fields"),
        [
            ({"inputs": 5}, ["scenarios[1].context_patch.inputs"]),
            ({"inputs": []}, ["scenarios[1].context_patch.inputs"]),
            ({"workflow": 1}, ["scenarios[1].context_patch.workflow"]),
            ({"action": "pay"}, ["scenarios[1].context_patch.action"]),
            ({"inputs": {"a": [{"runtime_binding": 1}]}}, ["scenarios[1].context_patch.inputs.a[0].runtime_binding"]),
        ],
    )
    def test_what_a_decision_would_refuse_is_told_by_its_place(self, patch: dict[str, Any], fields: list[str]) -> None:
        with pytest.raises(RequestRefused) as refusal:
            facts_of_scenarios(sample_request()["context"], [scenario({}), scenario(patch)])
        assert refusal.value.code == "COUNTERFACTUAL_SCENARIOS_INVALID"
        assert [error.field for error in refusal.value.errors] == fields

    def test_all_of_them_are_told_at_once_and_no_more_than_fit(self) -> None:
        with pytest.raises(RequestRefused) as refusal:
            facts_of_scenarios({}, [scenario({"workflow": 1, "mutation": 1})] * 40)
        assert len(refusal.value.errors) == 50

    def test_a_scenario_starts_from_the_stored_facts_and_not_from_the_one_before(self) -> None:
        context = sample_request()["context"]
        facts = facts_of_scenarios(
            context, [scenario({"inputs": {"margin_percent": 1}}), scenario({}), scenario({"inputs": None})]
        )
        assert facts == [{"discount_percent": 10, "margin_percent": 1}, context["inputs"], {}]


class TestSimulation:
    """What the rulebook would say."""

    def test_each_scenario_is_held_against_the_stored_record(self) -> None:
        answer = simulated([{}, {"inputs": {"margin_percent": 10}}, {"inputs": {"discount_percent": 90}}])
        assert [
            (told["verdict"], told["application_verdict"], told["reason_code"], told["recommendation"])
            for told in answer["scenarios"]
        ] == [
            ("yes", "APPROVE", "STANDARD_EXCEPTION_ALLOWED", "no_change"),
            ("no", "BLOCK", "MARGIN_FLOOR_BREACH", "would_block"),
            ("review", "REVIEW", "NO_RULE_MATCHED", "would_hold"),
        ]
        assert answer["scenarios"][0]["diff"] == []
        assert answer["scenarios"][1]["diff"] == [
            {"field": name, "stored": answer["base"][name], "scenario": answer["scenarios"][1][name]}
            for name in SCENARIO_FIELDS
        ]

    @pytest.mark.parametrize(
        ("patch", "changed"),
        [
            ({}, False),
            ({"margin_percent": 30}, False),
            ({"context": {"inputs": {"margin_percent": 30}}}, False),
            ({"workflow": "renewals"}, False),
            ({"inputs": {}}, False),
            ({"inputs": {"margin_percent": 22.0}}, False),
            ({"inputs": {"unknown": None}}, False),
            ({"inputs": {"margin_percent": 23}}, True),
            ({"inputs": {"margin_percnt": 30}}, True),
            ({"inputs": {"margin_percent": True}}, True),
            ({"inputs": None}, True),
        ],
    )
    def test_it_is_told_whether_the_facts_are_others(self, patch: dict[str, Any], changed: bool) -> None:
        (told,) = simulated([patch], view="minimal")["scenarios"]
        assert told["facts_changed"] is changed
        assert changed or told["recommendation"] == "no_change"

    def test_a_fact_that_is_taken_away_is_missing(self) -> None:
        (told,) = simulated([{"inputs": {"margin_percent": None}}])["scenarios"]
        assert (told["verdict"], told["reason_code"], told["matched_rule_id"]) == (
            "review",
            "INPUT_SCHEMA_FAILED",
            None,
        )
        assert told["evidence"] == ["INPUT_SCHEMA_FAILED", "schema:failed"]
        assert told["evaluation"]["missing_fields"] == ["margin_percent"]

    def test_a_blocked_decision_would_proceed(self) -> None:
        request = sample_request(discount_percent=10, margin_percent=3)
        better = scenario({"inputs": {"margin_percent": 30}})
        facts = facts_of_scenarios(request["context"], [better])
        answer = simulate(make_record(request), load(sample_rulebook()), [better], facts, "full")
        assert (answer["base"]["verdict"], answer["scenarios"][0]["recommendation"]) == ("no", "would_proceed")
        assert (answer["simulation_only"], answer["authorizes_mutation"]) == (True, False)

    def test_another_reason_for_the_same_verdict_is_said(self) -> None:
        renamed = sample_rulebook()
        renamed["rules"][1]["outcome"]["reason_code"] = "STILL_ALLOWED"
        (told,) = simulated([{}], rulebook={**renamed, "version": "2"})["scenarios"]
        assert (told["recommendation"], [entry["field"] for entry in told["diff"]]) == ("same_verdict", ["reason_code"])

    def test_the_rulebook_of_now_is_named_and_asked(self) -> None:
        answer = simulated([{}], rulebook=stricter_rulebook())
        assert answer["rulebook"] == load(stricter_rulebook()).reference
        assert (answer["base"]["verdict"], answer["scenarios"][0]["verdict"]) == ("yes", "no")

    @pytest.mark.parametrize("view", ["minimal", "standard", "full"])
    def test_the_answer_follows_its_schema_and_hashes_to_its_hash_in_every_view(self, view: str) -> None:
        answer = simulated([{}, {"inputs": None}], view=view)
        jsonschema.Draft202012Validator(resources.schema("counterfactuals-result")).validate(answer)
        rest = {name: value for name, value in answer.items() if name != "counterfactual_hash"}
        assert answer["counterfactual_hash"] == content_hash(rest)
        shown = {"minimal": set(), "standard": {"evidence"}, "full": {"evidence", "evaluation"}}[view]
        assert answer["scenarios"][0].keys() & {"evidence", "evaluation"} == shown

    def test_the_same_question_has_the_same_answer(self) -> None:
        patches = [{"inputs": {"margin_percent": number}} for number in range(20)]
        assert simulated(patches) == simulated(patches)

    @settings(max_examples=examples(size(40, 100)))
    @given(rulebooks_and_facts(), st.dictionaries(st.sampled_from(("amount", "count", "risk")), json_values(1)))
    def test_a_second_evaluator_says_the_same_of_patched_facts(
        self, case: tuple[dict[str, Any], dict[str, Any]], change: dict[str, Any]
    ) -> None:
        rulebook, facts = case
        patch = scenario({"inputs": change})
        given_facts = facts_of_scenarios({"inputs": facts}, [patch])
        (told,) = simulate(make_record(), load(rulebook), [patch], given_facts, "full")["scenarios"]
        expected = reference.evaluate(rulebook, patched_in_place(copy.deepcopy(facts), change))
        assert [told[name] for name in SCENARIO_FIELDS] == [
            expected[name] for name in ("decision", "verdict", "action", "reason_code", "matched_rule_id")
        ]
        assert same_json(told["evaluation"], expected["evaluation"])


def test_the_published_examples_are_what_a_simulation_answers() -> None:
    request = example("counterfactuals-request")
    asked = read_counterfactuals(request)
    facts = facts_of_scenarios(sample_request()["context"], asked.scenarios)
    answer = simulate(make_record(), load(sample_rulebook()), asked.scenarios, facts, asked.view or "full")
    assert example("counterfactuals-result") == answer


def test_a_large_context_leaves_room_for_fewer_scenarios() -> None:
    context = {"inputs": {"lines": ["x" * 1000] * 1000}}
    assert len(facts_of_scenarios(context, [scenario({})] * 4)) == 4
    with pytest.raises(RequestRefused) as refusal:
        facts_of_scenarios(context, [scenario({})] * 5)
    assert refusal.value.code == "COUNTERFACTUAL_SCENARIOS_INVALID"
    (fault,) = refusal.value.errors
    assert (fault.field, fault.code) == ("scenarios", "too_large")
    assert "at most 4" in fault.message
