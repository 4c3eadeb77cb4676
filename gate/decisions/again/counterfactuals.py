"""Counterfactuals: what the current rulebook would say if the context had been another.

    merge_patch({"inputs": {"margin_percent": 22}}, {"inputs": {"margin_percent": 10}})

Simulation only: nothing here is stored, signed or dated, and nothing authorizes a mutation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NotRequired, TypedDict, cast, overload

from gate.decisions.again.replay import differences
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.shapes import MAX_ERRORS, shape, to_mend
from gate.encoding.strict_json import JsonObject
from gate.errors import FieldError, RequestRefused
from gate.labels import COUNTERFACTUALS
from gate.records.documents import Record
from gate.records.envelope import evidence_codes
from gate.records.request import check_request
from gate.rulebooks.documents import Evaluation, RulebookReference
from gate.rulebooks.evaluation import Explained
from gate.rulebooks.rulebook import Rulebook

SCENARIO_FIELDS: Final = ("verdict", "application_verdict", "action", "reason_code", "matched_rule_id")
"""What a scenario answers, and is held against the stored record in."""

_WOULD: Final[Mapping[str, str]] = {"yes": "would_proceed", "no": "would_block", "review": "would_hold"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One question: what if the context were patched like this?

    Attributes:
        scenario_id: The caller's id for it, unique in the request.
        label: A name for people; the id of the scenario if the caller gives none.
        context_patch: An RFC 7396 merge patch over the stored context.
        adapter_input_patch: One over the stored input of the adapter; None where there is none.
    """

    scenario_id: str
    label: str
    context_patch: JsonObject
    adapter_input_patch: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class CounterfactualsRequest:
    """A body of `POST .../counterfactuals`.

    Attributes:
        scenarios: The scenarios, in the caller's order.
        view: The view that the body asks for, if it does.
    """

    scenarios: tuple[Scenario, ...]
    view: str | None


class SimulatedOutcome(TypedDict):
    """The outcome of a scenario: `SCENARIO_FIELDS`."""

    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None


class SimulatedScenario(SimulatedOutcome):
    """The answer to one scenario; the minimal view has no evidence, and only the full one an evaluation."""

    scenario_id: str
    label: str
    facts_changed: bool
    diff: list[dict[str, object]]
    recommendation: str
    evidence: NotRequired[list[str]]
    evaluation: NotRequired[Evaluation]


class UnhashedCounterfactuals(TypedDict):
    """What `counterfactual_hash` covers."""

    decision_counterfactuals_version: str
    decision_id: str
    simulation_only: bool
    authorizes_mutation: bool
    rulebook: RulebookReference
    base: dict[str, object]
    scenarios: list[SimulatedScenario]


class Counterfactuals(UnhashedCounterfactuals):
    """The answer to counterfactuals; `schemas/counterfactuals-result.schema.json`."""

    counterfactual_hash: str


MAX_MATERIAL: Final = 4 * 1024 * 1024
"""How many bytes of context the scenarios of a request may have together; each costs as much as a decision."""


class _ScenarioBody(TypedDict):
    scenario_id: str
    label: NotRequired[str]
    context_patch: JsonObject
    adapter_input_patch: NotRequired[JsonObject]


class _CounterfactualsBody(TypedDict):
    """A body that `schemas/counterfactuals-request.schema.json` lets pass."""

    scenarios: list[_ScenarioBody]
    response_view: NotRequired[str]


def read_counterfactuals(body: object) -> CounterfactualsRequest:
    """Reads a parsed body.

    Raises:
        RequestRefused: `COUNTERFACTUAL_SCENARIOS_INVALID` where scenarios are missing or invalid, else
            `SVC_API_REQUEST_INVALID`.
    """
    errors = shape("counterfactuals-request").errors(body)
    if any(error.field.partition("[")[0] in ("", "scenarios") for error in errors):
        raise invalid_scenarios(errors)
    if errors:
        raise RequestRefused(
            "SVC_API_REQUEST_INVALID", to_mend("The body is not a Counterfactuals Request", errors), errors
        )
    asked = cast("_CounterfactualsBody", body)
    counts = Counter(scenario["scenario_id"] for scenario in asked["scenarios"])
    repeated = [
        FieldError(
            f"scenarios[{index}].scenario_id",
            "duplicate",
            "Several scenarios have this id. Give each scenario its own id.",
        )
        for index, scenario in enumerate(asked["scenarios"])
        if counts[scenario["scenario_id"]] > 1
    ]
    if repeated:
        raise invalid_scenarios(repeated)
    return CounterfactualsRequest(
        tuple(
            Scenario(
                scenario["scenario_id"],
                scenario.get("label", scenario["scenario_id"]),
                scenario["context_patch"],
                scenario.get("adapter_input_patch"),
            )
            for scenario in asked["scenarios"]
        ),
        asked.get("response_view"),
    )


def invalid_scenarios(errors: Sequence[FieldError]) -> RequestRefused:
    """The refusal of scenarios with these faults."""
    return RequestRefused(
        "COUNTERFACTUAL_SCENARIOS_INVALID", to_mend("The scenarios cannot be simulated", errors), errors
    )


@overload
def merge_patch(target: object, patch: JsonObject) -> dict[str, object]: ...


@overload
def merge_patch(target: object, patch: object) -> object: ...


def merge_patch(target: object, patch: object) -> object:
    """A JSON value with a merge patch applied (RFC 7396, section 2); neither is changed.

    A member that the patch gives null is removed, an object is merged member by member, and everything else replaces.
    """
    if not isinstance(patch, dict):
        return patch
    merged: dict[str, object] = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def facts_of_scenarios(context: Mapping[str, object], scenarios: Sequence[Scenario]) -> list[Mapping[str, object]]:
    """The facts of each scenario of a decision whose request carried its facts.

    Args:
        context: The stored context.
        scenarios: The scenarios.

    Raises:
        RequestRefused: `COUNTERFACTUAL_SCENARIOS_INVALID`: a patched context is one that a decision would refuse, or
            the scenarios together are more than is simulated at a time.
    """

    def patched(scenario: Scenario, at: str) -> tuple[Mapping[str, object], list[FieldError]]:
        merged = merge_patch(context, scenario.context_patch)
        faults = _faults({"context": merged}, {"context": f"{at}.context_patch"})
        if scenario.adapter_input_patch is not None:
            message = "The facts of this decision came in its request. Patch them in context_patch.inputs."
            faults.append(FieldError(f"{at}.adapter_input_patch", "no_adapter", message))
        inputs = merged.get("inputs")
        # Inputs of another type are among the faults.
        return inputs if isinstance(inputs, dict) else {}, faults

    return _each(scenarios, len(canonical(context)), patched)


def adapter_inputs_of_scenarios(
    context: Mapping[str, object], adapter: Mapping[str, object], scenarios: Sequence[Scenario]
) -> list[Mapping[str, object]]:
    """The input that an adapter is given in each scenario of a decision whose facts came from it.

    Args:
        context: The stored context.
        adapter: The stored invocation.
        scenarios: The scenarios.

    Raises:
        RequestRefused: `COUNTERFACTUAL_SCENARIOS_INVALID`, as above.
    """

    def patched(scenario: Scenario, at: str) -> tuple[Mapping[str, object], list[FieldError]]:
        given = merge_patch(adapter["input"], scenario.adapter_input_patch or {})
        body = {"context": merge_patch(context, scenario.context_patch), "adapter": {**adapter, "input": given}}
        places = {"context": f"{at}.context_patch", "adapter.input": f"{at}.adapter_input_patch"}
        return given, _faults(body, places)

    return _each(scenarios, len(canonical(context)) + len(canonical(adapter)), patched)


def _each(
    scenarios: Sequence[Scenario],
    size: int,
    patched: Callable[[Scenario, str], tuple[Mapping[str, object], list[FieldError]]],
) -> list[Mapping[str, object]]:
    room = MAX_MATERIAL // max(1, size)
    if len(scenarios) > max(1, room):
        fault = FieldError(
            "scenarios", "too_large", f"The stored context is large. Send at most {max(1, room)} at a time."
        )
        raise invalid_scenarios([fault])
    found = [patched(scenario, f"scenarios[{index}]") for index, scenario in enumerate(scenarios)]
    if errors := [error for _, faults in found for error in faults]:
        raise invalid_scenarios(errors[:MAX_ERRORS])
    return [value for value, _ in found]


def _faults(body: Mapping[str, object], places: Mapping[str, str]) -> list[FieldError]:
    """What makes a patched request one that a decision would refuse.

    Args:
        body: What was patched of the request; of the rest nothing is at fault.
        places: Which patch was merged into what.
    """

    def at(field: str) -> str:
        patched = next(name for name in places if field == name or field.startswith(f"{name}."))
        return places[patched] + field.removeprefix(patched)

    try:
        check_request({"mode": "rulebook", "rulebook": {}, **body})
    except RequestRefused as refusal:
        if refusal.errors:
            return [FieldError(at(error.field), error.code, error.message) for error in refusal.errors]
        if "forbidden_fields" in refusal.details:
            message = "This field belongs to responses and is not allowed in requests. Remove it from the patch."
            return [FieldError(at(name), "output_material", message) for name in refusal.details["forbidden_fields"]]
        message = "The facts of this decision come from its adapter. Use adapter_input_patch instead."
        return [FieldError(at("context.inputs"), "adapter_facts", message)]
    return []


def simulate(
    stored: Record,
    rulebook: Rulebook,
    scenarios: Sequence[Scenario],
    facts: Sequence[Mapping[str, object]],
    view: str,
) -> Counterfactuals:
    """The answer to counterfactuals.

    Args:
        stored: The stored record.
        rulebook: The rulebook that the scope would decide by now.
        scenarios: The scenarios.
        facts: The facts of each.
        view: minimal, standard (with evidence) or full (with evaluation as well).

    Returns:
        The answer; its hash is H of the rest, as it is answered in the view.
    """
    facts_hash = stored["rulebook_attestation"]["bundle"]["input_hash"]
    answer: UnhashedCounterfactuals = {
        "decision_counterfactuals_version": COUNTERFACTUALS,
        "decision_id": stored["decision_id"],
        "simulation_only": True,
        "authorizes_mutation": False,
        "rulebook": rulebook.reference,
        "base": {name: stored.get(name) for name in SCENARIO_FIELDS},
        "scenarios": [
            _simulated(
                stored,
                scenario,
                rulebook.evaluator.explain(given),
                view,
                facts_changed=content_hash(given) != facts_hash,
            )
            for scenario, given in zip(scenarios, facts, strict=True)
        ],
    }
    return {**answer, "counterfactual_hash": content_hash(answer)}


def _simulated(
    stored: Record, scenario: Scenario, explained: Explained, view: str, *, facts_changed: bool
) -> SimulatedScenario:
    outcome = explained.outcome
    said: SimulatedOutcome = {
        "verdict": outcome.decision,
        "application_verdict": outcome.verdict,
        "action": outcome.action,
        "reason_code": outcome.reason_code,
        "matched_rule_id": outcome.matched_rule_id,
    }
    diff = differences(stored, said, SCENARIO_FIELDS, "scenario")
    answer: SimulatedScenario = {
        "scenario_id": scenario.scenario_id,
        "label": scenario.label,
        "facts_changed": facts_changed,
        "verdict": said["verdict"],
        "application_verdict": said["application_verdict"],
        "action": said["action"],
        "reason_code": said["reason_code"],
        "matched_rule_id": said["matched_rule_id"],
        "diff": diff,
        "recommendation": _recommendation(said["verdict"], [str(difference["field"]) for difference in diff]),
    }
    if view != "minimal":
        answer["evidence"] = evidence_codes(outcome.reason_code, outcome.matched_rule_id, outcome.status)
    if view == "full":
        answer["evaluation"] = explained.evaluation
    return answer


def _recommendation(verdict: str, differing: Sequence[str]) -> str:
    """What a difference comes to: no_change, same_verdict where only the rest differs, else what would happen now."""
    if not differing:
        return "no_change"
    return _WOULD[verdict] if "verdict" in differing else "same_verdict"
