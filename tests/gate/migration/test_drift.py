"""The dry run: which fixtures drift, in which fields, and when the gate passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.adapters.invocation import TrustedAdapters
from gate.adapters.manifest import Adapter
from gate.adapters.worker import Workers
from gate.encoding.strict_json import JsonObject
from gate.errors import AdapterFailed
from gate.labels import EVALUATOR
from gate.migration.corpus import Corpus, frozen_bundle_hash, published_corpus, read_corpus, read_index
from gate.migration.drift import FIELDS, Candidate, CorpusResult, MakeFacts, check_drift
from gate.migration.freezing import freeze_case, make_file
from gate.migration.manifest import ExpectedDrift, NamedAdapter
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook, load
from tests.reference.strategies import rulebooks_and_facts
from tests.support.adapters import emitting, invocation_of, make_adapter, rulebook_over
from tests.support.corpora import DEALS, LABEL, Documents, deals, expecting, indexed, refactored
from tests.support.rulebooks import stricter_rulebook
from tests.support.samples import sample_rulebook
from tests.support.torture import size

NOTHING: Final = ExpectedDrift("none")
REFACTORED: Final = ("rulebook", "attestation_hash")


def read(documents: Documents) -> Corpus:
    return read_corpus(read_index(documents["index.json"]), documents)


def no_adapter(adapter: NamedAdapter, given: JsonObject) -> Facts:
    raise AssertionError(f"{adapter} was called with {given}")


def checked(
    candidate: Candidate,
    corpus: Corpus,
    expected: ExpectedDrift = NOTHING,
    *,
    approved: bool = False,
    make_facts: MakeFacts = no_adapter,
) -> CorpusResult:
    return check_drift(candidate, corpus, expected, approved, make_facts)


def of(*bodies: Any) -> Candidate:
    return Candidate(rulebooks=[load(body) for body in bodies])


def drifted(result: CorpusResult) -> dict[str, tuple[str, ...]]:
    return {found.fixture: found.fields for found in result.drift}


def expect(*fixtures: str, fields: tuple[str, ...] = REFACTORED) -> ExpectedDrift:
    found = expecting(*fixtures, fields=fields)
    return ExpectedDrift(found["policy"], frozenset(found["fixtures"]), frozenset(found["fields"]))


class TestFields:
    """What drifts."""

    def test_the_same_rulebook_does_not(self) -> None:
        result = checked(of(sample_rulebook()), read(deals()))
        assert (result.ok, result.gate_passed, result.drift, result.errors) == (True, True, (), ())
        assert (result.fixtures, result.concerned) == (5, 5)

    def test_a_harmless_refactoring_drifts_in_the_rulebook_and_the_hash_that_binds_it_alone(self) -> None:
        result = checked(of(refactored()), read(deals()))
        assert drifted(result) == dict.fromkeys(DEALS, REFACTORED)

    def test_the_order_of_members_is_no_change(self) -> None:
        body = {name: sample_rulebook()[name] for name in reversed(sample_rulebook())}
        assert checked(of(body), read(deals())).ok

    def test_another_outcome_drifts_in_what_it_means(self) -> None:
        result = checked(of(stricter_rulebook()), read(deals()))
        changed = {name: fields for name, fields in drifted(result).items() if "semantic_output" in fields}
        assert changed == dict.fromkeys(("deals.usual", "deals.floor"), ("semantic_output", *REFACTORED))
        (usual, *_) = result.drift
        assert usual.now is not None
        assert (usual.before["matched_rule_id"], usual.now["matched_rule_id"]) == (
            "approve_standard_exception",
            "block_below_margin_floor",
        )

    @pytest.mark.parametrize(
        ("member", "value"),
        [("decision", "no"), ("verdict", "DEFER"), ("action", "wait"), ("reason_code", "OTHER_REASON")],
    )
    def test_each_part_of_an_outcome_is_what_it_means(self, member: str, value: str) -> None:
        body = {**sample_rulebook(), "version": "2026-09-01"}
        body["default_outcome"] = {**body["default_outcome"], member: value}
        found = drifted(checked(of(body), read(deals())))
        assert [name for name, fields in found.items() if "semantic_output" in fields] == ["deals.large"]

    def test_another_rule_with_the_same_outcome_is_another_meaning(self) -> None:
        body = {**sample_rulebook(), "version": "2026-09-01"}
        body["rules"][0]["rule_id"] = "block_thin_margins"
        found = drifted(checked(of(body), read(deals())))
        assert [name for name, fields in found.items() if "semantic_output" in fields] == ["deals.thin"]

    def test_other_missing_fields_are_another_meaning(self) -> None:
        body = {**sample_rulebook(), "version": "2026-09-01"}
        body["input_schema"] = {**body["input_schema"], "required": ["discount_percent", "margin_percent", "region"]}
        found = drifted(checked(of(body), read(deals())))
        assert all("semantic_output" in fields for fields in found.values())
        (*_, unknown) = checked(of(body), read(deals())).drift
        assert unknown.now is not None
        assert unknown.now["missing_fields"] == ["margin_percent", "region"]

    def test_an_evaluator_of_another_version_drifts_in_what_names_it(self) -> None:
        documents = deals()
        documents["index.json"]["evaluator_version"] = "svc_rulebook_v0"
        for case in documents["deals.json"]["cases"]:
            reference = load(sample_rulebook()).reference
            case["frozen"]["bundle_hash"] = frozen_bundle_hash(case, reference, "svc_rulebook_v0")
        index = indexed({"deals.json": documents["deals.json"]})["index.json"]
        documents["index.json"] = {**index, "evaluator_version": "svc_rulebook_v0"}
        result = checked(Candidate(evaluator_version=EVALUATOR), read(documents))
        assert drifted(result) == dict.fromkeys(DEALS, ("engine", "evaluator_version", "attestation_hash"))


class TestConcerned:
    """Which fixtures a candidate concerns."""

    def test_a_corpus_of_other_rulebooks_is_untouched(self) -> None:
        result = checked(of(stricter_rulebook()), published_corpus())
        assert (result.ok, result.gate_passed, result.fixtures, result.concerned) == (True, True, 324, 0)

    def test_a_rulebook_concerns_its_own_fixtures(self) -> None:
        corpus = published_corpus()
        (golden, *_) = [golden for golden in corpus.cases if golden.rulebook["rulebook_id"] == "golden.eq"]
        result = checked(of({**golden.rulebook, "version": "2"}), corpus)
        about = [one.case["case_id"] for one in corpus.cases if one.rulebook["rulebook_id"] == "golden.eq"]
        assert drifted(result) == dict.fromkeys(about, REFACTORED)
        assert result.concerned == len(about)

    def test_an_evaluator_concerns_every_fixture_and_replays_the_published_corpus(self) -> None:
        corpus = published_corpus()
        frozen = {
            str(golden.case["adapter"]["input"]): golden.facts for golden in corpus.cases if "adapter" in golden.case
        }
        result = checked(Candidate(evaluator_version=EVALUATOR), corpus, make_facts=lambda _, given: frozen[str(given)])
        assert (result.ok, result.concerned) == (True, 324)

    def test_chosen_fixtures_alone_are_looked_at(self) -> None:
        result = checked(of(refactored()), read(deals()).only(["deals.thin"]))
        assert (drifted(result), result.fixtures) == ({"deals.thin": REFACTORED}, 1)


SCORES: Final = rulebook_over("scores", "score", "number", 10)
FIRST: Final = make_adapter("scorer", "def facts(given):\n    return {'score': given['score']}\n")
SECOND: Final = make_adapter("scorer", "def facts(given):\n    return {'score': given['score'] - 5}\n", version="2.0.0")
RENAMED: Final = make_adapter("scorer", FIRST.source.decode(), version="3.0.0")
STRICT: Final = make_adapter(
    "scorer", FIRST.source.decode(), version="4.0.0", input_schema={"properties": {"score": {"maximum": 30}}}
)
BROKEN: Final = make_adapter("scorer", "def facts(given):\n    return {'score': 1 / 0}\n", version="5.0.0")
SLOW: Final = emitting("scorer", "[None for _ in iter(int, 1)]", version="6.0.0", timeout_ms=100)
EVERY: Final = (FIRST, SECOND, RENAMED, STRICT, BROKEN, SLOW)


@pytest.fixture(scope="module")
def adapters() -> Iterator[TrustedAdapters]:
    found = TrustedAdapters(EVERY, Workers(EVERY))
    yield found
    found.close()


@pytest.fixture
def make_facts(adapters: TrustedAdapters) -> MakeFacts:
    """What runs the adapters, in real workers."""
    return lambda adapter, given: adapters.facts(adapters.invocation({**adapter._asdict(), "input": given}))


def pinned(adapter: Adapter) -> NamedAdapter:
    return NamedAdapter(adapter.adapter_id, adapter.version, adapter.manifest_hash)


@pytest.fixture(scope="module")
def scored(adapters: TrustedAdapters) -> Corpus:
    """A corpus of facts that the first scorer made: 12, 40 and 3."""
    rulebook = load(SCORES)
    frozen = []
    for name, score in (("scores.just", 12), ("scores.high", 40), ("scores.low", 3)):
        sent: Any = invocation_of(FIRST, {"score": score})
        facts = adapters.facts(adapters.invocation(sent))
        frozen.append(freeze_case({"case_id": name, "title": name}, rulebook, facts, sent))
    return read(indexed({"scores.json": make_file(LABEL, "scores", "Scores", [rulebook], frozen)}))


ADAPTED: Final = ("input_hash", "attestation_hash", "trusted_adapter", "adapter_facts")


class TestAdapters:
    """Fixtures whose facts an adapter makes."""

    def test_the_same_adapter_makes_the_same_facts(self, scored: Corpus, make_facts: MakeFacts) -> None:
        result = checked(Candidate(adapters=[pinned(FIRST)]), scored, make_facts=make_facts)
        assert (result.ok, result.concerned) == (True, 3)

    def test_other_facts_drift_with_what_follows_from_them(self, scored: Corpus, make_facts: MakeFacts) -> None:
        result = checked(Candidate(adapters=[pinned(SECOND)]), scored, make_facts=make_facts)
        assert drifted(result) == {
            "scores.just": ("semantic_output", *ADAPTED),
            "scores.high": ADAPTED,
            "scores.low": ADAPTED,
        }

    def test_another_version_that_makes_the_same_facts_drifts_in_what_names_it(
        self, scored: Corpus, make_facts: MakeFacts
    ) -> None:
        result = checked(Candidate(adapters=[pinned(RENAMED)]), scored, make_facts=make_facts)
        fields = ("attestation_hash", "trusted_adapter")
        assert drifted(result) == dict.fromkeys(("scores.just", "scores.high", "scores.low"), fields)

    def test_a_refused_input_drifts_in_the_status_code_alone(self, scored: Corpus, make_facts: MakeFacts) -> None:
        result = checked(Candidate(adapters=[pinned(STRICT)]), scored, make_facts=make_facts)
        (high,) = [found for found in result.drift if "statusCode" in found.fields]
        assert (high.fixture, high.fields, high.now) == ("scores.high", ("statusCode",), None)
        assert high.refusal == "TRUSTED_ADAPTER_INPUT_INVALID"

    def test_an_adapter_that_fails_drifts_in_the_status_code(self, scored: Corpus, make_facts: MakeFacts) -> None:
        result = checked(Candidate(adapters=[pinned(BROKEN)]), scored, make_facts=make_facts)
        assert {found.refusal for found in result.drift} == {"TRUSTED_ADAPTER_EXECUTION_FAILED"}
        assert {found.fields for found in result.drift} == {("statusCode",)}

    def test_an_adapter_that_takes_too_long_shows_nothing(self, scored: Corpus, make_facts: MakeFacts) -> None:
        with pytest.raises(AdapterFailed) as error:
            checked(Candidate(adapters=[pinned(SLOW)]), scored, make_facts=make_facts)
        assert error.value.code == "TRUSTED_ADAPTER_EXECUTION_TIMEOUT"

    def test_a_rulebook_is_tried_on_the_facts_that_its_fixtures_adapter_makes(
        self, scored: Corpus, make_facts: MakeFacts
    ) -> None:
        stricter = {**rulebook_over("scores", "score", "number", 20), "version": "2"}
        result = checked(of(stricter), scored, make_facts=make_facts)
        assert drifted(result) == {
            "scores.just": ("semantic_output", *REFACTORED),
            "scores.high": REFACTORED,
            "scores.low": REFACTORED,
        }

    def test_an_adapter_concerns_no_fixture_that_sends_its_facts(self) -> None:
        assert checked(Candidate(adapters=[pinned(SECOND)]), read(deals())).concerned == 0

    def test_an_adapter_that_this_release_does_not_have_is_refused(self, scored: Corpus, make_facts: MakeFacts) -> None:
        unknown = pinned(FIRST)._replace(version="9.0.0")
        result = checked(Candidate(adapters=[unknown]), scored, make_facts=make_facts)
        assert {found.refusal for found in result.drift} == {"TRUSTED_ADAPTER_NOT_REGISTERED"}


class TestGate:
    """When the gate passes."""

    ALL: Final = tuple(DEALS)

    def of_refactoring(self, expected: ExpectedDrift, *, approved: bool = True) -> CorpusResult:
        return checked(of(refactored()), read(deals()), expected, approved=approved)

    def test_exactly_the_expected_drift_passes_once_it_is_approved(self) -> None:
        result = self.of_refactoring(expect(*self.ALL))
        assert (result.ok, result.as_expected, result.gate_passed) == (False, True, True)
        assert (result.unexpected, result.errors) == ((), ())

    def test_exactly_the_expected_drift_does_not_pass_before(self) -> None:
        result = self.of_refactoring(expect(*self.ALL), approved=False)
        assert (result.as_expected, result.gate_passed, result.unexpected, result.errors) == (True, False, (), ())

    def test_drift_that_no_policy_expects_does_not_pass(self) -> None:
        result = self.of_refactoring(NOTHING)
        assert (result.as_expected, result.gate_passed) == (False, False)
        assert {found.fixture: found.unexpected for found in result.unexpected} == dict.fromkeys(self.ALL, REFACTORED)

    def test_another_fixture_than_the_expected_ones_does_not_pass(self) -> None:
        result = self.of_refactoring(expect(*self.ALL[1:]))
        assert not result.gate_passed
        assert [(found.fixture, found.unexpected) for found in result.unexpected] == [("deals.usual", REFACTORED)]

    def test_another_field_than_the_expected_ones_does_not_pass(self) -> None:
        result = self.of_refactoring(expect(*self.ALL, fields=("rulebook",)))
        assert not result.gate_passed
        assert {found.unexpected for found in result.unexpected} == {("attestation_hash",)}

    def test_an_expected_fixture_that_does_not_drift_does_not_pass(self) -> None:
        corpus = deals()
        other = {**sample_rulebook(), "rulebook_id": "pricing_other"}
        frozen = freeze_case({"case_id": "other.one", "title": "Other"}, load(other), Facts({}, plain=False))
        corpus["other.json"] = make_file(LABEL, "other", "Others", [load(other)], [frozen])
        result = checked(of(refactored()), read(indexed(corpus)), expect(*self.ALL, "other.one"), approved=True)
        assert (result.as_expected, result.gate_passed, result.unexpected) == (False, False, ())
        assert result.errors == (
            "The expected fixture other.one did not drift. Remove it from expected_drift.fixtures.",
        )

    def test_an_expected_field_that_drifts_nowhere_does_not_pass(self) -> None:
        result = self.of_refactoring(expect(*self.ALL, fields=(*REFACTORED, "semantic_output")))
        assert (result.as_expected, result.gate_passed, result.unexpected) == (False, False, ())
        assert result.errors == (
            "The expected field semantic_output drifted in no fixture. Remove it from expected_drift.fields.",
        )

    def test_an_expected_fixture_that_is_not_looked_at_does_not_pass(self) -> None:
        result = self.of_refactoring(expect(*self.ALL, "deals.nowhere"))
        assert not result.gate_passed
        assert result.errors == (
            "The expected fixture deals.nowhere was not among those evaluated. Correct expected_drift.fixtures.",
        )

    def test_no_drift_passes_whatever_was_expected_and_tells_of_it(self) -> None:
        result = checked(of(sample_rulebook()), read(deals()), expect("deals.thin", fields=("rulebook",)))
        assert (result.ok, result.gate_passed) == (True, True)
        assert len(result.errors) == 2

    def test_a_candidate_that_keeps_the_version_does_not_pass(self) -> None:
        body = {**refactored(), "version": sample_rulebook()["version"]}
        result = checked(of(body), read(deals()), expect(*self.ALL), approved=True)
        assert (result.gate_passed, result.unexpected) == (False, ())
        (error,) = result.errors
        assert "has the same version 2026-06-11. Give it a new version." in error

    def test_the_result_as_json(self) -> None:
        corpus = read(deals())
        result = checked(of(stricter_rulebook()), corpus, expect(*self.ALL), approved=True)
        found = result.to_dict()
        assert list(found)[:5] == ["ok", "gate_passed", "drift", "unexpected", "errors"]
        assert (found["ok"], found["gate_passed"], found["errors"]) == (False, False, [])
        assert found["drift"] == [{"fixture": name, "fields": list(fields)} for name, fields in drifted(result).items()]
        assert found["unexpected"] == [
            {"fixture": "deals.usual", "fields": ["semantic_output"]},
            {"fixture": "deals.floor", "fields": ["semantic_output"]},
        ]
        assert found["counts"] == {"fixtures": 5, "concerned": 5, "unchanged": 0, "expected": 3, "unexpected": 2}
        assert (found["corpus"], found["corpus_hash"], found["published"]) == (LABEL, corpus.corpus_hash, False)


def frozen_with(rulebook: Rulebook, facts: dict[str, Any]) -> Corpus:
    case = freeze_case({"case_id": "one", "title": "One"}, rulebook, Facts(facts, plain=False))
    return read(indexed({"one.json": make_file(LABEL, "one", "One", [rulebook], [case])}))


@settings(max_examples=size(8, 200))
@given(rulebooks_and_facts(), st.text("abc", min_size=1, max_size=3))
def test_a_rulebook_has_no_drift_from_itself_and_two_fields_of_it_from_its_next_version(
    drawn: tuple[dict[str, Any], dict[str, Any]], label: str
) -> None:
    body, facts = drawn
    corpus = frozen_with(load(body), facts)
    assert checked(of(body), corpus).ok
    later = {**body, "version": f"next-{label}"}
    if later["version"] != body["version"]:
        assert drifted(checked(of(later), corpus)) == {"one": REFACTORED}


@given(
    st.sets(st.sampled_from(list(DEALS))),
    st.sets(st.sampled_from(FIELDS)),
    st.booleans(),
    st.booleans(),
)
def test_the_gate_passes_on_drift_if_and_only_if_it_is_the_expected_and_approved_one(
    fixtures: set[str], fields: set[str], approved: bool, everything: bool
) -> None:
    corpus = read(deals())
    if everything:
        fixtures, fields = set(DEALS), set(REFACTORED) | (fields & {"engine"})
    expected = ExpectedDrift("requires_approval", frozenset(fixtures), frozenset(fields))
    result = checked(of(refactored()), corpus, expected, approved=approved)
    exact = fixtures == set(DEALS) and fields == set(REFACTORED)
    assert (result.as_expected, result.gate_passed) == (exact, exact and approved)
