"""What the four policy services answer: every verdict and every code, on the days where they change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding.canonical import content_hash
from gate.services.policies.messages import _SENTENCES
from gate.services.policies.questions import BY_SERVICE, QUESTIONS, UNKNOWN
from gate.services.policies.regions import COUNTRIES
from tests.gate.services.policies.tables import NOW, TABLES, ask
from tests.support.samples import cases

CASES = cases("policy_answers")

FAVOURABLE = {"ALLOWED", "FREE_CANCEL", "RETURNABLE", "TRIAL_AVAILABLE"}
# Another list of the same codes: each line has a code, a tab and the country.
ASSIGNED = {
    line.partition("\t")[0]
    for line in files("tzdata.zoneinfo").joinpath("iso3166.tab").read_text("utf-8").splitlines()
    if not line.startswith("#")
}
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
        # An entry whose source was never verified, or on a day to come, is review_only, or else the table is refused.
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


@pytest.mark.parametrize(
    ("days", "left"), [(13.9, "0.1 days are"), (13.0, "1 day is"), (14, "0 days are"), (0.3, "13.7 days are")]
)
def test_what_is_left_is_counted_as_people_count(days: float, left: str) -> None:
    answer = ask("refund", {"vendor": "North Books", "days_since_purchase": days})
    assert answer["message"] == f"The window of North Books is 14 days; {left} left."


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
    # The day after today has begun elsewhere.
    assert ask("refund", arguments, verified - timedelta(days=1))["source"] == {
        "url": "https://example.com/policy",
        "last_verified": "2026-11-01",
        "age_days": 0,
    }


def test_a_verification_on_a_day_to_come_never_counts() -> None:
    arguments = {"vendor": "north-books", "days_since_purchase": 3}
    early = ask("refund", arguments, datetime(2026, 10, 30, 23, 59, tzinfo=UTC))
    assert (early["verdict"], early["code"]) == (UNKNOWN, "SOURCE_UNVERIFIED")
    assert early["source"] is not None
    assert early["source"]["age_days"] is None
    assert early["message"] == (
        "This entry of North Books has a date of verification in the future, 2026-11-01, so it counts as "
        "unverified. A person must read the source."
    )
    assert ask("refund", {**arguments, "days_since_purchase": 99}, NOW - timedelta(days=99))["verdict"] == UNKNOWN


@pytest.mark.parametrize(
    ("service", "arguments", "message"),
    [
        (
            "refund",
            {"vendor": "mixed-store", "pln": "x", "a\nb": 1},
            "refund_eligibility has no argument 'pln', 'a\\nb'. It has vendor, region, plan, "
            "days_since_purchase, conditions_met.",
        ),
        (
            "trial",
            {"a": 1, "b": 1, "c": 1, "d" * 999: 1, "e": 1},
            "trial_terms has no argument 'a', 'b', 'c' and 2 more. It has vendor, region, plan, conditions_met.",
        ),
        (
            "trial",
            {},
            "Send vendor. The table has dry-code, east-code, north-code, old-code, south-code.",
        ),
        ("refund", {"vendor": 7}, "vendor must be text of 1 to 200 characters."),
        ("refund", {"vendor": "north-books", "plan": 5}, "plan must be text of 1 to 200 characters."),
        ("refund", {"vendor": "north-books", "region": ["DE"]}, "region must be text: a country such as DE or US-CA."),
        (
            "refund",
            {"vendor": "mixed-store", "region": "Germany"},
            "'Germany' is not a country of ISO 3166-1. Send region as two letters, such as DE, with a "
            "subdivision where that matters, such as US-CA.",
        ),
        (
            "refund",
            {"vendor": "Mixed Store", "plan": "finalsale"},
            "The policy table has no entry of Mixed Store for that plan. The table has final-sale, student. "
            "Omit plan if it is none of these.",
        ),
        (
            "refund",
            {"vendor": "South Apps", "region": "DE", "plan": "team"},
            "The policy table has no entry of South Apps for that plan. The table has individual.",
        ),
        (
            "refund",
            {"vendor": "South Apps"},
            "South Apps has entries only for single regions. Send region. The table has DE, US.",
        ),
        (
            "refund",
            {"vendor": "South Apps", "region": "DE"},
            "South Apps has entries only for single plans. Send plan. The table has individual.",
        ),
        (
            "refund",
            {"vendor": "mixed-store", "region": "DE-BY"},
            "The entry of Mixed Store for region DE and every plan allows no refund.",
        ),
        (
            "refund",
            {"vendor": "mixed-store", "plan": "Final Sale"},
            "The entry of Mixed Store for every region and plan final-sale allows no refund.",
        ),
        (
            "return",
            {"vendor": "north-shop", "plan": "gift cards"},
            "The entry of North Shop for every region and plan gift-cards allows no return.",
        ),
        (
            "cancel",
            {"vendor": "far-tv", "region": "US"},
            "The entry of Far TV for region US and every plan charges nothing for canceling a subscription.",
        ),
        (
            "trial",
            {"vendor": "north-code", "plan": "free"},
            "The entry of North Code for every region and plan free has no free trial.",
        ),
    ],
)
def test_a_message_says_which_entry_answered_or_what_to_send(
    service: str, arguments: dict[str, Any], message: str
) -> None:
    assert ask(service, arguments)["message"] == message


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


@given(st.sampled_from(_FAVOURED), st.text(max_size=8), _JSON)
def test_an_argument_that_the_question_does_not_have_never_gives_a_verdict(
    case: dict[str, Any], name: str, odd: Any
) -> None:
    if name not in BY_SERVICE[case["service"]].arguments:
        answer = ask(case["service"], {**case["arguments"], name: odd})
        assert (answer["verdict"], answer["code"]) == (UNKNOWN, "ARGUMENT_UNKNOWN")


@given(st.sampled_from(_FAVOURED), st.text(max_size=8) | st.text("*-ADEUKadeuk", max_size=6))
def test_a_region_that_is_no_country_never_gives_a_verdict(case: dict[str, Any], region: str) -> None:
    if region.strip().upper().partition("-")[0] not in ASSIGNED:
        answer = ask(case["service"], {**case["arguments"], "region": region})
        assert (answer["verdict"], answer["code"]) == (UNKNOWN, "REGION_UNKNOWN")


@given(st.sampled_from([None, "FR", "US", "US-CA", "US-NY"]), st.text(max_size=12) | st.text("fi nal-se", max_size=11))
def test_a_plan_that_no_entry_names_never_gives_a_verdict(region: str | None, plan: str) -> None:
    if "-".join(plan.casefold().split()) not in ("final-sale", "student"):
        arguments = {"vendor": "mixed-store", "days_since_purchase": 1, "region": region, "plan": plan}
        answer = ask("refund", arguments)
        assert (answer["verdict"], answer["code"]) == (UNKNOWN, "PLAN_UNKNOWN")


def test_the_countries_are_those_that_the_time_zone_database_lists() -> None:
    assert ASSIGNED == COUNTRIES


@pytest.mark.parametrize("case", _FAVOURED, ids=lambda case: f"{case['service']}: {case['name']}")
def test_an_answer_without_one_of_its_arguments_is_never_more_favourable_than_its_table(case: dict[str, Any]) -> None:
    for name in case["arguments"]:
        left = {other: value for other, value in case["arguments"].items() if other != name}
        answer = ask(case["service"], left)
        if name in ("vendor", "conditions_met"):
            assert answer["verdict"] == UNKNOWN
