"""What an editor shows of a draft while it is typed: whether it is a valid rulebook, and every error and warning at its
place.

    found = diagnose(text)
    found.rulebook          # compiled, where it is valid
    [(problem.line, problem.severity, problem.message) for problem in found.problems]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal

from gate.drafting.merging import MINE, THEIRS
from gate.drafting.splicing import Text, read
from gate.encoding.positions import Span, Steps, line_of_refusal, outwards
from gate.encoding.shapes import dotted
from gate.encoding.strict_json import Json, JsonObject
from gate.errors import FieldError, MaterialRefused, member
from gate.rulebooks.advice import find_warnings
from gate.rulebooks.authoring import Authored, read_authored
from gate.rulebooks.rulebook import Rulebook, load

MAX_PROBLEMS: Final = 200
"""How many problems are shown at most."""

# The line of what is refused is looked for in texts up to this size: in larger ones it takes seconds.
_BREAK: Final = re.compile(r"[.\[\]]")
_SEARCHED: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning at its place.

    Attributes:
        severity: An error makes it no valid rulebook; a warning points at a probable mistake.
        line: Its line, from 1.
        start: The offset of the first character that it is about.
        end: The offset behind the last one.
        field: The member; empty for the whole text.
        code: A stable code.
        message: The fault, and the next step.
    """

    severity: Literal["error", "warning"]
    line: int
    start: int
    end: int
    field: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of a text.

    Attributes:
        text: The text as it was read; None where it is no JSON or YAML.
        authored: Its rulebook and descriptions; None where it is no JSON or YAML.
        rulebook: Its rulebook, compiled; None where it is not valid.
        problems: Its errors, or its warnings where there are none, in the order of the text.
    """

    text: Text | None
    authored: Authored | None
    rulebook: Rulebook | None
    problems: tuple[Problem, ...]


def diagnose(text: str, adapter_facts: JsonObject | None = None) -> Diagnosis:
    """The diagnosis of a draft's text.

    Args:
        text: The text, in JSON or YAML, whatever is in it.
        adapter_facts: The schema of the facts of the adapter that makes its facts; None where callers send them.
    """
    if (unchosen := _unchosen(text)) is not None:
        return Diagnosis(None, None, None, (unchosen,))
    try:
        found = read(text)
    except MaterialRefused as error:
        return Diagnosis(None, None, None, (_refusal(text, error),))
    authored = read_authored(found.value)
    if authored.errors:
        return Diagnosis(found, authored, None, _problems(found, authored.errors, "error"))
    warnings = find_warnings(authored.body, adapter_facts)
    return Diagnosis(found, authored, load(authored.body), _problems(found, warnings, "warning"))


def _unchosen(text: str) -> Problem | None:
    """The first place of a merge where nobody has chosen yet: in a list over several lines it would be a value."""
    if THEIRS not in text:
        return None
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if line.strip() in (MINE, THEIRS):
            message = "Two authors changed these lines. Keep the right ones, and delete the marker lines."
            return Problem("error", number, start, start + len(line.rstrip()), "", "DRAFT_UNMERGED", message)
        start += len(line)
    return None


def _problems(text: Text, faults: Sequence[FieldError], severity: Literal["error", "warning"]) -> tuple[Problem, ...]:
    paths = {path for fault in faults[:MAX_PROBLEMS] for path in outwards(fault.field)}
    places = _places(text.value, text.spans, paths)
    found = []
    for fault in faults[:MAX_PROBLEMS]:
        span = next((places[path] for path in outwards(fault.field) if path in places), Span(0, 0, 0))
        start, end = span.begin, span.end
        # Of an object or a list, the line that it begins on is marked, and not all of it.
        line_end = text.text.find("\n", start)
        end = end if line_end < 0 else min(end, line_end)
        line = text.text.count("\n", 0, start) + 1
        found.append(Problem(severity, line, start, end, fault.field, fault.code, fault.message))
    return tuple(sorted(found, key=lambda problem: problem.start))


def _places(value: Json, spans: Mapping[Steps, Span], paths: Set[str]) -> dict[str, Span]:
    """The spans at some paths, named as errors name them."""
    # To name every value of a large text would take as long as to read it, and few end as a path does.
    ends = {_end(path) for path in paths}
    likely = {steps: span for steps, span in spans.items() if not steps or _end(member("", str(steps[-1]))) in ends}
    named = {dotted(value, steps): span for steps, span in likely.items()}
    return {path: span for path, span in named.items() if path in paths}


def _end(path: str) -> str:
    """What follows the last dot or bracket of a path."""
    return _BREAK.split(path.rstrip("]"))[-1]


def _refusal(text: str, error: MaterialRefused) -> Problem:
    """Where a text is no JSON or YAML."""
    told = error.details.get("line")
    line = told if isinstance(told, int) else None
    message = error.message.replace("The body", "The text", 1)
    if line is None and len(text) <= _SEARCHED:
        line = line_of_refusal(text)
    line = _line_in(message) if line is None else line
    lines = text.split("\n")
    line = min(max(line or 1, 1), len(lines))
    start = sum(len(each) + 1 for each in lines[: line - 1])
    return Problem("error", line, start, start + len(lines[line - 1]), "", error.code, message)


def _line_in(message: str) -> int | None:
    """The line that a refusal of JSON names in its sentence."""
    _, found, rest = message.partition(" at line ")
    number = rest.partition(" ")[0].rstrip(",.")
    return int(number) if found and number.isdecimal() else None
