"""Counts of modules, `Any` and the lines of functions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from bench.structure.tree import Module


def modules_per_folder(modules: Iterable[Module]) -> Counter[str]:
    """How many modules lie directly in each folder, its `__init__.py` apart."""
    return Counter(module.folder for module in modules if not module.is_package)


def anys(module: Module) -> int:
    """How often a module says `Any`, in annotations or elsewhere in its code; importing it is not saying it."""
    return sum(
        (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any" and _is_typing(node.value))
        for node in ast.walk(module.tree)
    )


def per_thousand(number: int, modules: Iterable[Module]) -> float:
    """A number per 1,000 lines of code; 0 without code."""
    lines = sum(module.code_lines for module in modules)
    return 1000 * number / lines if lines else 0.0


def function_lengths(modules: Iterable[Module]) -> Sequence[int]:
    """The lines of each function and method, docstrings included, ascending."""
    return sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _is_typing(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"typing", "t"}
