"""Why cells are refused: a stable word for programs, and a sentence that says what to do."""

from __future__ import annotations

from typing import Final

import polars as pl

from workbench.history.mapping import Member

MAX_TEXT: Final = 200
"""How many characters an id, a version, an action or a reason code has at most."""

NUMBER: Final = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
"""A number as JSON writes one."""

_FRACTION: Final = r"\.[0-9]*[1-9]|[eE]-"
_LATER: Final = (
    "It lies in the future, and a past case does not. Correct it, or the format or the zone in the map; leave the row "
    "out if it has no date."
)
_NO_VALUE: Final = "If it stands for no value, add it to null_values in the map."
_PLAIN: Final = (
    "Remove thousands separators, units, spaces and a plus sign; write a decimal comma as a point, with digits on both "
    "sides of it."
)
_BEYOND: Final = "It is beyond 2^53 - 1, which JSON does not keep exactly. Map it as a string if it is a name."
_WHOLE: Final = "It is not a whole number like 1250. Map it as a number if it may have decimals."


def sentences_of(member: Member, cells: pl.Series, read: pl.Series) -> pl.Series | None:
    """Why each refused cell of a time or a number is refused; None for members that have one reason for all.

    Args:
        member: The member.
        cells: The refused cells, null in other rows.
        read: What was read of the cells, null where nothing was.
    """
    if member.time is not None:
        # A time that was read is refused for the moment that it means alone.
        why = pl.when(read.is_not_null()).then(pl.lit(_LATER)).otherwise(member.time.faults(cells))
    elif member.kind in ("number", "integer"):
        like = "a number like 1250.5" if member.kind == "number" else "a whole number like 1250"
        whole = member.kind == "integer"
        why = (
            pl.when(~pl.first().str.contains("[0-9]"))
            .then(pl.lit(f"It is not {like}. {_NO_VALUE}"))
            .when(~pl.first().str.contains(NUMBER))
            .then(pl.lit(f"It is not {like}. {_PLAIN}"))
            .when(pl.lit(whole) & pl.first().str.contains(_FRACTION))
            .then(pl.lit(_WHOLE))
            .otherwise(pl.lit(_BEYOND))
        )
    else:
        return None
    return cells.to_frame().select(pl.when(pl.first().is_not_null()).then(why).alias(cells.name)).to_series()


def reason_of(member: Member, *, empty: bool, sentence: str = "") -> tuple[str, str]:
    """Why a cell of a member is refused: a stable word, and the same for a person.

    Args:
        member: The member.
        empty: Whether the cell is empty.
        sentence: What `sentences_of` says of it; empty where it says nothing.
    """
    if empty:
        return "missing", f"The cell is empty, and every row needs {member.name}."
    if sentence:
        return member.kind, sentence
    return {
        "id": ("id", f"An id has at most {MAX_TEXT} characters, all of which print."),
        "text": ("text", f"A text has at most {MAX_TEXT} characters."),
        "choice": ("value", "The map gives it no meaning; add it to values, or to null_values."),
        "boolean": (
            "boolean",
            "It is neither true nor false; say in values what it means."
            if member.values is None
            else "The map gives it no meaning; add it to values, or to null_values.",
        ),
    }[member.kind]
