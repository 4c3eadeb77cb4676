"""What the four policy services answer: every verdict and every code, on the days where they change."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding.canonical import content_hash
from gate.services.policies.messages import _SENTENCES
from gate.services.policies.questions import BY_SERVICE, QUESTIONS, UNKNOWN
from tests.gate.services.policies.tables import NOW, TABLES, ask
from tests.support.samples import cases

CASES = cases("policy_answers")

FAVOURABLE = {"ALLOWED", "FREE_CANCEL", "RETURNABLE", "TRIAL_AVAILABLE"}
NO_TABLE_CAN_CARRY_IT = "POLICY_INCOMPLETE"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['service']}: {case['name']}")
def test_an_answer_is_as_the_table_of_cases_says(case: dict[str, Any]) -> None:
    answer = ask(case["service"], case["arguments"])
    assert (answer["verdict"], answer["code"]) == (case["verdict"], case["code"])
    assert answer["verdict"] in BY_SERVICE[case["service"]].verdicts
    assert answer["message"].endswith(".")
    assert "  " not in answer["message"]
    assert answer["binding"] is False


def test_the_cases_have_every_verdict_and_every_code() -> None:
    assert {(case["service"], case["verdict"]) for case in CASES} == {
        (question.service, verdict) for question in QUESTIONS for verdict in question.verdicts
    }
    for question in QUESTIONS:
        rules = {rule["outcome"]["reason_code"] for rule in question.rulebook.body["rules"]}
        met = {case["code"] for case in CASES if case["service"] == question.service}
        # An entry whose source was never verified is review_only, or else the table is refused.
        assert rules - met == {"SOURCE_UNVERIFIED"}
        assert rules | {NO_TABLE_CAN_CARRY_IT, "DAYS_MISSING"} <= _SENTENCES.keys()


def test_an_answer_names_its_source_its_rulebook_and_its_table() -> None:
    answer = ask("refund", {"vendor": "North Books", "days_since_purchase": 13})
    assert answer["source"] == {"url": "https://example.com/policy", "last_verified": "2026-11-01", "age_days": 27}
    assert answer["message"] == "The window of North Books is 14 days; 1 day is left."
    assert answer["rulebook"] == BY_SERVICE["refund"].rulebook.reference
    assert answer["policy_table"] == {"service": "refund", "hash": TABLES["refund"].hash}
    assert answer["terms"] == {"windows": {"refund_days": 14}}
    assert answer["answered_at"] == "2026-11-28T12:00:00.000Z"


def test_the_attestation_is_unsigned_and_anyone_can_recompute_it() -> None:
    answer = ask("refund", {"vendor": "north-books", "days_since_purchase": 3.5})
    attestation = answer["attestation"]
    assert attestation["signature"]["status"] == "unsigned"
    assert not attestation["signature"].get("signature")
    assert attestation["bundle"]["input_hash"] == content_hash(answer["facts"])
    assert attestation["bundle_hash"] == content_hash(attestation["bundle"])
    assert attestation["bundle"]["rulebook"] == answer["rulebook"]
    outcome = BY_SERVICE["refund"].rulebook.evaluator.decide(answer["facts"])
    assert (outcome.verdict, outcome.reason_code) == (answer["verdict"], answer["code"])


def test_an_entry_stops_to_answer_after_its_days() -> None:
    arguments = {"vendor": "north-books", "days_since_purchase": 3}
    verified = NOW - timedelta(days=27)
    assert ask("refund", arguments, verified + timedelta(days=180))["verdict"] == "ALLOWED"
    stale = ask("refund", arguments, verified + timedelta(days=181))
    assert (stale["verdict"], stale["code"]) == (UNKNOWN, "SOURCE_STALE")
    assert "181 days ago" in stale["message"]
    # A clock behind the day of the verification makes nothing stale.
    assert ask("refund", arguments, verified - timedelta(days=5))["verdict"] == "ALLOWED"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_NAMES = (
    "vendor",
    "region",
    "plan",
    "days_since_purchase",
    "days_since_start",
    "days_since_delivery",
    "conditions_met",
)


@given(st.sampled_from(QUESTIONS), st.dictionaries(st.sampled_from(_NAMES), _JSON))
def test_whatever_is_asked_is_answered(question: Any, arguments: dict[str, Any]) -> None:
    assert ask(question.service, arguments)["verdict"] in question.verdicts


_FAVOURED = [case for case in CASES if case["verdict"] in FAVOURABLE]


@given(st.sampled_from([case for case in _FAVOURED if case["service"] in ("refund", "return")]), _JSON)
def test_days_that_are_no_number_never_give_a_favourable_verdict(case: dict[str, Any], odd: Any) -> None:
    days = next(name for name in case["arguments"] if name.startswith("days_"))
    if isinstance(odd, bool) or not isinstance(odd, int | float) or not 0 <= odd <= 36500:
        answer = ask(case["service"], {**case["arguments"], days: odd})
        assert (answer["verdict"], answer["code"]) == (UNKNOWN, "DAYS_MISSING")


@pytest.mark.parametrize("case", _FAVOURED, ids=lambda case: f"{case['service']}: {case['name']}")
def test_an_answer_without_one_of_its_arguments_is_never_more_favourable_than_its_table(case: dict[str, Any]) -> None:
    for name in case["arguments"]:
        left = {other: value for other, value in case["arguments"].items() if other != name}
        answer = ask(case["service"], left)
        if name in ("vendor", "conditions_met"):
            assert answer["verdict"] == UNKNOWN
