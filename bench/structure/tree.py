"""The modules of a work tree, and the kinds of their lines."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

HOUSE: Final = ("gate", "workbench", "api", "bench", "notebooks")
"""The folders whose modules make the house; `data` has none, and tests stand beside it."""

_LAYOUT: Final = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


@dataclass(frozen=True)
class Module:
    """A module, read.

    Attributes:
        path: Where it lies, from the tree's root.
        source: Its text.
    """

    path: PurePosixPath
    source: str

    @property
    def name(self) -> str:
        """Its dotted name; that of a package ends with `__init__`."""
        return ".".join(self.path.with_suffix("").parts)

    @property
    def is_package(self) -> bool:
        """Whether it is a package's `__init__.py`."""
        return self.path.stem == "__init__"

    @property
    def folder(self) -> str:
        """The folder in which it lies."""
        return str(self.path.parent)

    @property
    def is_generated(self) -> bool:
        """Whether its first line says that a program wrote it."""
        return "generated" in self.source.partition("\n")[0].lower()

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.source)

    @cached_property
    def code_lines(self) -> int:
        """How many lines hold code: none that are blank, or hold a comment or a docstring alone."""
        return len(self._token_lines - self._docstring_lines)

    @cached_property
    def comment_lines(self) -> int:
        """The number of lines with a comment, including comments after code."""
        return len({token.start[0] for token in self._tokens if token.type == tokenize.COMMENT})

    @cached_property
    def lines(self) -> int:
        """How many lines it has, of whatever kind."""
        return len(self.source.splitlines())

    @cached_property
    def _tokens(self) -> Sequence[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.source).readline))

    @property
    def _token_lines(self) -> set[int]:
        skipped = _LAYOUT | {tokenize.COMMENT}
        spans = ((token.start[0], token.end[0]) for token in self._tokens if token.type not in skipped)
        return {line for first, last in spans for line in range(first, last + 1)}

    @property
    def _docstring_lines(self) -> set[int]:
        """The lines of docstrings, and of the strings that stand as a statement below a constant."""
        found = (
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        return {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def read(root: Path, folders: Sequence[str] = HOUSE) -> list[Module]:
    """The modules below some folders of a work tree, by path; a folder that is not there has none."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    return [Module(PurePosixPath(file.relative_to(root).as_posix()), file.read_text("utf-8")) for file in files]
