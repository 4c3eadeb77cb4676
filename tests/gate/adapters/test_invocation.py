"""An invocation, from what a request sends to what its record says: checked before anything runs, and after."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import pytest

from gate.adapters.invocation import Invocation, TrustedAdapters, accepted_invocation
from gate.adapters.manifest import Adapter
from gate.adapters.registry import registered
from gate.adapters.worker import WORKERS, Workers
from gate.encoding.canonical import canonical
from gate.errors import AdapterFailed, AdapterRefused
from tests.independent import verifier
from tests.support.adapters import (
    ECHO,
    cases_of,
    invocation_of,
    make_adapter,
    make_failing,
    registered_as,
)

ALL: Final[Sequence[Adapter]] = (
    *registered(),
    make_adapter("echo", ECHO),
    *map(make_failing, cases_of("failing")),
)


@pytest.fixture(scope="module")
def trusted() -> Iterator[TrustedAdapters]:
    """What runs the adapters of this release, one that echoes, and those that fail."""
    opened = TrustedAdapters(ALL, Workers(ALL))
    yield opened
    opened.close()


def refusal(trusted: TrustedAdapters, sent: Any, root: str = "adapter") -> AdapterRefused:
    with pytest.raises(AdapterRefused) as refused:
        trusted.invocation(sent, root=root)
    return refused.value


class TestRead:
    """What a request sends."""

    @pytest.mark.parametrize("case", cases_of("refused"), ids=lambda case: case["name"])
    @pytest.mark.parametrize("root", ["adapter", "input.adapter"])
    def test_the_first_thing_that_is_wrong_is_told_with_its_place(
        self, trusted: TrustedAdapters, case: dict[str, Any], root: str
    ) -> None:
        error = refusal(trusted, case["adapter"], root)
        assert error.code == case["error"]
        expected = [[root + field.removeprefix("adapter"), code] for field, code in case["fields"]]
        assert [[fault.field, fault.code] for fault in error.errors] == expected
        assert error.message.endswith(".")
        assert "{" not in error.message

    @pytest.mark.parametrize("sent", [None, [], "refund_facts@1.0.0", 1, True])
    def test_what_is_no_object_is_no_invocation(self, trusted: TrustedAdapters, sent: Any) -> None:
        error = refusal(trusted, sent)
        assert (error.code, [fault.field for fault in error.errors]) == ("TRUSTED_ADAPTER_INVALID", ["adapter"])

    def test_who_names_no_registered_adapter_is_told_which_there_are(self, trusted: TrustedAdapters) -> None:
        sent = {**invocation_of(ALL[0], {}), "version": "9.9.9"}
        assert refusal(trusted, sent).details == {"registered_adapters": [adapter.name for adapter in ALL]}

    def test_who_sends_another_hash_is_told_both(self, trusted: TrustedAdapters) -> None:
        sent = {**invocation_of(ALL[0], {}), "manifest_hash": "0" * 64}
        expected = {"manifest_hash": "0" * 64, "registered_manifest_hash": ALL[0].manifest_hash}
        assert refusal(trusted, sent).details == expected

    def test_what_is_accepted_is_the_adapter_with_canonical_input(self, trusted: TrustedAdapters) -> None:
        given = {"b": 1.0, "a": -0.0, "é": 1e21, "\U0001f600": 0.5}
        read = trusted.invocation(invocation_of(ALL[2], given))
        assert read == Invocation(ALL[2], verifier.canonical(given))
        assert read.given == '{"a":0,"b":1,"é":1e+21,"😀":0.5}'.encode()

    def test_reading_runs_nothing(self) -> None:
        workers = Workers(ALL)
        TrustedAdapters(ALL, workers).invocation(invocation_of(ALL[2], {}))
        assert workers.process_id() is None


class TestFacts:
    """What comes of a call."""

    @pytest.mark.parametrize("case", cases_of("failing"), ids=lambda case: case["name"])
    def test_a_call_that_goes_wrong_makes_no_facts(self, trusted: TrustedAdapters, case: dict[str, Any]) -> None:
        adapter = make_failing(case)
        with pytest.raises(AdapterFailed) as failed:
            trusted.facts(accepted_invocation(adapter, {"secret": "of the caller"}))
        assert failed.value.code == case["error"]
        assert adapter.name in failed.value.message
        assert failed.value.message.endswith("Nothing was recorded, and nothing is approved.")
        assert "of the caller" not in str(failed.value)
        after = trusted.facts(accepted_invocation(ALL[2], {"x": 1}))
        assert after.values == {"x": 1}

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"x": 0.5},
            {"x": 1e-7},
            {"x": 2**53 - 1, "y": -(2**53) + 1},
            {"x": 1},
            {"x": 1.0},
            {"x": -0.0},
            {"x": 1e21},
            {"x": 1e20},
            {"x": float(2**53)},
            {"x": 5e-324, "y": 1.7976931348623157e308},
            {"x": 0.1 + 0.2},
            {"x": True, "y": False, "z": None, "": ""},
            {"\U0001f600": 1, "\uffff": 2, "é": 3, "z": 4},
            {"x": "\u0000\u2028\u007f\U0001f600"},
            {"x": [[], {}, [{}], {"y": []}]},
        ],
        ids=str,
    )
    def test_numbers_and_texts_go_through_a_worker_as_they_are(
        self, trusted: TrustedAdapters, given: dict[str, Any]
    ) -> None:
        facts = trusted.facts(accepted_invocation(ALL[2], given))
        assert verifier.canonical(dict(facts.values)) == verifier.canonical(given)
        assert facts.trusted_adapter is not None
        hashes = [facts.trusted_adapter[name] for name in ("input_hash", "output_hash")]
        assert hashes == [verifier.canonical_hash(given)] * 2

    def test_what_is_told_of_a_call_is_what_the_wire_format_names(self, trusted: TrustedAdapters) -> None:
        case = next(case for case in cases_of("facts") if case["adapter"] == "solana_execution_gate@1.0.0")
        adapter = registered_as(case["adapter"])
        told = trusted.facts(accepted_invocation(adapter, case["input"])).trusted_adapter
        assert told == {
            "manifest_version": "trusted_adapter_manifest_v1",
            "adapter_id": "solana_execution_gate",
            "version": "1.0.0",
            "implementation_revision": "1",
            "implementation_hash": hashlib.sha256(adapter.source).hexdigest(),
            "manifest_hash": adapter.manifest["manifest_hash"],
            "input_hash": verifier.canonical_hash(case["input"]),
            "output_hash": verifier.canonical_hash(case["facts"]),
            "execution_isolation": "process_one_shot_v1",
            "capability_enforcement": "seccomp_allow_list_v1",
            "execution_timeout_ms": 1000,
        }

    def test_one_call_leaves_nothing_for_the_next(self) -> None:
        source = "SEEN = []\n\n\ndef facts(given):\n    SEEN.append(1)\n    return {'calls': len(SEEN)}\n"
        counting = make_adapter("counting", source)
        opened = TrustedAdapters([counting], Workers([counting]))
        try:
            made = [opened.facts(accepted_invocation(counting, {})).values for _ in range(3)]
        finally:
            opened.close()
        assert made == [{"calls": 1}] * 3

    def test_the_deepest_facts_that_a_request_could_hold_are_facts(self, trusted: TrustedAdapters) -> None:
        value: Any = 1
        for _ in range(31):
            value = [value]
        assert trusted.facts(accepted_invocation(ALL[2], {"x": value})).values == {"x": value}


class TestPinned:
    """The invocation that a record tells of."""

    @pytest.fixture
    def told(self) -> dict[str, Any]:
        return {**ALL[2].dependency, "output_hash": "0" * 64}

    def test_the_adapter_of_the_record_is_found(self, trusted: TrustedAdapters, told: dict[str, Any]) -> None:
        assert trusted.pinned(told, {"x": 1}) == Invocation(ALL[2], canonical({"x": 1}))

    @pytest.mark.parametrize("name", ["adapter_id", "version", "manifest_hash", "implementation_hash"])
    @pytest.mark.parametrize("other", [None, "", "0" * 64, 1, ...], ids=str)
    def test_one_that_differs_in_anything_is_not(
        self, trusted: TrustedAdapters, told: dict[str, Any], name: str, other: Any
    ) -> None:
        changed = {member: value for member, value in told.items() if member != name}
        if other is not ...:
            changed[name] = other
        assert trusted.pinned(changed, {}) is None

    def test_an_input_that_it_does_not_take_is_refused(self, trusted: TrustedAdapters) -> None:
        with pytest.raises(AdapterRefused) as refused:
            trusted.pinned(registered()[1].dependency, {})
        assert refused.value.code == "TRUSTED_ADAPTER_INPUT_INVALID"


ENDLESS: Final = make_adapter("endless", "def facts(given):\n    while True:\n        pass\n", timeout_ms=200)
KIND: Final = make_adapter("kind", "def facts(given):\n    return {'kind': True}\n")


class TestRehearsed:
    """Calls for what is decided beside the ledger."""

    @pytest.fixture
    def opened(self) -> Iterator[TrustedAdapters]:
        opened = TrustedAdapters([ENDLESS, KIND], Workers([ENDLESS, KIND]))
        yield opened
        opened.close()

    def test_each_invocation_has_its_facts(self, opened: TrustedAdapters) -> None:
        made = opened.rehearsed([accepted_invocation(KIND, {"n": n}) for n in range(3)])
        assert [facts.values for facts in made] == [{"kind": True}] * 3
        told = [facts.trusted_adapter for facts in made]
        assert [each and each["input_hash"] for each in told] == [verifier.canonical_hash({"n": n}) for n in range(3)]
        assert opened.rehearsed([]) == []

    def test_they_leave_workers_for_decisions(self, opened: TrustedAdapters) -> None:
        def rehearse() -> str:
            try:
                opened.rehearsed([accepted_invocation(ENDLESS, {})] * 3)
            except AdapterFailed as failure:
                return failure.code
            return ""

        with ThreadPoolExecutor(4 * WORKERS) as pool:
            rehearsals = [pool.submit(rehearse) for _ in range(4 * WORKERS)]
            while not all(rehearsal.done() for rehearsal in rehearsals):
                assert opened.facts(accepted_invocation(KIND, {})).values == {"kind": True}
        assert {rehearsal.result() for rehearsal in rehearsals} == {"TRUSTED_ADAPTER_EXECUTION_TIMEOUT"}

    def test_of_very_many_some_are_refused_at_once(self, opened: TrustedAdapters) -> None:
        waiting = threading.Event()

        @contextmanager
        def told() -> Iterator[None]:
            waiting.wait(60)
            yield

        opened.waiting = told

        def rehearse(_: int) -> str:
            try:
                opened.rehearsed([accepted_invocation(KIND, {})])
            except AdapterFailed as failure:
                return failure.message
            return ""

        with ThreadPoolExecutor(60) as pool:
            asked = [pool.submit(rehearse, number) for number in range(60)]
            try:
                done = list(islice(as_completed(asked, timeout=60), 60 - 32))
                assert {"other replays or simulations are running adapters" in each.result() for each in done} == {True}
            finally:
                waiting.set()
        assert sum(each.result() == "" for each in asked) == 32

    def test_those_that_take_too_long_together_are_a_timeout(self) -> None:
        opened = TrustedAdapters([KIND], Workers([KIND]), rehearsal_seconds=0.0)
        try:
            with pytest.raises(AdapterFailed, match=r"0 of 2 calls took 0 seconds\. Send fewer") as failure:
                opened.rehearsed([accepted_invocation(KIND, {})] * 2)
            assert failure.value.code == "TRUSTED_ADAPTER_EXECUTION_TIMEOUT"
            assert opened.facts(accepted_invocation(KIND, {})).values == {"kind": True}
        finally:
            opened.close()


def test_a_damaged_adapter_makes_no_facts() -> None:
    whole = registered()[0]
    opened = TrustedAdapters(registered()[1:], Workers(registered()[1:]), damaged=[whole.name])
    with pytest.raises(AdapterFailed, match="Install the release again") as failure:
        opened.invocation(invocation_of(whole, {}))
    assert failure.value.code == "TRUSTED_ADAPTER_EXECUTION_FAILED"
    with pytest.raises(AdapterFailed, match="Install the release again"):
        opened.pinned(whole.dependency, {})
    assert opened.pinned({**whole.dependency, "version": "9.9.9"}, {}) is None


def test_manifests_are_told_whole_and_measures_hold_at_least_the_baseline(trusted: TrustedAdapters) -> None:
    assert trusted.manifests() == [adapter.manifest for adapter in ALL]
    measures = trusted.measures()
    assert measures.reason is None
    assert {"no_new_privs", "seccomp", "rlimits"} <= set(measures.in_force)


def test_the_thread_that_waits_for_a_worker_says_so() -> None:
    """Whoever serves others meanwhile has to hear of it."""
    waited: list[str] = []

    class Told:
        def __enter__(self) -> None:
            waited.append("begins")

        def __exit__(self, *_: object) -> None:
            waited.append("ends")

    failing = make_failing(next(case for case in cases_of("failing") if case["name"] == "it raises"))
    adapters = [ALL[2], failing]
    opened = TrustedAdapters(adapters, Workers(adapters))
    opened.waiting = Told
    try:
        opened.facts(accepted_invocation(ALL[2], {}))
        assert waited == ["begins", "ends"]
        with pytest.raises(AdapterFailed):
            opened.facts(accepted_invocation(failing, {}))
    finally:
        opened.close()
    assert waited == ["begins", "ends"] * 2
