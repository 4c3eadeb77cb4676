"""The rule for new names, of scopes and of users alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

NAME_LENGTH: Final = 64
"""How long a new name may be; an older release allowed scopes more, and other characters."""

RULE: Final = (
    f"A name has 1 to {NAME_LENGTH} ASCII letters, digits, dots, underscores and hyphens, and begins with a letter or "
    "digit."
)

_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH - 1}}}")


def is_name(text: str) -> bool:
    """Whether a text can be a new name."""
    return _NAME.fullmatch(text) is not None


def same_but_for_case(name: str, others: Iterable[str]) -> str | None:
    """The first of other names that differs from a name only in case; None where there is none."""
    return next((other for other in others if other != name and other.casefold() == name.casefold()), None)
