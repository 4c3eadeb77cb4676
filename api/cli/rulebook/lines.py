"""Explanations as lines for people: conditions over facts, and failing cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from api.cli.rulebook.runs import CaseRun
from gate.rulebooks.explanation import Tree, shown

LEGEND: Final = "+ supports a match, - opposes it; inside `not`, false supports it"
"""Explains the signs. It is printed if a condition has a `not`."""


def nodes(tree: Tree, depth: int = 0) -> Iterator[tuple[int, Tree]]:
    """The nodes of a tree with their depths, each before its children."""
    yield depth, tree
    for child in tree.children:
        yield from nodes(child, depth + 1)


def tree_lines(tree: Tree) -> Iterator[str]:
    """The lines of a tree over facts, with sign, result, and reason.

    An example is `+ margin_percent gte 15: true, the fact is 22`.
    """
    for depth, node in nodes(tree):
        sign, result = "+" if node.supports else "-", "true" if node.holds else "false"
        yield f"{'  ' * depth}{sign} {node.text}: {result}, {node.reason}"


def has_not(tree: Tree) -> bool:
    """Whether a tree has a `not`."""
    return any(node.text == "not" for _, node in nodes(tree))


def failure_lines(case: CaseRun) -> Iterator[str]:
    """The lines about a failing case: the differences, then the reasons."""
    for each in case.result.differences:
        yield f"{each.member}: expected {shown(each.expected)}, observed {shown(each.observed)}"
    for reason in case.reasons:
        yield reason.text
        if reason.tree is not None:
            yield from (f"  {line}" for line in tree_lines(reason.tree))
