"""Walking the conditions of a rulebook: every node with its path, its depth, and whether a `not` turns it around."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from gate.rulebooks.documents import Condition, DeclaredRule, RulebookBody

_COMBINATORS: Final[tuple[Literal["all", "any"], ...]] = ("all", "any")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a condition.

    Attributes:
        path: Its place below the path that the walk began with: `.all[0].not`.
        condition: The node itself.
        depth: How deep it stands; the condition of a rule is 1 deep.
        inverted: Whether an odd number of `not` stands around it.
    """

    path: str
    condition: Condition
    depth: int
    inverted: bool


def walk(condition: Condition, path: str = "", depth: int = 1, *, inverted: bool = False) -> Iterator[Node]:
    """The nodes of a condition, each before its children."""
    yield Node(path, condition, depth, inverted)
    for combinator in _COMBINATORS:
        for index, child in enumerate(condition.get(combinator, ())):
            yield from walk(child, f"{path}.{combinator}[{index}]", depth + 1, inverted=inverted)
    if "not" in condition:
        yield from walk(condition["not"], f"{path}.not", depth + 1, inverted=not inverted)


def tests_of(body: RulebookBody) -> Iterator[tuple[DeclaredRule, Node]]:
    """Every test of every rule, with its path in the rulebook."""
    for index, rule in enumerate(body["rules"]):
        for node in walk(rule["condition"], f"rules[{index}].condition"):
            if "operator" in node.condition:
                yield rule, node


def test_nodes(rule: DeclaredRule) -> Iterator[tuple[str, Condition]]:
    """Every test of a rule, with its path in the rule, as evaluations name it: `condition.all[0]`."""
    for node in walk(rule["condition"], "condition"):
        if "operator" in node.condition:
            yield node.path, node.condition


def replaced(condition: Condition, path: str, new: Condition) -> Condition:
    """A condition with the node at a path, such as `.all[0].not`, replaced; the rest is shared. "" is the condition."""
    if not path:
        return new
    if path.startswith(".not"):
        return {"not": replaced(condition["not"], path.removeprefix(".not"), new)}
    name: Literal["all", "any"] = "all" if path.startswith(".all") else "any"
    number, _, rest = path.removeprefix(f".{name}[").partition("]")
    at = int(number)
    children = [replaced(one, rest, new) if index == at else one for index, one in enumerate(condition[name])]
    return {"all": children} if name == "all" else {"any": children}
