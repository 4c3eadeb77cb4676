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
    "It lies in the future, but cases are past. Correct it, or the format or time zone in the map. If the row has "
    "no date, leave the row out."
)
_NO_VALUE: Final = "If it means that there is no value, add it to null_values in the map."
_PLAIN: Final = (
    "Remove thousands separators, units, spaces, and plus signs. Write a decimal comma as a point, with digits on "
    "both sides."
)
_BEYOND: Final = "It is beyond 2^53 - 1, which JSON cannot represent exactly. If it is a name, map it as a string."
_WHOLE: Final = "It is not a whole number like 1250. If it may have decimals, map it as a number."


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
    """The reason why a cell is refused: a stable code, and a sentence.

    Args:
        member: The field.
        empty: Whether the cell is empty.
        sentence: The result of `sentences_of`; empty if it has none.
    """
    if empty:
        return "missing", f"The cell is empty, but every row needs {member.name}."
    if sentence:
        return member.kind, sentence
    return {
        "id": ("id", f"An id has at most {MAX_TEXT} printable characters."),
        "text": ("text", f"A text has at most {MAX_TEXT} characters."),
        "choice": ("value", "The map does not define it; add it to values or to null_values."),
        "boolean": (
            "boolean",
            "It is neither true nor false; define it in values."
            if member.values is None
            else "The map does not define it; add it to values or to null_values.",
        ),
    }[member.kind]
