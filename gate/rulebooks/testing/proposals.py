"""Cases that are proposed to an author, with the answers that the rulebook gives today, for a person to confirm.

    boundary_cases(rulebook)                      # at and near each threshold; absent, null, another type
    missing_cases(rulebook, coverage, mutation)   # those that close the holes and tell the survivors apart

The analysis finds the facts, and the evaluator gives the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import Json, JsonObject
from gate.rulebooks.analysis import NotDecided, Questions
from gate.rulebooks.evaluation import ABSENT, value_at
from gate.rulebooks.facts import with_value
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.boundaries import BoundaryValue, boundary_values
from gate.rulebooks.testing.cases import Case, Expect
from gate.rulebooks.testing.coverage import Coverage
from gate.rulebooks.testing.mutation import MutationReport
from gate.rulebooks.testing.runs import observe

MAX_CASES: Final = 10_000
"""How many cases a file may have, and so how many are proposed at most."""

_LONGEST_NAME: Final = 200


def boundary_cases(rulebook: Rulebook) -> list[Case]:
    """A case for each boundary value that facts can have: where they can, facts in which its test decides.

    Args:
        rulebook: The rulebook.

    Raises:
        NotDecided: The rulebook is too large to find facts for it.
    """
    with Questions(rulebook.body) as questions:
        return _proposed(rulebook, _at_boundaries(rulebook, questions))


def missing_cases(rulebook: Rulebook, coverage: Coverage | None, mutation: MutationReport | None) -> list[Case]:
    """The cases that close the holes of a coverage, and those that kill the mutants that survived.

    Args:
        rulebook: The rulebook.
        coverage: Its coverage, judged by a finder.
        mutation: Its mutants.
    """
    found: list[tuple[str, JsonObject]] = []
    for hole in () if coverage is None else coverage.holes:
        for wanted in hole.missing:
            facts = coverage.found().get(wanted) if coverage is not None else None
            if facts is not None:
                found.append((hole.goal.description, facts.facts))
    for survivor in () if mutation is None else mutation.survived:
        found.append((f"kills: {survivor.mutant.description}", survivor.facts))
    return _proposed(rulebook, found)


def _at_boundaries(rulebook: Rulebook, questions: Questions) -> Iterator[tuple[str, JsonObject]]:
    near: dict[str, JsonObject] = {}
    usual = questions.valid_facts()
    for boundary in boundary_values(rulebook.body):
        rule_id, path = _test_of(rulebook, boundary)
        facts = None
        if path is not None:
            try:
                facts = questions.deciding_facts(rule_id, path, boundary.value, near.get(boundary.field))
            except NotDecided:
                # The case is proposed over other facts: it then tries the value, and not the test alone.
                facts = None
        if facts is not None:
            near[boundary.field] = facts
        else:
            facts = _with(near.get(boundary.field, usual), boundary)
        if facts is not None:
            yield f"{rule_id}: {boundary.label}" if path is not None else boundary.label, facts


def _test_of(rulebook: Rulebook, boundary: BoundaryValue) -> tuple[str, str | None]:
    if boundary.path is None:
        return "", None
    place, _, path = boundary.path.removeprefix("rules[").partition("].")
    return rulebook.body["rules"][int(place)]["rule_id"], path


def _with(facts: JsonObject | None, boundary: BoundaryValue) -> JsonObject | None:
    """Facts with a boundary value; None where what is above its field is no object."""
    above = boundary.field
    while facts is not None and "." in above:
        above = above.rpartition(".")[0]
        if not isinstance(value_at(facts, above), dict) and value_at(facts, above) is not ABSENT:
            return None
    return None if facts is None else with_value(facts, boundary.field, boundary.value)


def _proposed(rulebook: Rulebook, found: Iterable[tuple[str, JsonObject]]) -> list[Case]:
    cases: list[Case] = []
    seen: set[bytes] = set()
    names: set[str] = set()
    for name, facts in found:
        written = canonical(facts)
        if written in seen or len(cases) == MAX_CASES:
            continue
        seen.add(written)
        cases.append(Case(_unique(name, names), facts, _answer(rulebook, facts)))
    return cases


def _unique(name: str, names: set[str]) -> str:
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 10]}..."
    number, found = 1, short
    while found in names:
        number += 1
        found = f"{short} ({number})"
    names.add(found)
    return found


def _answer(rulebook: Rulebook, facts: JsonObject) -> Expect:
    """What the rulebook answers today, as a case expects it."""
    observed = observe(rulebook, facts)
    expect: Expect = {
        "verdict": observed["verdict"],
        "application_verdict": observed["application_verdict"],
        "action": observed["action"],
        "reason_code": observed["reason_code"],
        "matched_rule_id": observed["matched_rule_id"],
    }
    if observed["missing_fields"]:
        expect["missing_fields"] = observed["missing_fields"]
    if observed["invalid_fields"]:
        expect["invalid_fields"] = [field["field"] for field in observed["invalid_fields"]]
    return expect


def document_of(rulebook: str, cases: Iterable[Case], description: str) -> JsonObject:
    """Cases as a document: rulebook_cases_v1.

    Args:
        rulebook: The path of the rulebook, relative to the folder of the document's file.
        cases: The cases.
        description: A comment for readers.
    """
    listed: list[Json] = [
        {"name": case.name, "facts": case.facts, "expect": cast("JsonObject", case.expect)} for case in cases
    ]
    return {
        "schema_version": "rulebook_cases_v1",
        "description": description,
        "rulebook": rulebook,
        "cases": listed,
    }
