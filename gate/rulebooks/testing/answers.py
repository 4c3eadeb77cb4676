"""Answers of the exact analysis when it is asked for facts: the facts, the proof that there are none, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from gate.encoding.strict_json import JsonObject


@dataclass(frozen=True, slots=True)
class Found:
    """Facts of the kind asked for.

    Attributes:
        facts: The facts.
    """

    facts: JsonObject


@dataclass(frozen=True, slots=True)
class Never:
    """There are no such facts: it is proved."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Whether there are such facts is not decided.

    Attributes:
        reason: Why, as a clause without a full stop.
    """

    reason: str


Answer: TypeAlias = Found | Never | Undecided
