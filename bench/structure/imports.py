"""Arrows, floors, and circles.

An arrow leads from a module to a module that it imports, also only for types or within a function. A name that a
package exports counts as a name of its module. A room is a folder or a module directly in `gate`, or another top-level
folder. The `__init__` of a top-level package is not a room. A room is one floor above the highest room that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter

from bench.structure.tree import Module

Graph = Mapping[str, Set[str]]
"""What each node imports."""

_DIVIDED = "gate"


def modules_graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """The modules that each module imports, by their dotted names."""
    by_name = {module.name: module for module in modules}
    names = {module.name: dict(_names(module)) for module in by_name.values() if module.is_package}
    return {
        module.name: {
            found
            for target, name in _imports(module)
            if (found := _resolved(by_name, names, target, name)) and found != module.name
        }
        for module in by_name.values()
    }


def rooms_graph(arrows: Graph) -> dict[str, set[str]]:
    """The rooms that each room imports, by the arrows of their modules."""
    rooms: dict[str, set[str]] = {}
    for name, imported in arrows.items():
        if here := room(name):
            there = {found for other in imported if (found := room(other))}
            rooms.setdefault(here, set()).update(there - {here})
    return rooms


def room(name: str) -> str | None:
    """The room of a module, by its dotted name; None where it is the face of the divided package."""
    top, *inner = name.split(".")
    if top != _DIVIDED:
        return top
    return None if inner == ["__init__"] else f"{top}/{inner[0]}"


def floors(graph: Graph) -> int:
    """The number of floors; a circle stands on one.

    Args:
        graph: The rooms that each room imports.
    """
    of_room = {node: circle for circle in _components(graph) for node in circle}
    condensed: dict[frozenset[str], set[frozenset[str]]] = {circle: set() for circle in of_room.values()}
    for node, imported in graph.items():
        condensed[of_room[node]] |= {of_room[other] for other in imported} - {of_room[node]}
    height: dict[frozenset[str], int] = {}
    for circle in TopologicalSorter(condensed).static_order():
        height[circle] = 1 + max((height[below] for below in condensed[circle]), default=0)
    return max(height.values(), default=0)


def circles(graph: Graph) -> list[list[str]]:
    """The groups of nodes that import each other in a loop, sorted."""
    return sorted(sorted(found) for found in _components(graph) if len(found) > 1)


def _components(graph: Graph) -> list[frozenset[str]]:
    """The strongly connected components: those of a loop are merged until no loop is left."""
    merged: dict[str, frozenset[str]] = {node: frozenset({node}) for node in graph}
    while True:
        condensed: dict[frozenset[str], set[frozenset[str]]] = {part: set() for part in merged.values()}
        for node, imported in graph.items():
            condensed[merged[node]] |= {merged[other] for other in imported if other in merged} - {merged[node]}
        try:
            TopologicalSorter(condensed).prepare()
        except CycleError as error:
            loop: frozenset[str] = frozenset().union(*error.args[1])
            merged |= dict.fromkeys(loop, loop)
        else:
            return list(condensed)


def _imports(module: Module) -> Iterator[tuple[str, str | None]]:
    """Each import: the dotted name of what is imported from, and the name that is taken, if any."""
    package = module.name.split(".")[:-1]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((target, alias.name) for alias in node.names)


def _names(package: Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that a package hands on: the module that it has each from, and its name there."""
    for node in ast.walk(package.tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, (node.module, alias.name)


def _resolved(
    modules: Mapping[str, Module], handed_on: Mapping[str, Mapping[str, tuple[str, str]]], target: str, name: str | None
) -> str | None:
    """The module in which an imported name stands; None where it is none of the tree's."""
    if name:
        for inner in (f"{target}.{name}", f"{target}.{name}.__init__"):
            if inner in modules:
                return inner
    if target in modules:
        return target
    face = f"{target}.__init__"
    if face not in modules:
        return None
    if name and name in handed_on[face]:
        return _resolved(modules, handed_on, *handed_on[face][name]) or face
    return face
