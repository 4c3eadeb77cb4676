"""Finds the lines of fields in a JSON text, for messages to the author of a file.

    lines_of(text, ["rules[0].outcome.action"])     # {"rules[0].outcome.action": 17}

Lines count from 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused, member

Steps: TypeAlias = tuple[str | int, ...]
"""The path to a value: the names of fields and the indexes of items."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+')


def lines_of(text: str, paths: Iterable[str]) -> dict[str, int]:
    """The line, from 1, of each path.

    If the text does not have a path, such as that of a missing field, its line is that of the nearest object or array
    around it.

    Args:
        text: JSON that `strict_json.parse` accepts.
        paths: The paths, in the form of `shapes.dotted`.
    """
    wanted = {path: list(outwards(path)) for path in paths}
    sought = {path for around in wanted.values() for path in around}
    found = {"": 1}
    for place in _places(text):
        if place.path in sought:
            found.setdefault(place.path, place.line)
    return {path: next(found[one] for one in around if one in found) for path, around in wanted.items()}


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a value in a text.

    Attributes:
        begin: The offset of its field, including the name. For an item, it is that of the value.
        start: The offset of the value's first character.
        end: The offset after its last character.
    """

    begin: int
    start: int
    end: int


def spans_of(text: str) -> dict[Steps, Span]:
    """The place of each value in a JSON text, by its path.

    Args:
        text: JSON that `strict_json.parse` accepts.
    """
    found: dict[Steps, Span] = {}
    names: dict[Steps, int] = {}
    opened: dict[Steps, int] = {}
    for place in _places(text):
        if place.kind == "name":
            names[place.steps] = place.start
        elif place.kind == "open":
            opened[place.steps] = place.start
        else:
            start = opened.get(place.steps, place.start)
            found[place.steps] = Span(names.get(place.steps, start), start, place.end)
    return found


def line_of_refusal(text: str) -> int | None:
    """The line of a part of well-formed JSON that `strict_json` refuses, or None.

    Such a part is a second field with the same name in an object, or an unusable number or string.
    """
    for place in _places(text):
        if place.repeated or (place.kind in ("name", "scalar") and not _is_usable(place.text)):
            return place.line
    return None


def outwards(path: str) -> Iterator[str]:
    """A path, followed by the paths of the objects and arrays around it, the nearest first."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    yield ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A field's name, a scalar, or the first or last character of an object or array.

    Attributes:
        kind: Which of these.
        line: Its line, from 1.
        path: The path of the field or value.
        start: Its offset.
        end: The offset after it.
        text: Its text.
        steps: The path, with a name or an index for each step.
        repeated: For a name: whether the object already has it.
    """

    kind: Literal["name", "scalar", "open", "close"]
    line: int
    path: str
    steps: Steps
    start: int
    end: int
    text: str
    repeated: bool = False


@dataclass(slots=True)
class _Open:
    """An object or array that is not closed yet."""

    path: str
    steps: Steps
    # Of an object: its names so far. Of an array: None.
    names: set[str] | None
    index: int = 0
    # The path of the member whose value comes next, and its name; None where its name comes next.
    value: str | None = None
    name: str = ""

    @property
    def next_path(self) -> str:
        """The path of the value that comes next."""
        return f"{self.path}[{self.index}]" if self.value is None else self.value

    @property
    def next_steps(self) -> Steps:
        """The steps of the value that comes next."""
        return (*self.steps, self.index if self.value is None else self.name)


def _places(text: str) -> Iterator[_Place]:
    line, at = 1, 0
    around: list[_Open] = []
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at, found = match.start(), match[0]
        inner = around[-1] if around else None
        if found in ("}", "]"):
            if not around:
                return
            closed = around.pop()
            yield _Place("close", line, closed.path, closed.steps, *match.span(), found)
        elif found == ",":
            if inner is not None:
                inner.index, inner.value = inner.index + 1, None
        elif found == ":":
            continue
        elif inner is not None and inner.names is not None and inner.value is None:
            if not found.startswith('"'):
                return
            try:
                # Most names have no escapes, and a decoder takes as long as all else.
                name = json.loads(found, strict=False) if "\\" in found else found[1:-1]
            except json.JSONDecodeError:
                return
            inner.value, inner.name = member(inner.path, name), name
            yield _Place(
                "name", line, inner.value, inner.next_steps, *match.span(), found, repeated=name in inner.names
            )
            inner.names.add(name)
        else:
            path, steps = (inner.next_path, inner.next_steps) if inner is not None else ("", ())
            if found in ("{", "["):
                yield _Place("open", line, path, steps, *match.span(), found)
                around.append(_Open(path, steps, set() if found == "{" else None))
            else:
                yield _Place("scalar", line, path, steps, *match.span(), found)


def _is_usable(scalar: str) -> bool:
    try:
        parse(scalar.encode())
    except (MaterialRefused, UnicodeEncodeError):
        return False
    return True
