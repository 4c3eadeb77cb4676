"""The findings of an audit: the table and row that are wrong, why, and what an operator does about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gate.encoding.stored_json import parse_plain
from gate.errors import MaterialRefused

_RESTORE: Final = "restore a backup that passes `gate chain check`."

TAMPERED: Final = f"Keep this ledger as evidence, and {_RESTORE}"
"""What to do where the chain or what it rests on was changed."""

BESIDE: Final = f"The records and the chain are not affected; {_RESTORE}"
"""What to do where only rows that follow from the chain were changed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a ledger that is not as its chain has it.

    Attributes:
        position: The chain position that it is about; None where it is about none.
        reason: The fault, and the next step, as sentences.
        table: The table with the row that is wrong.
        row: Its id: of an entry, a decision, a claim (in hex), a rulebook with its version, or a cohort.
    """

    position: int | None
    reason: str
    table: str
    row: str


def tampered(position: int | None, what: str, row: object, *, table: str = "entries") -> Finding:
    """A row of the chain, or one that it rests on, is not as it was made.

    Args:
        position: The chain position, if there is one.
        what: The fault, as a sentence.
        row: The row's id.
        table: The row's table.
    """
    return Finding(position, f"{what} {TAMPERED}", table, str(row))


def beside(position: int | None, what: str, row: object, *, table: str) -> Finding:
    """A row in another table differs from the entries of the chain. The arguments are those of `tampered`."""
    return Finding(position, f"{what} {BESIDE}", table, str(row))


def read_stored(stored: object, what: str) -> tuple[Any, bool]:
    """The JSON object in stored bytes, as `stored_json.parse_plain` gives it, and whether it is plain.

    Raises:
        MaterialRefused: They hold no JSON object; its message is a sentence for a finding.
    """
    try:
        value, plain = parse_plain(stored) if isinstance(stored, bytes) else (None, False)
    except MaterialRefused:
        value, plain = None, False
    if not isinstance(value, dict):
        raise MaterialRefused("SVC_API_JSON_INVALID", f"The stored {what} is not a readable JSON object.")
    return value, plain
