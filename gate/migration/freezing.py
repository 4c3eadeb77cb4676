"""Corpora of one's own: cases as this release decides them, with the hashes that they keep from then on.

    case = freeze_case({"case_id": "deals.small", "title": "A small discount"}, rulebook, Facts({"discount": 5}, False))
    file = make_file("deals_corpus_v1", "deals", "Deals", [rulebook], [case])
    index = make_index("deals_corpus_v1", {"deals.json": file})

A case freezes the current decision, right or wrong. Its author confirms that it is intended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

from gate.contract.published import GoldenCaseBody, GoldenExpectation
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import JsonObject
from gate.labels import CANONICALIZATION, EVALUATOR, HASH_ALGORITHM, HISTORICAL_REPLAY
from gate.records.attestation import rulebook_attestation
from gate.records.record import RULEBOOK_SCHEMA_HASH, runtime_binding_of
from gate.rulebooks.documents import AdapterInvocation
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.runs import observe


class NamedCase(TypedDict):
    """A case before it is frozen.

    Attributes:
        case_id: Its id, unique in the corpus: a-z 0-9 _ and dots, starting with a letter.
        title: What it shows, for readers.
        covers: The subjects that it speaks of; `case` where it names none.
    """

    case_id: str
    title: str
    covers: NotRequired[list[str]]


def freeze_case(
    named: NamedCase, rulebook: Rulebook, facts: Facts, adapter: AdapterInvocation | None = None
) -> GoldenCaseBody:
    """A case as a rulebook decides it.

    Args:
        named: The name of the case.
        rulebook: What decides.
        facts: The facts; those that an adapter made tell of its invocation.
        adapter: The invocation that made them; None where a caller sends them.
    """
    values: Any = dict(facts.values)
    input_hash = content_hash(values)
    attestation = rulebook_attestation(
        rulebook.reference,
        input_hash,
        rulebook.evaluator.decide(values),
        runtime_binding_of(facts.binding_mode),
        None,
        trusted_adapter=facts.trusted_adapter,
    )
    case: GoldenCaseBody = {
        "case_id": named["case_id"],
        "title": named["title"],
        "covers": named.get("covers", ["case"]),
        "rulebook": {"rulebook_id": rulebook.rulebook_id, "version": rulebook.version},
        "expected": cast("GoldenExpectation", observe(rulebook, values)),
        "frozen": {
            "rulebook_hash": rulebook.hash,
            "input_hash": input_hash,
            "bundle_hash": attestation["bundle_hash"],
        },
    }
    if adapter is None or facts.trusted_adapter is None:
        case["inputs"] = values
    else:
        case["adapter"], case["adapter_facts"] = adapter, values
        case["frozen"]["trusted_adapter"] = facts.trusted_adapter
    return case


def make_file(
    label: str, theme: str, title: str, rulebooks: Sequence[Rulebook], cases: Sequence[GoldenCaseBody]
) -> JsonObject:
    """A file of a corpus.

    Args:
        label: The label of the corpus.
        theme: The subject of the cases: the name of the file, without its ending.
        title: The same for readers.
        rulebooks: The rulebooks that the cases use.
        cases: The cases.
    """
    listed: list[Any] = [rulebook.body for rulebook in rulebooks]
    frozen: list[Any] = [*cases]
    return {"corpus": label, "theme": theme, "title": title, "rulebooks": listed, "cases": frozen}


def make_index(label: str, files: Mapping[str, Mapping[str, Any]]) -> JsonObject:
    """The index of a corpus.

    Args:
        label: The label of the corpus.
        files: Its files, by name, in the folder of the index.
    """
    listed: list[Any] = [
        {"path": path, "sha256": content_hash(file), "cases": len(file["cases"])} for path, file in files.items()
    ]
    covers = Counter(subject for file in files.values() for case in file["cases"] for subject in case["covers"])
    return {
        "corpus": label,
        "replay_contract": HISTORICAL_REPLAY,
        "evaluator_version": EVALUATOR,
        "rulebook_schema_hash": RULEBOOK_SCHEMA_HASH,
        "hash_algorithm": HASH_ALGORITHM,
        "canonicalization": CANONICALIZATION,
        "files": listed,
        "cases": sum(len(file["cases"]) for file in files.values()),
        "covers": dict(sorted(covers.items())),
        "corpus_hash": content_hash([file["sha256"] for file in listed]),
    }
