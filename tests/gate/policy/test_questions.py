"""Questions: their members are within bounds or they are not made, and they travel unchanged."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding import resources
from gate.errors import OperatorError
from gate.policy.bounds import Bound, Moment, OneOf, Share, Text, Whole
from gate.policy.questions import (
    AlertsQuestion,
    AnomaliesQuestion,
    BenchmarksQuestion,
    ConfidenceQuestion,
    CounterfactualsQuestion,
    EffectivenessQuestion,
    LakeQuestion,
    MigrationReportQuestion,
    Question,
    dump_question,
    load_question,
)
from tests.gate.policy.counting import tried

POLICY: Final = "/api/decision/policies/{policy_id}"
PATHS: Final[Mapping[str, type[Question]]] = {
    f"{POLICY}/effectiveness": EffectivenessQuestion,
    f"{POLICY}/confidence": ConfidenceQuestion,
    f"{POLICY}/anomalies": AnomaliesQuestion,
    f"{POLICY}/benchmarks": BenchmarksQuestion,
    "/api/policy-alerts": AlertsQuestion,
}

versions = st.none() | st.text()
limits = st.none() | st.integers(1, 1_000_000)
samples = st.integers(1, 10_000)


@st.composite
def narrowed(draw: st.DrawFn, /, kind: type[Question], **members: st.SearchStrategy[Any]) -> Any:
    """A question about some of a policy's decisions."""
    zones = st.timezones() | st.just(UTC)
    moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=zones) | st.none()  # noqa: DTZ001
    since, until = sorted((draw(moments), draw(moments)), key=lambda at: (at is not None, at or datetime.now(UTC)))
    # A span that ends as it begins is refused.
    until = None if until == since else until
    if until is not None and since is None:
        since, until = draw(st.sampled_from([(None, until), (until, None)]))
    drawn = {name: draw(strategy) for name, strategy in members.items()}
    verdict = draw(st.none() | st.sampled_from(["yes", "no", "review"]))
    return kind.of({"policy_id": draw(st.text()), **drawn, "verdict": verdict, "since": since, "until": until})


clocks = st.sampled_from(["recorded", "occurred"])
questions: st.SearchStrategy[LakeQuestion] = st.one_of(
    narrowed(EffectivenessQuestion, policy_version=versions, limit=limits, min_sample=samples, clock=clocks),
    narrowed(ConfidenceQuestion, policy_version=versions, limit=limits, min_sample=samples, clock=clocks),
    narrowed(AnomaliesQuestion, clock=clocks),
    narrowed(BenchmarksQuestion),
    st.builds(
        AnomaliesQuestion,
        st.text(),
        policy_version=versions,
        limit=limits,
        min_sample=samples,
        threshold=st.floats(0, 1) | st.sampled_from([0, 1]),
        max_items=st.integers(1, 200),
    ),
    st.builds(AlertsQuestion, open_days=st.integers(1, 400)),
    st.builds(
        BenchmarksQuestion,
        st.text(),
        policy_version=versions,
        limit=limits,
        min_cohort_scopes=st.integers(5, 1000),
        min_cohort_decisions=st.integers(50, 1_000_000),
    ),
    st.builds(MigrationReportQuestion, migration_id=st.text(), format=st.sampled_from(["markdown", "html"])),
)


def refused(kind: type[Question], **members: object) -> str:
    """The sentence that a question is refused with."""
    with pytest.raises(OperatorError) as caught:
        kind.of(members)
    assert caught.value.code == "ENGINE_ARGUMENT_INVALID"
    return caught.value.message


@tried
@given(questions)
def test_a_question_arrives_as_it_was_sent(question: LakeQuestion) -> None:
    assert load_question(orjson.loads(orjson.dumps(dump_question(question)))) == question
    assert type(load_question(dump_question(question))) is type(question)


def test_a_question_is_dumped_by_the_name_of_its_report_with_every_member() -> None:
    assert dump_question(AlertsQuestion()) == {"report": "policy_alerts", "open_days": 90}
    assert dump_question(BenchmarksQuestion("p", limit=7)) == {
        "report": "benchmarks",
        "policy_id": "p",
        "policy_version": None,
        "verdict": None,
        "since": None,
        "until": None,
        "clock": "recorded",
        "limit": 7,
        "min_cohort_scopes": 5,
        "min_cohort_decisions": 50,
    }


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({}, KeyError),
        ({"report": "none"}, KeyError),
        ({"report": "effectiveness", "policy_id": "p", "clock": "wall"}, OperatorError),
        ({"report": "effectiveness", "policy_id": "p", "since": "yesterday"}, ValueError),
        ({"report": "benchmarks", "policy_id": "p", "clock": "occurred"}, OperatorError),
        ({"report": "counterfactuals", "policy_id": "p"}, KeyError),
        ({"report": "effectiveness"}, TypeError),
        ({"report": "effectiveness", "policy_id": "p", "threshold": 0.5}, TypeError),
        ({"report": "effectiveness", "policy_id": "p", "limit": 0}, OperatorError),
        ({"report": "effectiveness", "policy_id": 7}, OperatorError),
        ({"report": "migration", "migration_id": "m"}, TypeError),
        ({"report": "migration", "migration_id": "m", "format": "pdf"}, OperatorError),
    ],
)
def test_what_is_no_question_for_the_lake_is_not_loaded(document: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        load_question(document)


def published(schema: Mapping[str, Any]) -> Bound:
    """The bound that the published contract gives a parameter."""
    match schema:
        case {"type": "string", "enum": words}:
            return OneOf(tuple(words))
        case {"type": "string", "format": "date-time"}:
            return Moment()
        case {"type": "string"}:
            return Text()
        case {"type": "integer"}:
            return Whole(schema["minimum"], schema["maximum"])
    assert (schema["type"], schema["minimum"], schema["maximum"]) == ("number", 0, 1)
    return Share()


@pytest.mark.parametrize("path", PATHS)
def test_names_bounds_and_defaults_are_those_of_the_contract(path: str) -> None:
    document = json.loads(resources.path("schemas", "openapi.json").read_bytes())
    shared = document["components"]["parameters"]
    every = [
        shared[one["$ref"].split("/")[-1]] if "$ref" in one else one
        for one in document["paths"][path]["get"]["parameters"]
    ]
    parameters = [one for one in every if one["in"] == "query"]
    kind = PATHS[path]
    bounds = {name: bound for name, bound in kind.bounds().items() if name != "policy_id"}
    assert bounds == {one["name"]: published(one["schema"]) for one in parameters}
    by_name = {member.name: member.default for member in dataclasses.fields(kind)}
    for one in parameters:
        assert by_name[one["name"]] == one["schema"].get("default")


@pytest.mark.parametrize(
    ("kind", "members", "sentence"),
    [
        (EffectivenessQuestion, {"limit": 0}, "limit is 0: give a whole number from 1 to 1,000,000, or None for all."),
        (EffectivenessQuestion, {"limit": True}, "limit is True: give a whole number from 1 to 1,000,000, or None"),
        (
            EffectivenessQuestion,
            {"min_sample": None},
            "min_sample is a NoneType: give a whole number from 1 to 10,000.",
        ),
        (EffectivenessQuestion, {"policy_version": 1}, "policy_version is 1: give a string, or None for all."),
        (EffectivenessQuestion, {"policy_id": None}, "policy_id is a NoneType: give a string."),
        (ConfidenceQuestion, {"verdict": "y\0"}, r"verdict is 'y\x00': give yes, no or review, or None for all."),
        (ConfidenceQuestion, {"verdict": ["yes"]}, "verdict is a list: give yes, no or review, or None for all."),
        (ConfidenceQuestion, {"action": 5, "verdict": "x"}, "verdict is 'x'"),
        (AnomaliesQuestion, {"threshold": 1.1}, "threshold is 1.1: give a number from 0 to 1."),
        (AnomaliesQuestion, {"threshold": float("nan")}, "threshold is nan: give a number from 0 to 1."),
        (AnomaliesQuestion, {"max_items": 201}, "max_items is 201: give a whole number from 1 to 200."),
        (BenchmarksQuestion, {"min_cohort_scopes": 4}, "min_cohort_scopes is 4: give a whole number from 5 to 1,000."),
        (CounterfactualsQuestion, {"since": "2026", "rulebook": 7}, "since is '2026': give a datetime or a date"),
        (CounterfactualsQuestion, {"patch": [1]}, "patch is a list: give a mapping"),
        (CounterfactualsQuestion, {"rulebook": "r" * 99}, f"rulebook is '{'r' * 79}...: give the body of a rulebook"),
    ],
)
def test_a_member_out_of_bounds_is_refused_in_a_sentence(
    kind: type[Question], members: dict[str, object], sentence: str
) -> None:
    assert refused(kind, **{"policy_id": "p", **members}).startswith(sentence)


def test_alerts_are_open_from_one_day_to_four_hundred() -> None:
    for days in (0, 401, 1.0, "5", None):
        assert refused(AlertsQuestion, open_days=days).endswith("give a whole number from 1 to 400.")


def test_a_question_stays_as_it_was_made() -> None:
    question = EffectivenessQuestion("p")
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.limit = 7  # type: ignore[misc]
    assert {question: "asked"}[EffectivenessQuestion("p", limit=None)] == "asked"


def test_a_slice_is_told_in_moments_and_its_patch_is_a_copy() -> None:
    patch: dict[str, Any] = {"customer": {"tier": "gold"}}
    question = CounterfactualsQuestion("p", since=date(2026, 6, 8), patch=patch)
    assert question.since == datetime(2026, 6, 8, tzinfo=UTC)
    changes = question.changes()
    changes["customer"]["tier"] = "silver"
    assert patch == question.changes() == {"customer": {"tier": "gold"}}
    assert CounterfactualsQuestion("p").changes() == {}
