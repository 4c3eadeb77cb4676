"""Advice to the author of cases: facts that the rulebook does not know, and expectations that can never hold.

A warning does not make a file of cases invalid. But a misspelled fact is absent for the rulebook, so the case tests
another situation than its author believes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, cast

from gate.encoding.shapes import MAX_ERRORS
from gate.encoding.strict_json import JsonObject
from gate.errors import FieldError, member
from gate.rulebooks.advice import ClosestName
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.explanation import shown
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.runs import OUTCOME_MEMBERS, possible_outcomes


def find_case_warnings(body: RulebookBody, cases: Sequence[Case]) -> list[FieldError]:
    """The warnings about the cases of a valid rulebook, at most `MAX_ERRORS`, by places in the file of cases."""
    return list(islice(_warnings(body, cases), MAX_ERRORS))


def find_fact_warnings(body: RulebookBody, facts: JsonObject) -> list[FieldError]:
    """The warnings about the facts of a valid rulebook that it does not know, at most `MAX_ERRORS`, by their paths."""
    known, closest = _KnownFields(body), ClosestName()
    unknown = islice(known.unknown_in(facts), MAX_ERRORS)
    return [FieldError(path, "unknown_fact", known.why_unknown(path, closest)) for path in unknown]


def _warnings(body: RulebookBody, cases: Sequence[Case]) -> Iterator[FieldError]:
    closest = ClosestName()
    yield from _unknown_facts(body, cases, closest)
    yield from _never_occurring(body, cases, closest)


# --- Facts ------------------------------------------------------------------------------------------------------------


def _unknown_facts(body: RulebookBody, cases: Sequence[Case], closest: ClosestName) -> Iterator[FieldError]:
    """One warning for each fact, however many cases have it."""
    known = _KnownFields(body)
    having: dict[str, dict[int, None]] = {}
    for index, case in enumerate(cases):
        for path in known.unknown_in(case.facts):
            if path in having or len(having) < MAX_ERRORS:
                having.setdefault(path, {})[index] = None
    for path, indexes in having.items():
        others = len(indexes) - 1
        also = f" {others} more {'case has' if others == 1 else 'cases have'} it." if others else ""
        at = f"cases[{next(iter(indexes))}].facts.{path}"
        yield FieldError(at, "unknown_fact", f"{known.why_unknown(path, closest)}{also}")


class _KnownFields:
    """The fields that a rulebook requires, declares or reads."""

    def __init__(self, body: RulebookBody) -> None:
        schema = body["input_schema"]
        tests = [node.condition for _, node in tests_of(body)]
        self._names: Final = {*schema["required"], *schema["properties"], *(test["field"] for test in tests)}
        # A test that compares an object reads everything in it.
        self._compared: Final = {test["field"] for test in tests if "value" in test}
        self._around: Final = {name[:at] for name in self._names for at, mark in enumerate(name) if mark == "."}
        self._sorted: Final = sorted(self._names)

    def unknown_in(self, facts: JsonObject, path: str = "") -> Iterator[str]:
        """The paths of the facts that are no known field, are not in one, and have none in them."""
        for name, value in facts.items():
            at = member(path, name)
            if "." in name or at not in self._names | self._around:
                yield at
            elif isinstance(value, dict) and at in self._around - self._compared:
                yield from self.unknown_in(value, at)

    def why_unknown(self, path: str, closest: ClosestName) -> str:
        """The warning about a fact that `unknown_in` found."""
        if path in self._names:
            return "No rule can read a fact with a dot in its name. Nest it: put the part after the dot in an object."
        meant = closest.find(path, self._sorted)
        do = "Remove it, or declare it in the rulebook." if meant is None else f"Did you mean {meant!r}?"
        return f"The rulebook neither declares nor reads {path!r}, so this fact changes nothing. {do}"


# --- Expectations -----------------------------------------------------------------------------------------------------


def _never_occurring(body: RulebookBody, cases: Sequence[Case], closest: ClosestName) -> Iterator[FieldError]:
    outcomes = possible_outcomes(body)
    values = {name: {outcome[name] for outcome in outcomes} for name in OUTCOME_MEMBERS}
    for index, case in enumerate(cases):
        at = f"cases[{index}].expect"
        expect = cast("Mapping[str, object]", case.expect)
        stated = {name: cast("str | None", expect[name]) for name in OUTCOME_MEMBERS if name in expect}
        never = [name for name, value in stated.items() if value not in values[name]]
        for name in never:
            yield _never(f"{at}.{name}", name, stated[name], values[name], closest)
        if not never and not any(stated.items() <= outcome.items() for outcome in outcomes):
            together = ", ".join(f"{name} {shown(value)}" for name, value in stated.items())
            yield FieldError(at, "never_occurs", f"No outcome of the rulebook has all of these together: {together}.")
        yield from _fields_never_at_fault(body, case, at)


def _never(path: str, name: str, value: str | None, possible: set[str | None], closest: ClosestName) -> FieldError:
    what = (
        f"The rulebook has no rule {value!r}" if name == "matched_rule_id" else f"No outcome has the {name} {value!r}"
    )
    meant = closest.find(value or "", sorted(one for one in possible if one is not None))
    do = "Correct it, or the rulebook." if meant is None else f"Did you mean {meant!r}?"
    return FieldError(path, "never_occurs", f"{what}, so the case can never hold. {do}")


def _fields_never_at_fault(body: RulebookBody, case: Case, at: str) -> Iterator[FieldError]:
    schema = body["input_schema"]
    required, declared = frozenset(schema["required"]), schema["properties"]
    for index, field in enumerate(case.expect.get("missing_fields", ())):
        if field not in required:
            message = f"The rulebook does not require {field!r}, so it can never be missing."
            yield FieldError(f"{at}.missing_fields[{index}]", "never_occurs", message)
    for index, invalid in enumerate(case.expect.get("invalid_fields", ())):
        name = invalid if isinstance(invalid, str) else invalid["field"]
        if name not in declared:
            message = f"The rulebook declares no type for {name!r}, so it can never be invalid."
            yield FieldError(f"{at}.invalid_fields[{index}]", "never_occurs", message)
        elif not isinstance(invalid, str) and invalid.get("expected", declared[name]["type"]) != declared[name]["type"]:
            message = f"The rulebook declares {name!r} as {declared[name]['type']}."
            yield FieldError(f"{at}.invalid_fields[{index}].expected", "never_occurs", message)
