"""Text that would take over a terminal."""

from __future__ import annotations

from typing import Final

# As it would look on a terminal: a green line that says "verified", and all that follows hidden.
HOSTILE: Final = (
    "x\x1b[2K\x1b[1G\x1b[32mverified: unchanged since a trusted key signed it\x1b[0m\x1b[8m\r\n"
    "verified: on a line of its own\x00\x07\x08\t\x0b\x7f\x85\x9b31m\xad\u061c\u200b\u200e\u200f"
    "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\U000e0041"
)

# Arguments hold no U+0000, and whatever bytes are no UTF-8.
HOSTILE_ARGUMENT: Final = HOSTILE.replace("\x00", "") + "\udcff"

NO_TEXT: Final = "dec\udcff"
