"""The old and the proposed values that a request names, wherever it names both.

    changed_values({"context": {"field_name": "industry", "current_value": "retail", "proposed_value": "wholesale"}})
        # [Changed("industry", "retail", "wholesale")]

The protocol has no members for them, so that they are known by the words in their names. One alone is no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from gate.verify.members import at

MOST_CHANGED: Final = 20
"""How many values are shown."""

_OLD: Final = ("old", "previous", "current", "before")
_PROPOSED: Final = ("new", "proposed", "requested", "after")
_FIELDS: Final = ("field_name", "field")
_DEEPEST: Final = 4


class Changed(NamedTuple):
    """A value that would change; None on a side that names none."""

    name: str
    old: Any
    proposed: Any


def changed_values(request: Mapping[str, Any] | None) -> list[Changed]:
    """The values that an action would change, as far as the request names the old and the proposed one.

    Args:
        request: The Decision Request; None where it was erased.
    """
    told = (at(request, "context"), at(request, "adapter", "input"))
    found = (changed for part in told for of in _objects(part, _DEEPEST) for changed in _pairs(of))
    return list(islice(found, MOST_CHANGED))


def _objects(told: Any, deepest: int) -> Iterator[Mapping[str, Any]]:
    """The objects in a value, itself first."""
    if isinstance(told, Mapping):
        yield told
    parts: Sequence[Any] = list(told.values()) if isinstance(told, Mapping) else told if isinstance(told, list) else ()
    if deepest:
        for part in parts:
            yield from _objects(part, deepest - 1)


def _pairs(of: Mapping[str, Any]) -> Iterator[Changed]:
    old, proposed = _named(of, _OLD), _named(of, _PROPOSED)
    field = next((of[name] for name in _FIELDS if isinstance(of.get(name), str)), None)
    for rest, before in old.items():
        if rest not in proposed:
            continue
        after = proposed[rest]
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
            yield from (Changed(name, before.get(name), after.get(name)) for name in names)
        else:
            yield Changed(field if field and rest in ("", "value") else rest or "value", before, after)


def _named(of: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The members with one of the words at the beginning or the end of their names, by the rest of the names."""
    found: dict[str, Any] = {}
    for name, told in of.items():
        first, _, behind = name.partition("_")
        before, _, last = name.rpartition("_")
        if first in words:
            found.setdefault(behind, told)
        elif last in words:
            found.setdefault(before, told)
    return found
