"""Texts and names without what only changes their looks, for searches that no strange spelling escapes.

    folded("p\\u00e1ss\\u200bword")    # password
    words("x-apiKey2")              # x_api_key

Nothing here shows or stores what was folded.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# SSNs and IBANs, whose last capital is no beginning of a word.
_PLURAL_OF_CAPITALS: Final = re.compile(r"(?<=[A-Z]{2})s(?![a-z])")
# A sign may stand for a whole sentence; kept as it is, it makes no text longer than its bytes.
_LONGEST: Final = 3
# No decomposition of an i.
_DOTLESS_I: Final = "\N{LATIN SMALL LETTER DOTLESS I}"


def folded(text: str) -> str:
    """A text in plain letters, digits, spaces and hyphens where it has others, without accents and what is not seen."""
    if text.isascii():
        return text
    return text.translate({ord(char): _folded(char) for char in set(text) if not char.isascii()})


def _folded(char: str) -> str:
    if char == _DOTLESS_I:
        return "i"
    apart = char if unicodedata.is_normalized("NFKD", char) else unicodedata.normalize("NFKD", char)
    return "".join(map(_plain, apart)) if len(apart) <= _LONGEST else char


def _plain(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Mn", "Cf"):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    return "-" if category == "Pd" else char


def words(name: str) -> str:
    """The words of a name in lower case, with _ between them: of apiKey, API_KEY, api-key and api_key_2, api_key."""
    return "_".join(_WORD.findall(_PLURAL_OF_CAPITALS.sub("", name))).lower()
