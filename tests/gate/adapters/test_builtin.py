"""The adapters of this release make the facts that their descriptions say, and the same facts of equal inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.adapters.invocation import TrustedAdapters, accepted_invocation
from gate.adapters.registry import registered
from gate.adapters.worker import Workers
from gate.encoding.canonical import canonical
from tests.independent import adapters as independent
from tests.independent import verifier
from tests.support.adapters import CLAIMS, cases_of, registered_as
from tests.support.tampering import as_doubles

Json = dict[str, Any]
Make = Callable[[Json], Json]

SOLANA = "solana_execution_gate@1.0.0"
REFUND = "refund_facts@1.0.0"
INDEPENDENT: dict[str, Make] = {SOLANA: independent.solana_execution_gate, REFUND: independent.refund_facts}


def in_this_process(name: str) -> Make:
    """The function of an adapter, run without a worker: its source, and nothing of the product."""
    namespace: Json = {}
    exec(registered_as(name).source, namespace)  # noqa: S102 -- the released source
    made: Make = namespace["facts"]
    return made


MADE: dict[str, Make] = {name: in_this_process(name) for name in INDEPENDENT}


def given_to(make: Make, given_: Json) -> bytes:
    """The canonical facts that are made of what a worker is given: the canonical input, read."""
    return verifier.canonical(make(json.loads(canonical(given_))))


@pytest.fixture(scope="module")
def trusted() -> Iterator[TrustedAdapters]:
    """What runs the adapters of this release."""
    opened = TrustedAdapters(registered(), Workers(registered()))
    yield opened
    opened.close()


def by_a_worker(trusted: TrustedAdapters, name: str, given_: Json) -> bytes:
    """The canonical facts that an adapter makes in a worker, its input and its facts held to its schemas."""
    return verifier.canonical(dict(trusted.facts(accepted_invocation(registered_as(name), given_)).values))


@pytest.mark.parametrize("case", cases_of("facts"), ids=lambda case: f"{case['adapter']}: {case['name']}")
def test_facts_are_what_the_description_says(trusted: TrustedAdapters, case: Json) -> None:
    expected = verifier.canonical(case["facts"])
    assert by_a_worker(trusted, case["adapter"], case["input"]) == expected
    assert given_to(INDEPENDENT[case["adapter"]], case["input"]) == expected


# Around the amounts at which one more eighteenth counts, exact and beside them.
_STEPS = st.integers(0, 19).map(lambda eighteenths: 18 * eighteenths + 9.0)
_AMOUNTS = st.one_of(
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    st.integers(1, 2**53 - 1),
    st.integers(1, 400),
    _STEPS,
    st.builds(lambda step, unit: step + unit * step * 2**-52, _STEPS, st.integers(-3, 3)),
)
TRANSFERS = st.fixed_dictionaries(
    {
        "sol_amount": _AMOUNTS,
        "risk_level": st.sampled_from(["low", "medium", "high"]),
        "evidence_level": st.sampled_from(["thin", "usable", "strong"]),
        "quorum_signed": st.booleans(),
        "budget_within_policy": st.booleans(),
        "recipient_verified": st.booleans(),
    }
)

INPUTS = st.one_of(
    st.tuples(st.just(SOLANA), TRANSFERS),
    st.tuples(st.just(REFUND), CLAIMS.filter(lambda claim: not registered_as(REFUND).input_shape.errors(claim))),
)


@given(INPUTS)
def test_facts_are_those_of_an_independent_implementation(case: tuple[str, Json]) -> None:
    name, sent = case
    assert registered_as(name).input_shape.errors(sent) == []
    made = MADE[name](json.loads(canonical(sent)))
    assert verifier.canonical(made) == given_to(INDEPENDENT[name], sent)
    assert registered_as(name).output_shape.errors(made) == []


@given(TRANSFERS)
def test_the_score_and_what_follows_of_it_stay_within_their_bounds(sent: Json) -> None:
    made = MADE[SOLANA](json.loads(canonical(sent)))
    assert 0 <= made["decision_score"] <= 100
    assert made["decision_edge_points"] == made["decision_score"] - 57
    assert 38 <= made["confidence_pct"] <= 94
    assert all(type(made[name]) is int for name in ("decision_score", "decision_edge_points", "confidence_pct"))
    assert made.items() >= json.loads(canonical(sent)).items()


@given(TRANSFERS)
def test_what_speaks_against_a_transfer_never_raises_its_score(sent: Json) -> None:
    def score(**changed: Any) -> int:
        found: int = MADE[SOLANA](json.loads(canonical(sent | changed)))["decision_score"]
        return found

    for name in ("quorum_signed", "budget_within_policy", "recipient_verified"):
        assert score(**{name: False}) <= score(**{name: True})
    assert score(risk_level="high") <= score(risk_level="medium") <= score(risk_level="low")
    assert score(evidence_level="thin") <= score(evidence_level="usable") <= score(evidence_level="strong")
    assert score(sol_amount=sent["sol_amount"] * 1.5 if sent["sol_amount"] < 1e300 else 1e308) <= score()


def respelled(value: Any) -> Any:
    """The same JSON value, its members in another order, and doubles for its integers."""
    if isinstance(value, dict):
        return {name: respelled(item) for name, item in reversed(value.items())}
    return [respelled(item) for item in value] if isinstance(value, list) else as_doubles(value)


@given(INPUTS)
def test_the_order_of_members_and_the_spelling_of_numbers_do_not_matter(case: tuple[str, Json]) -> None:
    name, sent = case
    assert given_to(MADE[name], sent) == given_to(MADE[name], sent) == given_to(MADE[name], respelled(sent))


@given(INPUTS)
def test_what_is_given_is_not_changed_on_the_way(case: tuple[str, Json]) -> None:
    name, sent = case
    read = json.loads(canonical(sent))
    before = json.dumps(read)
    MADE[name](read)
    assert json.dumps(read) == before


def test_workers_make_what_the_source_makes(trusted: TrustedAdapters) -> None:
    """A few of the inputs above, each twice and respelled, through processes of their own."""
    sent = [
        (SOLANA, case["input"] | {"sol_amount": amount})
        for case in cases_of("facts")[:1]
        for amount in (1, 1.5, 27.000000000000004, 1e21, 5e-324, 1.7976931348623157e308, 2**53 - 1)
    ] + [(case["adapter"], case["input"]) for case in cases_of("facts") if case["name"] == "a whole claim"]
    assert len(sent) == 8
    for name, value in sent:
        expected = given_to(INDEPENDENT[name], value)
        for spelled in (value, value, respelled(value)):
            assert by_a_worker(trusted, name, spelled) == expected
