"""The current time and new identifiers, which no function can compute from its arguments.

Pure code takes both as arguments, so that the same arguments always result in the same bytes.
"""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from typing import Final

from gate.ids import first_id

_TOKEN_BYTES: Final = 10
# Asking the system for randomness costs a thread its turn, so it is asked for many tokens at once.
_DRAWN: Final = 256
_tokens: list[str] = []
# A forked process must not draw what its parent draws.
os.register_at_fork(after_in_child=_tokens.clear)


def utc_now() -> datetime:
    """The current time as an aware datetime in UTC."""
    return datetime.now(UTC)


def new_id(prefix: str, moment: datetime) -> str:
    """A new identifier `<prefix>_<48 bits of milliseconds><80 random bits>` in lower-case hex.

    Identifiers with the same prefix sort by their creation time. Nobody can guess the 80 random bits.
    """
    try:
        token = _tokens.pop()
    except IndexError:
        drawn = secrets.token_hex(_TOKEN_BYTES * _DRAWN)
        fresh = [drawn[at : at + 2 * _TOKEN_BYTES] for at in range(0, len(drawn), 2 * _TOKEN_BYTES)]
        token = fresh.pop()
        _tokens.extend(fresh)
    return first_id(prefix, moment) + token
