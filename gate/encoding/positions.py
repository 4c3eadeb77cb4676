"""The lines of a JSON text on which its members stand, for messages to the author of a file.

lines_of(text, ["rules[0].outcome.action"])     # {"rules[0].outcome.action": 17}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from gate.encoding.strict_json import parse
from gate.errors import MaterialRefused, member

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+')


def lines_of(text: str, paths: Iterable[str]) -> dict[str, int]:
    """The line, from 1, of each path, as `shapes.dotted` writes paths.

    The line of a path that the text does not have, such as that of a missing member, is that of the nearest object or
    array around it.

    Args:
        text: JSON that `strict_json.parse` accepts.
        paths: The paths.
    """
    wanted = {path: list(outwards(path)) for path in paths}
    sought = {path for around in wanted.values() for path in around}
    found = {"": 1}
    for place in _places(text):
        if place.path in sought:
            found.setdefault(place.path, place.line)
    return {path: next(found[one] for one in around if one in found) for path, around in wanted.items()}


def line_of_refusal(text: str) -> int | None:
    """The line on which a text has what `strict_json` refuses in well-formed JSON: a second member of one name in an
    object, or an unusable number or string. None where nothing is found.
    """
    for place in _places(text):
        if place.repeated or (place.scalar is not None and not _is_usable(place.scalar)):
            return place.line
    return None


def outwards(path: str) -> Iterator[str]:
    """A path, and the paths of the objects and arrays around it, the nearest first."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    yield ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A member's name, or the first character of a value: its line, its path, and the text of a scalar."""

    line: int
    path: str
    scalar: str | None = None
    repeated: bool = False


@dataclass(slots=True)
class _Open:
    """An object or array that is not closed yet."""

    path: str
    # Of an object: its names so far. Of an array: None.
    names: set[str] | None
    index: int = 0
    # The path of the member whose value comes next; None where its name comes next.
    value: str | None = None

    @property
    def next_path(self) -> str:
        """The path of the value that comes next."""
        return f"{self.path}[{self.index}]" if self.value is None else self.value


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
            around.pop()
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
            inner.value = member(inner.path, name)
            yield _Place(line, inner.value, found, repeated=name in inner.names)
            inner.names.add(name)
        else:
            path = inner.next_path if inner is not None else ""
            if found in ("{", "["):
                yield _Place(line, path)
                around.append(_Open(path, set() if found == "{" else None))
            else:
                yield _Place(line, path, found)


def _is_usable(scalar: str) -> bool:
    try:
        parse(scalar.encode())
    except (MaterialRefused, UnicodeEncodeError):
        return False
    return True
