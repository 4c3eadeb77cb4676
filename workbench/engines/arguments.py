"""What the engines are asked with, checked at the door: a wrong argument is told of in a sentence, before anything is
read. The bounds are those of the service's own reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from gate.encoding.canonical import canonical
from gate.errors import MaterialRefused, OperatorError
from workbench.lake.reader import Lake, Snapshot

MAX_LIMIT: Final = 1_000_000
"""The highest `limit`."""

MAX_SAMPLE: Final = 10_000
"""The highest `min_sample`."""

VERDICTS: Final = ("yes", "no", "review")

_LONGEST: Final = 80
_SCOPES: Final = 20


def refusal(sentence: str) -> OperatorError:
    """The error that says what is wrong with an argument."""
    return OperatorError("ENGINE_ARGUMENT_INVALID", sentence)


def require_snapshot(value: object) -> None:
    """Refuses what is no scope of a lake.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if isinstance(value, Snapshot):
        return
    if isinstance(value, Lake):
        named = ", ".join(value.scopes[:_SCOPES]) or "none yet"
        more = f" and {len(value.scopes) - _SCOPES:,} more" if len(value.scopes) > _SCOPES else ""
        raise refusal(f"A lake is no scope: give a scope, lake.scope(...); this lake has {named}{more}.")
    raise refusal(f"snapshot is {_told(value)}: give a scope, open_lake(...).scope(...).")


def require_lake(value: object) -> None:
    """Refuses what is neither a lake nor a scope of one.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not isinstance(value, Lake | Snapshot):
        raise refusal(f"lake is {_told(value)}: give a lake, open_lake(...), or one scope of it.")


def require_text(name: str, value: object, *, optional: bool = True) -> None:
    """Refuses what is no text.

    Args:
        name: What the argument is called.
        value: The argument.
        optional: Whether None is taken.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not (isinstance(value, str) or (optional and value is None)):
        raise refusal(f"{name} is {_told(value)}: give a text{', or None for all' if optional else ''}.")


def require_verdict(value: object) -> None:
    """Refuses what is no verdict; None is for all.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if value is not None and not (isinstance(value, str) and value in VERDICTS):
        raise refusal(f"verdict is {_told(value)}: give yes, no or review, or None for all.")


def require_limit(value: object) -> None:
    """Refuses what is no number of decisions from 1 to 1,000,000; None is for all.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not (value is None or _is_within(value, MAX_LIMIT)):
        raise refusal(f"limit is {_told(value)}: give a whole number from 1 to {MAX_LIMIT:,}, or None for all.")


def require_min_sample(value: object) -> None:
    """Refuses what is no number of outcomes from 1 to 10,000.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not _is_within(value, MAX_SAMPLE):
        raise refusal(f"min_sample is {_told(value)}: give a whole number from 1 to {MAX_SAMPLE:,}.")


def require_threshold(value: object) -> None:
    """Refuses what is no score from 0 to 1.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1):
        raise refusal(f"threshold is {_told(value)}: give a number from 0 to 1.")


def require_whole(name: str, value: object, lowest: int, highest: int) -> None:
    """Refuses what is no whole number between two bounds, both included.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if not (_is_within(value, highest) and isinstance(value, int) and value >= lowest):
        raise refusal(f"{name} is {_told(value)}: give a whole number from {lowest:,} to {highest:,}.")


def moment(name: str, value: object) -> datetime | None:
    """A moment in UTC; None stays None.

    Args:
        name: What the argument is called.
        value: A datetime, in UTC where it names no zone; or a date, which is its midnight in UTC.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        try:
            return value.replace(tzinfo=UTC) if value.utcoffset() is None else value.astimezone(UTC)
        except OverflowError as error:
            raise refusal(f"{name} is {_told(value)}, which lies outside the years 1 to 9999 in UTC.") from error
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise refusal(
        f"{name} is {_told(value)}: give a datetime or a date, which are taken as UTC where they name no zone."
    )


def require_rulebook(value: object) -> None:
    """Refuses what is no body of a rulebook; what is wrong with one, `gate.rulebooks.rulebook.load` says.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if value is not None and not isinstance(value, Mapping):
        raise refusal(
            f"rulebook is {_told(value)}: give the body of a rulebook, a dict; those that decided stand in "
            f"table('rulebooks'), as JSON in the column body."
        )


def facts_patch(value: object) -> dict[str, Any]:
    """A patch over facts, empty for None.

    Raises:
        OperatorError: ENGINE_ARGUMENT_INVALID.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refusal(f'patch is {_told(value)}: give a mapping from facts to values, such as {{"order_total": 900}}.')
    patch = _plain(value)
    try:
        canonical(patch)
    except MaterialRefused as error:
        raise refusal(f"patch holds what JSON does not have: {error.message}") from error
    return patch


def _plain(value: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: _plain(item) if isinstance(item, Mapping) else item for name, item in value.items()}


def _is_within(value: object, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= highest


def _told(value: object) -> str:
    if isinstance(value, str | int | float | date):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"a {type(value).__name__}"
