"""Cases: facts, and the outcome that the author of a rulebook expects for them.

    file = read_cases(parse(path.read_bytes()))
    file.rulebook            # "../rulebooks/pricing_exception.json", relative to the folder of the file
    file.cases[0].expect     # {"verdict": "no", "matched_rule_id": "block_below_margin_floor"}

The shape stands in `schemas/rulebook-cases-v1.schema.json`; unique names and the depth of facts are added here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NotRequired, TypedDict, cast

from gate.encoding.shapes import MAX_ERRORS, shape
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, JsonObject, nests_deeper
from gate.errors import FieldError, MaterialRefused

MAX_FACTS_DEPTH: Final = MAX_REQUEST_DEPTH - 2
"""How deep facts nest at most: a request holds them two levels deep, in `context.inputs`."""


class ExpectedInvalidField(TypedDict):
    """A fact of a wrong type, as a case expects it; `expected` is the type that the rulebook declares."""

    field: str
    expected: NotRequired[str]
    observed_type: NotRequired[str]


class Expect(TypedDict, total=False):
    """The expected outcome; members that are left out are not compared."""

    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None
    missing_fields: list[str]
    invalid_fields: list[str | ExpectedInvalidField]


@dataclass(frozen=True, slots=True)
class Case:
    """A case.

    Attributes:
        name: Its name, unique in its file.
        facts: The facts.
        expect: The expected answer of the rulebook.
    """

    name: str
    facts: JsonObject
    expect: Expect


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The content of a file of cases.

    Attributes:
        rulebook: The path of the rulebook's file, relative to the folder of the file of cases.
        cases: The cases, in the order of the file.
    """

    rulebook: str
    cases: tuple[Case, ...]


class _DeclaredCase(TypedDict):
    name: str
    facts: JsonObject
    expect: Expect


class _Document(TypedDict):
    rulebook: str
    cases: list[_DeclaredCase]


def read_cases(document: object) -> CaseFile:
    """Reads the value of a file of cases.

    Args:
        document: The parsed JSON value.

    Raises:
        MaterialRefused: `CASES_INVALID`, with an error for each member at fault.
    """
    if isinstance(document, dict) and "rules" in document and "cases" not in document:
        raise MaterialRefused("CASES_INVALID", "This is a rulebook. Give a file of cases, which states its rulebook.")
    errors = [_hinted(error) for error in shape("rulebook-cases-v1").errors(document)]
    # What a schema cannot say needs the shape, so it is looked at only where there is one.
    if not errors:
        valid = cast("_Document", document)
        errors = [*_repeated_names(valid["cases"]), *_deep_facts(valid["cases"])][:MAX_ERRORS]
    if errors:
        places = f"{len(errors)} {'place' if len(errors) == 1 else 'places'}"
        raise MaterialRefused("CASES_INVALID", f"The cases have errors in {places}. Correct each field listed.", errors)
    cases = tuple(Case(case["name"], case["facts"], case["expect"]) for case in valid["cases"])
    return CaseFile(valid["rulebook"], cases)


def _hinted(error: FieldError) -> FieldError:
    """An error, with the name that was probably meant for what a rulebook calls `decision`."""
    if error.code != "unknown_field" or not error.field.endswith(".expect.decision"):
        return error
    message = "Give the expected decision as `verdict`, and the rulebook's own verdict as `application_verdict`."
    return replace(error, message=message)


def _repeated_names(cases: list[_DeclaredCase]) -> Iterator[FieldError]:
    seen: dict[str, int] = {}
    for index, case in enumerate(cases):
        first = seen.setdefault(case["name"], index)
        if first != index:
            message = f"cases[{first}] has the same name. Give each case its own name."
            yield FieldError(f"cases[{index}].name", "duplicate", message)


def _deep_facts(cases: list[_DeclaredCase]) -> Iterator[FieldError]:
    for index, case in enumerate(cases):
        if nests_deeper(case["facts"], MAX_FACTS_DEPTH):
            message = f"They nest deeper than {MAX_FACTS_DEPTH} levels, which no request can send. Flatten them."
            yield FieldError(f"cases[{index}].facts", "too_deep", message)
