"""Folds texts and names, so that searches also find unusual spellings.

    folded("p\\u00e1ss\\u200bword")    # password
    words("x-apiKey2")              # x_api_key

The results are only for searches, and never shown or stored.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# SSNs and IBANs, whose last capital is no beginning of a word.
_PLURAL_OF_CAPITALS: Final = re.compile(r"(?<=[A-Z]{2})s(?![a-z])")
# A sign may represent a whole sentence. Unchanged, it does not make a text longer than its bytes.
_LONGEST: Final = 3
# No decomposition of an i.
_DOTLESS_I: Final = "\N{LATIN SMALL LETTER DOTLESS I}"


def folded(text: str) -> str:
    """A text with plain letters, digits, spaces, and hyphens, without accents and invisible characters."""
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
    """The words of a name in lower case, joined with `_`: `apiKey`, `API_KEY` and `api_key_2` become `api_key`."""
    return "_".join(_WORD.findall(_PLURAL_OF_CAPITALS.sub("", name))).lower()
