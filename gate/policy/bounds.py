"""The bounds of a question's members, and the sentence that refuses other values.

    require("min_sample", 0, Whole(1, 10_000))
    # ENGINE_ARGUMENT_INVALID: min_sample is 0: give a whole number from 1 to 10,000.

A bound is a value: query strings are read with the same bounds that the question checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

from gate.encoding.canonical import canonical
from gate.errors import MaterialRefused, OperatorError

_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    def holds(self, value: object) -> bool:
        """Whether a value is within the bound."""
        return isinstance(value, str)

    def __str__(self) -> str:
        return "a string"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def holds(self, value: object) -> bool:
        """Whether a value is within the bound."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return " or ".join(filter(None, (", ".join(self.words[:-1]), self.words[-1])))


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two bounds, both included."""

    lowest: int
    highest: int

    def holds(self, value: object) -> bool:
        """Whether a value is within the bound; True is an int to Python, and no number here."""
        return isinstance(value, int) and not isinstance(value, bool) and self.lowest <= value <= self.highest

    def __str__(self) -> str:
        return f"a whole number from {self.lowest:,} to {self.highest:,}"


@dataclass(frozen=True, slots=True)
class Share:
    """A number from 0 to 1."""

    def holds(self, value: object) -> bool:
        """Whether a value is within the bound."""
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1

    def __str__(self) -> str:
        return "a number from 0 to 1"


@dataclass(frozen=True, slots=True)
class Moment:
    """A datetime, or a date, which means its midnight. Both are in UTC if they have no time zone."""

    def holds(self, value: object) -> bool:
        """Whether a value is within the bound."""
        return isinstance(value, date)

    def __str__(self) -> str:
        return "a datetime or a date, in UTC if it has no time zone"


Bound: TypeAlias = Text | OneOf | Whole | Share | Moment


def refusal(sentence: str) -> OperatorError:
    """The error that says what is wrong with an argument."""
    return OperatorError("ENGINE_ARGUMENT_INVALID", sentence)


def require(name: str, value: object, bound: Bound, *, optional: bool = False) -> None:
    """Refuses a value that is out of bounds.

    Args:
        name: The member's name.
        value: Its value.
        bound: Its bound.
        optional: Whether None, which means all, is allowed.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if not (bound.holds(value) or (optional and value is None)):
        raise refusal(f"{name} is {shown(value)}: give {bound}{', or None for all' if optional else ''}.")


def moment(name: str, value: object) -> datetime | None:
    """A moment in UTC; None stays None.

    Args:
        name: The member's name.
        value: A datetime, in UTC if it has no time zone; or a date, which means its midnight in UTC.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        try:
            return value.replace(tzinfo=UTC) if value.utcoffset() is None else value.astimezone(UTC)
        except OverflowError as error:
            raise refusal(f"{name} is {shown(value)}, which is outside the years 1 to 9999 in UTC.") from error
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise refusal(f"{name} is {shown(value)}: give {Moment()}.")


def span(since: object, until: object) -> tuple[datetime | None, datetime | None]:
    """From when, and until before when, in UTC; None where it is open.

    Args:
        since: As `moment` takes it.
        until: The same; a date includes its day.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    begins, ends = moment("since", since), moment("until", until)
    if ends is not None and not isinstance(until, datetime) and ends.date() < date.max:
        ends += timedelta(days=1)
    return begins, ends


def period(since: object, until: object) -> tuple[datetime | None, datetime | None]:
    """A span in which moments lie.

    Args:
        since: As `span` takes it.
        until: The same.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, also where no moment lies between them.
    """
    begins, ends = span(since, until)
    if begins is not None and ends is not None and ends <= begins:
        raise refusal(
            f"The period is empty: until is {_written(until)} and since is {_written(since)}. Give a later until. A "
            "date includes its whole day; a datetime is excluded."
        )
    return begins, ends


def _written(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else shown(value)


def facts_patch(value: object) -> dict[str, Any]:
    """A patch over facts, empty for None.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refusal(f'patch is {shown(value)}: give a mapping from facts to values, such as {{"order_total": 900}}.')
    patch = _plain(value)
    try:
        canonical(patch)
    except MaterialRefused as error:
        raise refusal(f"patch has a value that JSON cannot represent: {error.message}") from error
    return patch


def require_rulebook(value: object) -> None:
    """Refuses what is no body of a rulebook; what is wrong with one, `gate.rulebooks.rulebook.load` says.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if value is not None and not isinstance(value, Mapping):
        raise refusal(
            f"rulebook is {shown(value)}: give the body of a rulebook as a dict. table('rulebooks') has the "
            "rulebooks that decided, as JSON in the column body."
        )


def require_names(name: str, value: object, most: int) -> None:
    """Refuses what are not some different names.

    Args:
        name: The member's name.
        value: Its value.
        most: How many names there are at most.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    names = value if isinstance(value, tuple) and all(isinstance(each, str) and each for each in value) else None
    if names is None or len(names) > most or len(set(names)) < len(names):
        told = f"a list of {len(names)}" if names is not None else shown(value)
        raise refusal(f"{name} is {told}: give a list of at most {most} different names.")


def shown(value: object) -> str:
    """A value as a sentence names it: as it is written where that is short, else by its type."""
    if isinstance(value, str | int | float | date):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"a {type(value).__name__}"


def _plain(value: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: _plain(item) if isinstance(item, Mapping) else item for name, item in value.items()}
