"""A golden replay corpus, held against its own hashes before anything in it is evaluated.

    corpus = published_corpus()                          # the one that the product publishes
    corpus = read_corpus(index, {"deals.json": {...}})   # any other in its format

The format is that of `schemas/golden-replay-index.schema.json` and `golden-replay-cases.schema.json`. These schemas
describe our own corpus, so they fix its label and the prefix `golden.` of its rulebook ids. Other corpora have their
own label and ids. A corpus states hashes of its files, rulebooks, facts, and bundles, and the numbers of its cases. If
one is wrong, a case no longer says what was frozen, and drift would mean nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypedDict, cast

from gate.contract.published import REPLAY_URL, GoldenCase, GoldenCaseBody, corpus_hash, published
from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.shapes import MAX_ERRORS, Shape
from gate.errors import FieldError, MaterialRefused
from gate.labels import BINDING_ADAPTER, BINDING_DIRECT, EVALUATOR
from gate.records.attestation import rulebook_attestation
from gate.records.record import RULEBOOK_SCHEMA_HASH, runtime_binding_of
from gate.rulebooks.documents import RulebookBody, RulebookReference, TrustedAdapter
from gate.rulebooks.evaluation import Outcome
from gate.rulebooks.rulebook import find_errors

MAX_FILES: Final = 64
"""How many files of cases a corpus may have."""

MAX_CASES: Final = 100_000
"""How many cases a corpus may have in all files."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus whose hashes and numbers are right.

    Attributes:
        label: Its label, for example rulebook_v1_golden_replay_v1.
        corpus_hash: H of the list of its files' hashes.
        evaluator_version: The evaluator that its hashes name.
        cases: Its cases, or those that were chosen, in the order of its files.
    """

    label: str
    corpus_hash: str
    evaluator_version: str
    cases: tuple[GoldenCase, ...]

    @property
    def published(self) -> bool:
        """Whether it is the corpus that this release publishes."""
        return self.corpus_hash == corpus_hash()

    def only(self, fixtures: Iterable[str]) -> Corpus:
        """The corpus with some of its cases alone, by their ids; ids that it does not have are passed over."""
        chosen = frozenset(fixtures)
        return replace(self, cases=tuple(golden for golden in self.cases if golden.case["case_id"] in chosen))


class ListedFile(TypedDict):
    """A file of cases in an index."""

    path: str
    sha256: str
    cases: int


class Index(TypedDict):
    """The index of a corpus."""

    corpus: str
    evaluator_version: str
    rulebook_schema_hash: str
    files: list[ListedFile]
    cases: int
    covers: dict[str, int]
    corpus_hash: str


class _File(TypedDict):
    corpus: str
    rulebooks: list[RulebookBody]
    cases: list[GoldenCaseBody]


def published_corpus() -> Corpus:
    """The corpus that the product publishes."""
    documents = published()
    index = read_index(documents[REPLAY_URL].document)
    folder = REPLAY_URL.rpartition("/")[0]
    return read_corpus(index, {file["path"]: documents[f"{folder}/{file['path']}"].document for file in index["files"]})


def read_index(document: object) -> Index:
    """Reads the index of a corpus, and holds its numbers and hashes against each other.

    Args:
        document: The parsed JSON value.

    Raises:
        MaterialRefused: `CORPUS_INVALID`, with an error for each member at fault.
    """
    errors = _shape("golden-replay-index").errors(document)
    if not errors:
        index = cast("Index", document)
        errors = list(_index_faults(index))
    if errors:
        raise _refused(errors)
    return index


def read_corpus(index: Index, documents: Mapping[str, object]) -> Corpus:
    """Reads the files of a corpus.

    Args:
        index: Its index.
        documents: The parsed JSON value of each file, by its path in the index.

    Raises:
        MaterialRefused: `CORPUS_INVALID`, with an error for each member at fault, and where a hash is wrong with the
            stated and the recomputed one.
    """
    errors: list[FieldError] = []
    cases: list[GoldenCase] = []
    for place, listed in enumerate(index["files"]):
        faults, found = _read_file(index, place, documents[listed["path"]])
        errors += faults
        cases += found
    if not errors:
        errors = [*_repeated(index, cases), *_miscounted(index, cases)]
    if errors:
        raise _refused(errors[:MAX_ERRORS])
    return Corpus(index["corpus"], index["corpus_hash"], index["evaluator_version"], tuple(cases))


def frozen_bundle_hash(case: GoldenCaseBody, reference: RulebookReference, evaluator_version: str) -> str:
    """The `bundle_hash` of a case: H of the bundle that binds its rulebook, its facts, and its expected outcome.

    Args:
        case: The case.
        reference: Its rulebook, as records name it.
        evaluator_version: The evaluator that the corpus names.
    """
    expected = case["expected"]
    outcome = Outcome(
        "needs_input" if expected["missing_fields"] or expected["invalid_fields"] else "ok",
        expected["verdict"],
        expected["application_verdict"],
        expected["action"],
        expected["reason_code"],
        expected["matched_rule_id"],
    )
    bundle = rulebook_attestation(
        reference,
        content_hash(facts_of(case)),
        outcome,
        runtime_binding_of(BINDING_ADAPTER if "adapter" in case else BINDING_DIRECT),
        None,
        trusted_adapter=case["frozen"].get("trusted_adapter"),
    )["bundle"]
    return content_hash({**bundle, "engine": evaluator_version, "evaluator_version": evaluator_version})


def facts_of(case: GoldenCaseBody) -> Mapping[str, object]:
    """The facts of a case as it states them: those that it sends, or those that its adapter made."""
    return case["adapter_facts"] if "adapter" in case else case.get("inputs", {})


def _refused(errors: Sequence[FieldError]) -> MaterialRefused:
    places = f"{len(errors)} {'place' if len(errors) == 1 else 'places'}"
    return MaterialRefused(
        "CORPUS_INVALID",
        f"The corpus is unusable in {places}, so nothing was evaluated. Correct each field listed.",
        errors,
    )


@cache
def _shape(name: str) -> Shape:
    """A schema of our own corpus, without what makes it ours."""
    schema: dict[str, Any] = copy.deepcopy(resources.schema(name))
    members = schema["properties"]
    members["corpus"] = {"type": "string", "pattern": "^[a-z][a-z0-9_.:-]{1,159}$"}
    if "rulebooks" in members:
        # What an id may be is said by Rulebook v1.
        del members["rulebooks"]["items"]["properties"]["rulebook_id"]["pattern"]
    return Shape(schema)


def _index_faults(index: Index) -> Iterator[FieldError]:
    files = index["files"]
    if len(files) > MAX_FILES:
        yield FieldError("files", "too_many", f"It lists {len(files)} files; at most {MAX_FILES} are allowed.")
    if (total := sum(file["cases"] for file in files)) != index["cases"]:
        yield FieldError("cases", "count", f"It states {index['cases']} cases, but its files contain {total} together.")
    if max(total, index["cases"]) > MAX_CASES:
        yield FieldError("cases", "too_many", f"It has {max(total, index['cases'])} cases; {MAX_CASES} are allowed.")
    for path, count in Counter(file["path"] for file in files).items():
        if count > 1:
            yield FieldError("files", "duplicate", f"It lists {path} {count} times. List each file once.")
    yield from _hash_fault("corpus_hash", "The index", index["corpus_hash"], [file["sha256"] for file in files])
    # Of an evaluator that this release does not have, it does not know the schema either.
    if index["evaluator_version"] == EVALUATOR and index["rulebook_schema_hash"] != RULEBOOK_SCHEMA_HASH:
        message = f"It states {index['rulebook_schema_hash']}, but {EVALUATOR} uses {RULEBOOK_SCHEMA_HASH}."
        yield FieldError("rulebook_schema_hash", "hash", message)


def _hash_fault(field: str, name: str, stated: str, value: object) -> Iterator[FieldError]:
    if (recomputed := content_hash(value)) != stated:
        yield FieldError(field, "hash", f"{name} states {stated}, but the recomputed hash is {recomputed}.")


def _read_file(index: Index, place: int, document: object) -> tuple[list[FieldError], list[GoldenCase]]:
    """What is wrong with a file of cases, and its cases; none of these where something is."""
    listed = index["files"][place]
    path = listed["path"]
    errors = list(_hash_fault(f"files[{place}].sha256", f"The index, of {path},", listed["sha256"], document))
    if shapeless := _shape("golden-replay-cases").errors(document):
        return [*errors, *_within(path, shapeless)], []
    file = cast("_File", document)
    if file["corpus"] != index["corpus"]:
        message = f"The file belongs to the corpus {file['corpus']}, but the index to {index['corpus']}."
        errors += _within(path, [FieldError("corpus", "corpus", message)])
    if (count := len(file["cases"])) != listed["cases"]:
        message = f"The index states {listed['cases']} cases in {path}, but the file has {count}."
        errors.append(FieldError(f"files[{place}].cases", "count", message))
    errors += _within(path, _rulebook_faults(file["rulebooks"]))
    if errors:
        return errors, []
    bodies = {(body["rulebook_id"], body["version"]): body for body in file["rulebooks"]}
    references = {key: _reference(body) for key, body in bodies.items()}
    cases = []
    for number, case in enumerate(file["cases"]):
        named = case["rulebook"]["rulebook_id"], case["rulebook"]["version"]
        if named in bodies:
            errors += _within(path, _case_faults(case, f"cases[{number}]", references[named], index))
            cases.append(GoldenCase(case, bodies[named]))
        else:
            message = f"The file has no rulebook {named[0]} of the version {named[1]}."
            errors += _within(path, [FieldError(f"cases[{number}].rulebook", "unknown", message)])
        if len(errors) >= MAX_ERRORS:
            break
    return errors, [] if errors else cases


def _within(path: str, errors: Iterable[FieldError]) -> list[FieldError]:
    """Errors about a file of cases, in which the file is named."""
    return [replace(error, field=f"{path}: {error.field or 'the file'}") for error in errors]


def _reference(body: RulebookBody) -> RulebookReference:
    return {
        "schema_version": body["schema_version"],
        "id": body["rulebook_id"],
        "version": body["version"],
        "hash": content_hash(body),
    }


def _rulebook_faults(bodies: Sequence[RulebookBody]) -> Iterator[FieldError]:
    for index, body in enumerate(bodies):
        yield from find_errors(body, root=f"rulebooks[{index}]")
    for (rulebook_id, version), count in Counter((body["rulebook_id"], body["version"]) for body in bodies).items():
        if count > 1:
            message = f"They contain {rulebook_id} of the version {version} {count} times. Keep one."
            yield FieldError("rulebooks", "duplicate", message)


def _case_faults(case: GoldenCaseBody, path: str, reference: RulebookReference, index: Index) -> Iterator[FieldError]:
    frozen, name = case["frozen"], f"The case {case['case_id']}"
    told = frozen.get("trusted_adapter")
    if "adapter" in case and ("adapter_facts" not in case or told is None):
        message = "A case with an adapter needs adapter_facts and frozen.trusted_adapter."
        yield FieldError(f"{path}.adapter", "incomplete", message)
        return
    if "adapter" in case and "inputs" in case:
        yield FieldError(
            f"{path}.inputs", "conflict", "A case with an adapter must not have inputs. Remove one of the two."
        )
        return
    if "adapter" not in case and ("adapter_facts" in case or told is not None):
        message = "A case without an adapter must not have adapter_facts or frozen.trusted_adapter."
        yield FieldError(path, "conflict", message)
        return
    if frozen["rulebook_hash"] != reference["hash"]:
        message = f"{name} states {frozen['rulebook_hash']}, but the recomputed hash is {reference['hash']}."
        yield FieldError(f"{path}.frozen.rulebook_hash", "hash", message)
    yield from _hash_fault(f"{path}.frozen.input_hash", name, frozen["input_hash"], facts_of(case))
    if told is not None:
        yield from _adapter_faults(case, f"{path}.frozen.trusted_adapter", told)
    bundle_hash = frozen_bundle_hash(case, reference, index["evaluator_version"])
    if frozen["bundle_hash"] != bundle_hash:
        message = f"{name} states {frozen['bundle_hash']}, but the recomputed hash is {bundle_hash}."
        yield FieldError(f"{path}.frozen.bundle_hash", "hash", message)


def _adapter_faults(case: GoldenCaseBody, path: str, told: TrustedAdapter) -> Iterator[FieldError]:
    adapter, name = case["adapter"], f"The case {case['case_id']}"
    # The schema leaves its members open, so that each may be missing.
    stated = cast("Mapping[str, object]", told)
    for member, value in (
        ("adapter_id", adapter["adapter_id"]),
        ("version", adapter["version"]),
        ("manifest_hash", adapter["manifest_hash"]),
        ("input_hash", content_hash(adapter["input"])),
        ("output_hash", content_hash(case["adapter_facts"])),
    ):
        if stated.get(member) != value:
            message = f"{name} states {stated.get(member)}, but its adapter and facts give {value}."
            yield FieldError(f"{path}.{member}", "hash", message)


def _repeated(index: Index, cases: Sequence[GoldenCase]) -> Iterator[FieldError]:
    for case_id, count in Counter(golden.case["case_id"] for golden in cases).items():
        if count > 1:
            yield FieldError("files", "duplicate", f"They contain the case {case_id} {count} times. Keep one.")
    bodies: dict[tuple[str, str], str] = {}
    for golden in cases:
        named, hash_ = golden.case["rulebook"], golden.case["frozen"]["rulebook_hash"]
        if bodies.setdefault((named["rulebook_id"], named["version"]), hash_) != hash_:
            message = f"They contain two rulebooks {named['rulebook_id']} of the version {named['version']}. Keep one."
            yield FieldError("files", "duplicate", message)
            return


def _miscounted(index: Index, cases: Sequence[GoldenCase]) -> Iterator[FieldError]:
    counted = Counter(subject for golden in cases for subject in golden.case["covers"])
    for subject in sorted(counted.keys() | index["covers"].keys()):
        if counted[subject] != index["covers"].get(subject, 0):
            message = f"It states {index['covers'].get(subject, 0)} cases, but its files contain {counted[subject]}."
            yield FieldError(f"covers.{subject}", "count", message)
