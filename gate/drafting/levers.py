"""The levers of a rulebook's facts: the values that matter for it, for sliders and lists.

For example:

    for lever in levers(body, facts): lever.low, lever.high, lever.choices
    patch_of({"order.total": 5})            # {"order": {"total": 5}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from gate.drafting.given import fields_of
from gate.drafting.splicing import one_line
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.evaluation import ABSENT, value_at

MAX_SLIDER: Final = 1e12
"""Beyond such numbers a fact has no slider: nobody would find a value on it."""

_STEPS: Final = 200
_NUMBERS: Final = ("number", "integer")


@dataclass(frozen=True, slots=True)
class Lever:
    """A fact that can be changed.

    Attributes:
        name: The fact.
        type: Its declared type; None where it is not declared.
        was: Its value as it is written; empty where it is not there, or no decision is looked at.
        state: Its kind: `absent`, `null`, or `value`.
        low: Where its slider begins; None where it has none: numbers alone have one, up to `MAX_SLIDER`.
        high: Where its slider ends.
        step: How far it moves at a time.
        choices: The values that tests name, as they are typed; empty where it has a slider, or none are named.
    """

    name: str
    type: str | None
    was: str
    state: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()


def levers(body: RulebookBody, facts: Mapping[str, object]) -> list[Lever]:
    """The facts that a rulebook reads, with the values that matter for it: sliders reach beyond every constant.

    Args:
        body: A valid rulebook.
        facts: The facts of a decision; {} where none is looked at.
    """
    constants: dict[str, list[object]] = {}
    for _, node in tests_of(body):
        test = node.condition
        value = test.get("value")
        constants.setdefault(test["field"], []).extend(value if isinstance(value, list) else [value])
    found = []
    for field in fields_of(body, facts):
        of = constants.get(field.name, [])
        numbers = [float(each) for each in (*of, value_at(facts, field.name)) if _is_number(each)]
        if field.type in _NUMBERS and numbers and max(map(abs, numbers)) <= MAX_SLIDER:
            low, high, step = _range(numbers, whole=field.type == "integer")
            found.append(Lever(field.name, field.type, field.text, field.state, low, high, step))
            continue
        texts = [each if isinstance(each, str) else one_line(each) for each in of if each is not None]  # type: ignore[arg-type]
        choices = ("true", "false") if field.type == "boolean" else tuple(dict.fromkeys(map(str, texts)))
        shown = choices if field.type in ("boolean", "string") else ()
        found.append(Lever(field.name, field.type, field.text, field.state, choices=shown))
    return found


def _is_number(value: object) -> TypeGuard[float]:
    return value is not ABSENT and isinstance(value, int | float) and not isinstance(value, bool)


def _range(numbers: list[float], *, whole: bool) -> tuple[float, float, float]:
    """From below the least to above the greatest number, in steps that people would take."""
    least, most = min(*numbers, 0.0), max(*numbers, 1.0)
    room = (most - least) / 4
    step = 10.0 ** math.floor(math.log10(max((most - least) / _STEPS, 1e-9)))
    step = max(step, 1.0) if whole else step
    low = math.floor((least - (room if least < 0 else 0)) / step) * step
    return low, math.ceil((most + room) / step) * step, step


def patch_of(changed: Mapping[str, Any]) -> dict[str, Any]:
    """Changed facts as a merge patch: {"order.total": 5} becomes {"order": {"total": 5}}; None takes a fact out."""
    patch: dict[str, Any] = {}
    for name, value in changed.items():
        *above, last = name.split(".")
        inner = patch
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return patch
