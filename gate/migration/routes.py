"""The routes of a rulebook id, in the order of the chain: which version it leads to, and where a rollback goes.

Applies are a stack: an apply puts a version on top, and a rollback takes the top away. So rollbacks walk back through
earlier applies, and never lead forward again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.records.changes import RouteEntry


def applied(routes: Sequence[RouteEntry]) -> list[RouteEntry]:
    """The applies that were not rolled back, oldest first. The last one is active.

    Args:
        routes: All route entries of one rulebook id, in the order of the chain.
    """
    stack: list[RouteEntry] = []
    for route in routes:
        if route["cause"] == "apply":
            stack.append(route)
        elif stack:
            stack.pop()
    return stack


def rollback_target(routes: Sequence[RouteEntry]) -> RouteEntry | None:
    """The apply that a rollback returns to; None if there is none before the active one."""
    stack = applied(routes)
    return stack[-2] if len(stack) > 1 else None


def taken_back(routes: Sequence[RouteEntry]) -> dict[str, RouteEntry]:
    """The rollback that took the apply of each migration back, by migration id.

    Args:
        routes: All route entries of one rulebook id, in the order of the chain.
    """
    stack: list[RouteEntry] = []
    found: dict[str, RouteEntry] = {}
    for route in routes:
        if route["cause"] == "apply":
            stack.append(route)
        elif stack:
            found[stack.pop()["migration_id"]] = route
    return found


def find_break(routes: Sequence[RouteEntry]) -> tuple[int, str] | None:
    """The first route, by its index, that does not follow from those before it, and why; None where all do.

    Args:
        routes: All route entries of one rulebook id, in the order of the chain.
    """
    stack: list[RouteEntry] = []
    for index, route in enumerate(routes):
        before = routes[index - 1]["to"] if index else None
        if route["from"] != before:
            return index, "It does not continue from the version that was active before it."
        if route["cause"] == "apply":
            stack.append(route)
            continue
        if len(stack) < 2:
            return index, "It is a rollback, but there is no earlier apply to return to."
        stack.pop()
        kept = ("to", "migration_id", "approval_hash", "evidence_hash")
        if any(route[name] != stack[-1][name] for name in kept):  # type: ignore[literal-required]
            return index, "It rolls back to another version, or on other evidence, than the apply before it."
    return None
