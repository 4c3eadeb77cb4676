"""Random values, described with the words of `data/demo/scenario.json`.

    read_drawing({"between": [3, 12], "digits": 1}).draw(random, values)
    read_drawing({"text": "deal-{deal}"}).draw(random, {"deal": 7})

A value is used as it is, unless it is an object with one of these words. Values are drawn in order: `values`, `facts`,
`context`. Names refer to earlier values, and to `domain`, `scope`, and `number`. A field that becomes null is left out.

    "between": [low, high]              a number, uniformly
    "skewed": [median, spread]          the median times e to the power of a normal number with that spread
    "around": [mean, spread]            a normal number
    "choose": [[weight, value], ...]    one of the values, by weight
    "by": name, "each": {value: ...}    the entry for the value of another name, or null
    "chance": p                         true with that probability
    "same": name                        the value of that name
    "text": "deal-{deal}"               a text that contains the values of names

Numbers can also have `digits` (0 gives an integer), `within` (bounds), and then `times` or `plus` (the value of a
name).

A description is read once and drawn from many times. Each word takes the same random numbers at every draw, in the
order of this code. This order is part of the year that a seed gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final, Protocol, TypeAlias

from gate.encoding.strict_json import Json, JsonObject

Values: TypeAlias = Mapping[str, Json]
"""What was drawn before, by name."""


class Drawing(Protocol):
    """A description of a value."""

    def draw(self, random: Random, values: Values) -> Json:
        """A value.

        Args:
            random: The source of random numbers.
            values: The values drawn so far, by name.
        """


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is always the same."""

    value: Json

    def draw(self, random: Random, values: Values) -> Json:
        """The value itself."""
        return self.value


@dataclass(frozen=True, slots=True)
class Same:
    """The value of another name."""

    name: str

    def draw(self, random: Random, values: Values) -> Json:
        """The value that was drawn before."""
        return values[self.name]


@dataclass(frozen=True, slots=True)
class Text:
    """A text with values in it."""

    template: str

    def draw(self, random: Random, values: Values) -> Json:
        """The text."""
        return self.template.format_map(values)


@dataclass(frozen=True, slots=True)
class Chance:
    """True with a probability."""

    probability: float

    def draw(self, random: Random, values: Values) -> Json:
        """Whether it happens."""
        return random.random() < self.probability


@dataclass(frozen=True, slots=True)
class Choose:
    """One of several drawings, by weight."""

    weights: Sequence[float]
    drawings: Sequence[Drawing]

    def draw(self, random: Random, values: Values) -> Json:
        """A value of the chosen one."""
        (chosen,) = random.choices(self.drawings, self.weights)
        return chosen.draw(random, values)


@dataclass(frozen=True, slots=True)
class By:
    """One drawing for each value of another name; a value without a drawing gives null."""

    name: str
    drawings: Mapping[str, Drawing]

    def draw(self, random: Random, values: Values) -> Json:
        """A value from the drawing that belongs to the value drawn before."""
        drawing = self.drawings.get(str(values[self.name]))
        return None if drawing is None else drawing.draw(random, values)


@dataclass(frozen=True, slots=True)
class Number:
    """A number from a distribution.

    Attributes:
        distribution: Gives the number.
        low: The lower bound.
        high: The upper bound.
        times: The name of a value that multiplies it.
        plus: The name of a value that is added.
        digits: How many digits stay after the point; with 0 it is an integer.
    """

    distribution: Callable[[Random], float]
    low: float
    high: float
    times: str | None
    plus: str | None
    digits: int

    def draw(self, random: Random, values: Values) -> Json:
        """A number."""
        return self.number(random, values)

    def number(self, random: Random, values: Values) -> float:
        """A number."""
        number = min(max(self.distribution(random), self.low), self.high)
        if self.times is not None:
            number *= number_of(values[self.times])
        if self.plus is not None:
            number += number_of(values[self.plus])
        # round(x, 0) would stay a float.
        return round(number, self.digits) if self.digits else round(number)


@dataclass(frozen=True, slots=True)
class Members:
    """An object whose fields are all drawn."""

    members: Mapping[str, Drawing]

    def draw(self, random: Random, values: Values) -> JsonObject:
        """The object, without the fields that are drawn as null."""
        drawn = {name: member.draw(random, values) for name, member in self.members.items()}
        return {name: value for name, value in drawn.items() if value is not None}


def read_drawing(told: Json) -> Drawing:
    """Reads the description of a value.

    Args:
        told: A JSON value, which describes itself; or an object with one of the words above; or any
            other object, whose fields are descriptions.

    Raises:
        KeyError: A number has no `digits`.
        TypeError: A word is followed by what it cannot mean.
    """
    if not isinstance(told, dict):
        return Constant(told)
    for word, read in _WORDS.items():
        if word in told:
            return read(told)
    return Members(read_each(told))


def read_each(told: JsonObject) -> dict[str, Drawing]:
    """Reads descriptions by name.

    Raises:
        KeyError, TypeError: As `read_drawing` does.
    """
    return {name: read_drawing(member) for name, member in told.items()}


def read_number(told: JsonObject) -> Number:
    """Reads the description of a number: `between`, `skewed` or `around`.

    Raises:
        KeyError: It has no `digits`, or none of the three words.
        TypeError: A word is followed by what it cannot mean.
    """
    word = next((word for word in _DISTRIBUTIONS if word in told), "between")
    low, high = _pair(told["within"]) if "within" in told else (-math.inf, math.inf)
    return Number(
        _DISTRIBUTIONS[word](*_pair(told[word])),
        low,
        high,
        _text(told["times"]) if "times" in told else None,
        _text(told["plus"]) if "plus" in told else None,
        int(number_of(told["digits"])),
    )


def weighted(random: Random, weights: Mapping[str, float]) -> str:
    """One of several names, by weight."""
    return random.choices(tuple(weights), tuple(weights.values()))[0]


def random_of(seed: int, scope: str, what: str, number: int) -> Random:
    """Returns a separate generator of random numbers for each drawn thing. It makes no secrets."""
    return Random(f"{seed}/{scope}/{what}/{number}")  # noqa: S311


def whole_milliseconds(moment: datetime) -> datetime:
    """Cuts a moment to milliseconds, as in timestamps, so that both have the same order."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _choose(told: JsonObject) -> Choose:
    pairs = [_list(pair) for pair in _list(told["choose"])]
    return Choose([number_of(weight) for weight, _ in pairs], [read_drawing(drawing) for _, drawing in pairs])


def _by(told: JsonObject) -> By:
    each = told["each"]
    if not isinstance(each, dict):
        raise TypeError(f"{each!r} is not an object.")
    return By(_text(told["by"]), read_each(each))


_DISTRIBUTIONS: Final[Mapping[str, Callable[[float, float], Callable[[Random], float]]]] = {
    "between": lambda low, high: lambda random: random.uniform(low, high),
    "skewed": lambda median, spread: lambda random: median * math.exp(random.gauss(0, spread)),
    "around": lambda mean, spread: lambda random: random.gauss(mean, spread),
}

_WORDS: Final[Mapping[str, Callable[[JsonObject], Drawing]]] = {
    **dict.fromkeys(_DISTRIBUTIONS, read_number),
    "choose": _choose,
    "by": _by,
    "chance": lambda told: Chance(number_of(told["chance"])),
    "same": lambda told: Same(_text(told["same"])),
    "text": lambda told: Text(_text(told["text"])),
}


def number_of(value: Json) -> float:
    """Returns a value that must be a number.

    Raises:
        TypeError: It is not a number.
    """
    # Integers stay integers: a number at its bound is written as the bound is.
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{value!r} is not a number.")


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not a string.")


def _list(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    raise TypeError(f"{value!r} is not an array.")


def _pair(value: Json) -> tuple[float, float]:
    first, second = _list(value)
    return number_of(first), number_of(second)
