"""The names that there are, for the message that refuses one that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_LISTED: Final = 20
_COMPARED: Final = 1_000
_LONGEST: Final = 120


def choices(asked: str, names: Iterable[str]) -> str:
    """The names, at most 20 of them, and the one that was probably meant: `did you mean 'refunds'? There are ...`.

    Args:
        asked: The name that there is not.
        names: Those that there are.
    """
    there = sorted(set(names))
    if not there:
        return "There is none yet."
    close = get_close_matches(asked[:_LONGEST], islice(there, _COMPARED), n=1)
    meant = f"Did you mean {shown(close[0])}? " if close else ""
    listed = [shown(name) for name in there[:_LISTED]]
    listed += [f"{len(there) - _LISTED:,} more"] if len(there) > _LISTED else []
    several = " and ".join(part for part in (", ".join(listed[:-1]), listed[-1]) if part)
    return f"{meant}There {'is' if len(there) == 1 else 'are'} {several}."


def shown(name: str) -> str:
    """A name in quotes, with unprintable characters escaped. Long names are cut."""
    return repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")
