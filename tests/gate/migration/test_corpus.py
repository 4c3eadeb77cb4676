"""Corpora: ours and others in its format, whose hashes and numbers are right before anything is evaluated."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
from hypothesis import given, settings

from gate.contract.published import golden_cases, published
from gate.encoding.canonical import content_hash
from gate.errors import FieldError, MaterialRefused
from gate.migration.corpus import MAX_FILES, Corpus, published_corpus, read_corpus, read_index
from gate.migration.freezing import freeze_case, make_file, make_index
from gate.rulebooks.facts import Facts
from gate.rulebooks.rulebook import load
from tests.reference.strategies import rulebooks_and_facts
from tests.support.corpora import DEALS, LABEL, Documents, deals, indexed
from tests.support.rulebooks import change
from tests.support.samples import cases
from tests.support.tampering import Path, at, neighbour, places, with_value
from tests.support.torture import size

FAULTS: Final[list[Any]] = cases("corpus_faults")


def read(documents: Documents) -> Corpus:
    return read_corpus(read_index(documents["index.json"]), documents)


def refused(documents: Documents) -> list[FieldError]:
    with pytest.raises(MaterialRefused) as error:
        read(documents)
    assert error.value.code == "CORPUS_INVALID"
    return list(error.value.errors)


def test_the_published_corpus_is_read_as_it_is_published() -> None:
    found = published_corpus()
    assert found.label == "rulebook_v1_golden_replay_v1"
    assert list(found.cases) == golden_cases()
    assert found.published


def test_a_scope_has_a_corpus_of_its_own_with_ids_and_a_label_of_its_own() -> None:
    found = read(deals())
    assert [golden.case["case_id"] for golden in found.cases] == list(DEALS)
    assert {golden.rulebook["rulebook_id"] for golden in found.cases} == {"pricing_exception"}
    assert (found.label, found.published) == (LABEL, False)
    assert found.corpus_hash == content_hash([content_hash(deals()["deals.json"])])


def test_some_of_the_cases_are_chosen_and_the_hash_stays_that_of_the_corpus() -> None:
    found = read(deals())
    chosen = found.only(["deals.thin", "deals.usual", "deals.nowhere"])
    assert [golden.case["case_id"] for golden in chosen.cases] == ["deals.usual", "deals.thin"]
    assert chosen.corpus_hash == found.corpus_hash


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["name"])
def test_a_fault_is_named_by_its_file_and_place(fault: dict[str, Any]) -> None:
    documents = deals()
    if "replace" in fault:
        documents[fault["in"]] = fault["replace"]
    for path, value in fault.get("set", {}).items():
        change(documents[fault["in"]], path, value)
    for path in fault.get("remove", ()):
        change(documents[fault["in"]], path, remove=True)
    if fault.get("reindex"):
        documents = indexed(documents)
    assert [[error.field, error.code] for error in refused(documents)] == fault["errors"]


@pytest.mark.parametrize("member", ["rulebook_hash", "input_hash", "bundle_hash"])
def test_a_wrong_hash_of_a_case_is_told_with_the_recomputed_one(member: str) -> None:
    documents = deals()
    right = documents["deals.json"]["cases"][2]["frozen"][member]
    documents["deals.json"]["cases"][2]["frozen"][member] = "0" * 64
    (error,) = refused(indexed(documents))
    assert error.field == f"deals.json: cases[2].frozen.{member}"
    assert error.message == f"The case deals.thin states {'0' * 64}, but the recomputed hash is {right}."


def test_a_wrong_hash_of_a_file_is_told_with_the_recomputed_one() -> None:
    documents = deals()
    stated = documents["index.json"]["files"][0]["sha256"]
    documents["deals.json"]["title"] = "Other deals"
    (error,) = refused(documents)
    recomputed = content_hash(documents["deals.json"])
    assert error.message == f"The index, of deals.json, states {stated}, but the recomputed hash is {recomputed}."


UNBOUND: Final = ("title", "theme", "covers", "case_id", "missing_fields", "invalid_fields")
"""What no hash of a case covers: what is for readers, the names of cases, and why input is needed. A forger who makes a
new index may change these, and nothing else.
"""


def changes() -> list[Path]:
    """The places of a file of cases that decide something."""
    file = deals()["deals.json"]
    return [path for path in places(file) if not {*path} & {*UNBOUND} and not isinstance(at(file, path), dict | list)]


def test_no_change_to_a_file_stays_unseen_although_its_index_is_made_anew() -> None:
    documents = deals()
    found = changes()
    assert len(found) > 80
    for path in found:
        file = with_value(documents["deals.json"], path, neighbour(at(documents["deals.json"], path)))
        assert refused(indexed({"deals.json": file})), path


def adapter_file() -> Any:
    return copy.deepcopy(published()["/replay/adapters.json"].document)


@pytest.mark.parametrize("member", ["adapter_id", "version", "manifest_hash", "input_hash", "output_hash"])
def test_what_a_case_tells_of_its_adapter_is_what_its_input_and_facts_are(member: str) -> None:
    file = adapter_file()
    file["cases"][0]["frozen"]["trusted_adapter"][member] = "0" * 64
    index = make_index(file["corpus"], {"adapters.json": file})
    told = [(error.field, error.code) for error in refused({"index.json": index, "adapters.json": file})]
    frozen = "adapters.json: cases[0].frozen"
    assert told == [(f"{frozen}.trusted_adapter.{member}", "hash"), (f"{frozen}.bundle_hash", "hash")]


def test_two_files_hold_each_case_once_and_each_version_of_a_rulebook_once() -> None:
    first, second = deals()["deals.json"], deals()["deals.json"]
    errors = refused(indexed({"deals.json": first, "more.json": second}))
    assert {(error.field, error.code) for error in errors} == {("files", "duplicate")}
    assert len(errors) == len(DEALS)
    other = deals(default_outcome=first["rulebooks"][0]["rules"][0]["outcome"])["deals.json"]
    for case in other["cases"]:
        case["case_id"] = f"more.{case['case_id']}"
    (error,) = refused(indexed({"deals.json": first, "more.json": other}))
    assert error.message == "They contain two rulebooks pricing_exception of the version 2026-06-11. Keep one."


def test_a_rulebook_stands_once_in_a_file() -> None:
    file = deals()["deals.json"]
    file["rulebooks"] *= 2
    (error,) = refused(indexed({"deals.json": file}))
    assert (error.field, error.code) == ("deals.json: rulebooks", "duplicate")


def test_a_file_is_listed_once_and_no_more_files_than_anyone_needs() -> None:
    index = deals()["index.json"]
    (listed,) = index["files"]
    twice = {**index, "files": [listed, listed], "cases": 10, "corpus_hash": content_hash([listed["sha256"]] * 2)}
    many = {**index, "files": [{**listed, "path": f"f{number}.json"} for number in range(MAX_FILES + 1)]}
    many |= {"cases": 5 * (MAX_FILES + 1), "corpus_hash": content_hash([listed["sha256"]] * (MAX_FILES + 1))}
    for hostile, code in ((twice, "duplicate"), (many, "too_many")):
        with pytest.raises(MaterialRefused) as error:
            read_index(hostile)
        assert [(fault.field, fault.code) for fault in error.value.errors] == [("files", code)]


def test_no_more_errors_are_listed_than_anyone_reads() -> None:
    file = deals()["deals.json"]
    case = file["cases"][0]
    file["cases"] = [
        {**case, "case_id": f"c{n}", "frozen": {**case["frozen"], "input_hash": "0" * 64}} for n in range(99)
    ]
    assert len(refused(indexed({"deals.json": file}))) == 50


@settings(max_examples=size(10, 200))
@given(rulebooks_and_facts())
def test_what_is_frozen_is_read(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
    body, facts = drawn
    rulebook = load(body)
    case = freeze_case({"case_id": "one", "title": "One"}, rulebook, Facts(facts, plain=False))
    file = make_file(LABEL, "one", "One", [rulebook], [case])
    found = read(indexed({"one.json": file}))
    assert [golden.case for golden in found.cases] == [case]
    assert found.cases[0].facts.values == facts


def test_every_published_case_freezes_as_it_is_published() -> None:
    for golden in golden_cases():
        named: Any = {name: golden.case[name] for name in ("case_id", "title", "covers")}
        frozen: Any = freeze_case(named, load(golden.rulebook), golden.facts, golden.case.get("adapter"))
        stated: Any = dict(golden.case)
        stated["expected"] = {**stated["expected"]}
        stated["expected"].pop("evaluated_rules", None)
        assert frozen == (stated if "adapter" in stated else {"inputs": {}, **stated})
