"""The dry run: a candidate over a golden replay corpus, and where it drifts from what the corpus states.

    result = check_drift(candidate, corpus, manifest.expected, manifest.approved, make_facts)
    result.ok             # nothing drifts
    result.gate_passed    # nothing drifts, or exactly what is expected, approved

A case is concerned if its rulebook or its adapter is one of the candidate's, or if the candidate names an evaluator. A
concerned case is decided by the candidate, and compared with the case field by field; the others are untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gate.contract.published import GoldenCase, GoldenExpectation
from gate.encoding.canonical import canonical, content_hash
from gate.encoding.strict_json import JsonObject
from gate.errors import AdapterFailed, AdapterRefused
from gate.labels import RULEBOOK_SCHEMA
from gate.migration.corpus import Corpus
from gate.migration.manifest import ExpectedDrift, NamedAdapter
from gate.records.attestation import rulebook_attestation
from gate.records.record import runtime_binding_of
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook, load
from gate.rulebooks.testing.runs import OUTCOME_MEMBERS, Observed, observe

FIELDS: Final = (
    "statusCode",
    "engine",
    "evaluator_version",
    "semantic_output",
    "rulebook",
    "input_hash",
    "attestation_hash",
    "trusted_adapter",
    "adapter_facts",
)
"""What can drift, in the order of reports."""

MakeFacts: TypeAlias = Callable[[NamedAdapter, JsonObject], Facts]
"""Makes facts of an input by an adapter. It raises AdapterRefused or AdapterFailed where a decision would."""

Answer: TypeAlias = Observed | GoldenExpectation
"""What was, or is, decided, by the names that records have for its parts."""

# That an adapter took too long may be the machine's fault, so that it shows no drift.
_UNDECIDED: Final = "TRUSTED_ADAPTER_EXECUTION_TIMEOUT"

_SEMANTIC: Final = (*OUTCOME_MEMBERS, "missing_fields", "invalid_fields")


@dataclass(frozen=True, slots=True)
class Candidate:
    """The candidate.

    Attributes:
        evaluator_version: The evaluator; None where the present one stays.
        rulebooks: The rulebooks, each in place of those that have its id.
        adapters: The adapters, each in place of those that have its id.
    """

    evaluator_version: str | None = None
    rulebooks: Sequence[Rulebook] = ()
    adapters: Sequence[NamedAdapter] = ()


@dataclass(frozen=True, slots=True)
class FixtureDrift:
    """A fixture that drifts.

    Attributes:
        fixture: Its case_id.
        fields: What drifts, in the order of FIELDS.
        unexpected: Those of the fields that are not expected of it.
        before: What the case states.
        now: What the candidate decides; None where it refuses.
        refusal: The code with which the candidate refuses; None where it decides.
    """

    fixture: str
    fields: tuple[str, ...]
    unexpected: tuple[str, ...]
    before: Answer
    now: Answer | None
    refusal: str | None


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """What a dry run found.

    Attributes:
        label: The label of the corpus.
        corpus_hash: Its hash.
        published: Whether it is the corpus that this release publishes.
        fixtures: How many fixtures the dry run looked at.
        concerned: How many of them the candidate concerns; it decided these.
        drift: The fixtures that drift, in the order of the corpus.
        errors: Expected drift that did not happen, and candidates that differ from a rulebook and keep its version, as
            sentences.
        approved: Whether the migration is approved.
    """

    label: str
    corpus_hash: str
    published: bool
    fixtures: int
    concerned: int
    drift: tuple[FixtureDrift, ...]
    errors: tuple[str, ...]
    approved: bool

    @property
    def ok(self) -> bool:
        """Whether nothing drifts."""
        return not self.drift

    @property
    def unexpected(self) -> tuple[FixtureDrift, ...]:
        """The fixtures that drift otherwise than expected."""
        return tuple(of for of in self.drift if of.unexpected)

    @property
    def as_expected(self) -> bool:
        """Whether nothing drifts, or exactly the expected fixtures and fields."""
        return self.ok or not (self.unexpected or self.errors)

    @property
    def gate_passed(self) -> bool:
        """Whether nothing drifts, or exactly the expected fixtures and fields, and that is approved."""
        return self.ok or (self.as_expected and self.approved)

    def to_dict(self) -> dict[str, object]:
        """The result as a JSON object."""
        return {
            "ok": self.ok,
            "gate_passed": self.gate_passed,
            "drift": [{"fixture": of.fixture, "fields": list(of.fields)} for of in self.drift],
            "unexpected": [{"fixture": of.fixture, "fields": list(of.unexpected)} for of in self.unexpected],
            "errors": list(self.errors),
            "counts": {
                "fixtures": self.fixtures,
                "concerned": self.concerned,
                "unchanged": self.concerned - len(self.drift),
                "expected": len(self.drift) - len(self.unexpected),
                "unexpected": len(self.unexpected),
            },
            "corpus": self.label,
            "corpus_hash": self.corpus_hash,
            "published": self.published,
        }


def check_drift(
    candidate: Candidate,
    corpus: Corpus,
    expected: ExpectedDrift,
    approved: bool,
    make_facts: MakeFacts,
    *,
    progress: Callable[[int], None] | None = None,
) -> CorpusResult:
    """Runs a candidate over the cases of a corpus.

    Args:
        candidate: The candidate.
        corpus: The cases.
        expected: The drift that is expected.
        approved: Whether the migration is approved.
        make_facts: What runs an adapter; called for each concerned case that has one.
        progress: Told how many of the corpus' cases are done.

    Raises:
        AdapterFailed: `TRUSTED_ADAPTER_EXECUTION_TIMEOUT`, which may be the machine's fault. Other refusals are drift.
    """
    drift: list[FixtureDrift] = []
    concerned: list[GoldenCase] = []
    rehearsal = _Rehearsal(candidate, corpus.evaluator_version, make_facts)
    for done, golden in enumerate(corpus.cases, 1):
        if rehearsal.concerns(golden):
            concerned.append(golden)
            told = rehearsal.told(golden)
            if told.fields:
                drift.append(_fixture_drift(golden, told, expected))
        if progress is not None:
            progress(done)
    return CorpusResult(
        label=corpus.label,
        corpus_hash=corpus.corpus_hash,
        published=corpus.published,
        fixtures=len(corpus.cases),
        concerned=len(concerned),
        drift=tuple(drift),
        errors=(*_reused_versions(candidate, concerned), *_unmet(expected, drift, corpus)),
        approved=approved,
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What the candidate made of a case: the fields that drift, and what it decided or why it refused."""

    fields: tuple[str, ...]
    now: Answer | None
    refusal: str | None


class _Rehearsal:
    """Decides cases by a candidate."""

    def __init__(self, candidate: Candidate, evaluator_version: str, make_facts: MakeFacts) -> None:
        self._every = candidate.evaluator_version is not None
        self._rulebooks = {of.rulebook_id: of for of in candidate.rulebooks}
        self._adapters = {of.adapter_id: of for of in candidate.adapters}
        self._evaluator_version = evaluator_version
        self._make_facts = make_facts
        # The rulebooks of cases that keep theirs, by their hashes.
        self._kept: dict[str, Rulebook] = {}

    def concerns(self, golden: GoldenCase) -> bool:
        """Whether something of the candidate decides a case."""
        if self._every or golden.rulebook["rulebook_id"] in self._rulebooks:
            return True
        return "adapter" in golden.case and golden.case["adapter"]["adapter_id"] in self._adapters

    def told(self, golden: GoldenCase) -> _Told:
        """What the candidate makes of a case."""
        try:
            facts = self._facts(golden)
        except (AdapterRefused, AdapterFailed) as error:
            if error.code == _UNDECIDED:
                raise
            # There is no record to compare anything else with.
            return _Told(("statusCode",), None, error.code)
        rulebook = self._rulebook(golden)
        answer = observe(rulebook, facts.values)
        return _Told(tuple(self._drifting(golden, rulebook, facts, answer)), answer, None)

    def _drifting(self, golden: GoldenCase, rulebook: Rulebook, facts: Facts, answer: Observed) -> Iterator[str]:
        case, frozen = golden.case, golden.case["frozen"]
        attestation = rulebook_attestation(
            rulebook.reference,
            content_hash(facts.values),
            rulebook.evaluator.decide(facts.values),
            runtime_binding_of(facts.binding_mode),
            None,
            trusted_adapter=facts.trusted_adapter,
        )
        bundle = attestation["bundle"]
        reference = {
            "schema_version": RULEBOOK_SCHEMA,
            "id": golden.rulebook["rulebook_id"],
            "version": golden.rulebook["version"],
            "hash": frozen["rulebook_hash"],
        }
        made = facts.values if facts.trusted_adapter is not None else None
        pairs: dict[str, tuple[object, object]] = {
            "engine": (self._evaluator_version, bundle["engine"]),
            "evaluator_version": (self._evaluator_version, bundle["evaluator_version"]),
            "semantic_output": (_semantic(case["expected"]), _semantic(answer)),
            "rulebook": (reference, bundle["rulebook"]),
            "input_hash": (frozen["input_hash"], bundle["input_hash"]),
            "attestation_hash": (frozen["bundle_hash"], attestation["bundle_hash"]),
            "trusted_adapter": (frozen.get("trusted_adapter"), facts.trusted_adapter),
            "adapter_facts": (case.get("adapter_facts"), made),
        }
        yield from (name for name, (stated, now) in pairs.items() if canonical(stated) != canonical(now))

    def _rulebook(self, golden: GoldenCase) -> Rulebook:
        if (candidate := self._rulebooks.get(golden.rulebook["rulebook_id"])) is not None:
            return candidate
        hash_ = golden.case["frozen"]["rulebook_hash"]
        if hash_ not in self._kept:
            self._kept[hash_] = load(golden.rulebook)
        return self._kept[hash_]

    def _facts(self, golden: GoldenCase) -> Facts:
        case = golden.case
        if "adapter" not in case:
            return Facts(case.get("inputs", {}), plain=False)
        asked = case["adapter"]
        pinned = NamedAdapter(asked["adapter_id"], asked["version"], asked["manifest_hash"])
        return self._make_facts(self._adapters.get(pinned.adapter_id, pinned), asked["input"])


def _semantic(answer: Mapping[str, object]) -> dict[str, object]:
    return {name: answer[name] for name in _SEMANTIC}


def _fixture_drift(golden: GoldenCase, told: _Told, expected: ExpectedDrift) -> FixtureDrift:
    fixture = golden.case["case_id"]
    admitted = expected.fields if fixture in expected.fixtures else frozenset()
    return FixtureDrift(
        fixture=fixture,
        fields=told.fields,
        unexpected=tuple(name for name in told.fields if name not in admitted),
        before=golden.case["expected"],
        now=told.now,
        refusal=told.refusal,
    )


def _reused_versions(candidate: Candidate, concerned: Iterable[GoldenCase]) -> Iterator[str]:
    """The candidates that keep a version and change its rules, which no registry accepts."""
    stated = {
        (golden.rulebook["rulebook_id"], golden.rulebook["version"]): golden.case["frozen"]["rulebook_hash"]
        for golden in concerned
    }
    for rulebook in candidate.rulebooks:
        if stated.get((rulebook.rulebook_id, rulebook.version), rulebook.hash) != rulebook.hash:
            yield (
                f"The candidate of {rulebook.rulebook_id} differs from the rulebook of the corpus, but has the "
                f"same version {rulebook.version}. Give it a new version."
            )


def _unmet(expected: ExpectedDrift, drift: Sequence[FixtureDrift], corpus: Corpus) -> Iterator[str]:
    """The expected drift that did not happen."""
    looked_at = {golden.case["case_id"] for golden in corpus.cases}
    drifted = {of.fixture for of in drift}
    for fixture in sorted(expected.fixtures - drifted):
        if fixture in looked_at:
            yield f"The expected fixture {fixture} did not drift. Remove it from expected_drift.fixtures."
        else:
            yield f"The expected fixture {fixture} was not among those evaluated. Correct expected_drift.fixtures."
    found = {name for of in drift for name in of.fields}
    for name in FIELDS:
        if name in expected.fields - found:
            yield f"The expected field {name} drifted in no fixture. Remove it from expected_drift.fields."
