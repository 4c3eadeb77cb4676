"""Writes docstrings, comments, and imports of Python modules, before `ruff format`. Pure."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping
from typing import Final

_WIDTH: Final = 120
_QUOTES: Final = '"""'


def docstring(text: str, sections: Mapping[str, Iterable[str]] | None = None, *, indent: int = 4) -> str:
    """A docstring, with its end of line.

    Args:
        text: Its paragraphs, separated by empty lines.
        sections: The entries of its sections, such as `Args`, by heading.
        indent: Its indentation.
    """
    margin = " " * indent
    summary, *others = text.split("\n\n")
    blocks = [_wrapped(summary, margin + _QUOTES, margin), *(_wrapped(other, margin) for other in others)]
    for heading, entries in (sections or {}).items():
        told = [_wrapped(entry, f"{margin}    ", f"{margin}        ") for entry in entries]
        blocks.append("\n".join([f"{margin}{heading}:", *told]))
    written = "\n\n".join(blocks).replace("\\", "\\\\")
    end = f"\n{margin}" if "\n" in written else ""
    return f"{written}{end}{_QUOTES}\n"


def comment(text: str, *, indent: int = 0) -> str:
    """A comment on separate lines."""
    return _wrapped(text, f"{' ' * indent}# ") + "\n"


def sentence(text: str) -> str:
    """A text with its full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def imports(code: str, offered: Mapping[str, Iterable[str]], types: Iterable[str] = ()) -> str:
    """The imports of a module. Types are imported only for type checkers.

    Args:
        code: The rest of the module.
        offered: The names that it may import, by module, in the order of the imports.
        types: The names in the module of types.
    """
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    typed = sorted(used.intersection(types))
    used |= {"TYPE_CHECKING"} if typed else set()
    lines = {module: [name for name in names if name in used] for module, names in offered.items()}
    foreign, own = (
        "".join(
            f"from {module} import {', '.join(names)}\n"
            for module, names in lines.items()
            if names and module.startswith("gate.") == is_own
        )
        for is_own in (False, True)
    )
    checked = f"\nif TYPE_CHECKING:\n    from gate.client.api.types import {', '.join(typed)}\n" if typed else ""
    return "\n".join(filter(None, (foreign, own))) + checked + "\n"


def _wrapped(text: str, margin: str, hanging: str | None = None) -> str:
    lines = textwrap.wrap(
        " ".join(text.split()),
        # The quotes that end a docstring go on its line.
        _WIDTH - len(_QUOTES),
        initial_indent=margin,
        subsequent_indent=margin if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)
