"""The parts that generated pages are made of: links, tables, anchors, and examples that are cut short."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

_LONGEST: Final = 48
_FIELDS: Final = (14, 5, 3)
"""How many fields of an object an example shows, by depth; deeper objects are left out."""
_WIDTH: Final = 100


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def code(text: str) -> str:
    """Text as code."""
    return f"`{text}`"


def link(text: str, target: str) -> str:
    """A link."""
    return f"[{text}]({target})"


def choice(words: Sequence[str], conjunction: str = "or") -> str:
    """Words in a row: "a, b, or c"."""
    if len(words) < 3:
        return f" {conjunction} ".join(words)
    return f"{', '.join(words[:-1])}, {conjunction} {words[-1]}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing where it would have no rows."""
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) if lines else ""


def page(*blocks: str) -> str:
    """Blocks with a blank line between them; empty ones are left out."""
    return "\n\n".join(filter(None, (block.strip("\n") for block in blocks))) + "\n"


def fence(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text}\n```"


def example(value: Any) -> str:
    """A JSON value, laid out to be read."""
    return _laid_out(value, 0)


def shortened(value: Any, depth: int = 0) -> Any:
    """A JSON value with the ends of long strings, the later items and the deepest objects left out."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 8]}..."
    if isinstance(value, list):
        return [shortened(item, depth) for item in value[:1]]
    if not isinstance(value, dict):
        return value
    kept = [name for name, item in value.items() if depth + 1 < len(_FIELDS) or not _holds_objects(item)]
    short = {name: shortened(value[name], depth + 1) for name in kept[: _FIELDS[min(depth, len(_FIELDS) - 1)]]}
    # An object whose fields are all left out would look empty.
    return {name: item for name, item in short.items() if item != {} or value[name] == {}}


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_objects, value)))


def _laid_out(value: Any, indent: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (indent and len(flat) + indent <= _WIDTH):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        inner = [f"{json.dumps(name)}: {_laid_out(item, indent + 2)}" for name, item in value.items()]
    else:
        inner = [_laid_out(item, indent + 2) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(f"{pad}{item}" for item in inner) + f"\n{' ' * indent}{last}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
