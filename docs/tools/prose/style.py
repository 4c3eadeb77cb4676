"""The house rules of prose, from house.toml: banned constructions, long sentences, terms without a link, long pages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from docs.tools.prose.counts import length_of, sentences_of
from docs.tools.prose.texts import ROOT, Text

HOUSE: Final[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "house.toml").read_text())
_CODE: Final = re.compile(r"`[^`]*`")
_ACRONYM: Final = re.compile(r"\b[A-Z][A-Z0-9]{1,9}\b")
_TAUGHT: Final = ("docs/tutorials/", "docs/guides/", "docs/explanation/")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a text should not have.

    Attributes:
        path: The file, relative to the project's root.
        line: Its line, from 1.
        rule: The rule that it breaks.
        message: What is wrong, and what to write.
    """

    path: str
    line: int
    rule: str
    message: str


def check(text: Text) -> Iterator[Finding]:
    """What the house rules find in a text."""
    yield from _banned(text)
    yield from _long_sentences(text)
    if text.kind in ("page", "generated"):
        yield from _length(text)
    if text.kind == "page":
        yield from _acronyms(text)
        if text.path.startswith(_TAUGHT):
            yield from _unlinked(text)


def check_total(texts: Iterable[Text]) -> Iterator[Finding]:
    """Whether the pages written by hand have more words together than the house allows."""
    total = sum(text.words for text in texts if text.kind == "page")
    if total > HOUSE["limits"]["total"]:
        yield Finding(
            "docs", 1, "total", f"The pages have {total:,} words by hand; {HOUSE['limits']['total']:,} are allowed."
        )


@cache
def _rules() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(rule["pattern"], re.IGNORECASE), rule["instead"]) for rule in HOUSE["banned"]]


@cache
def _terms() -> dict[str, re.Pattern[str]]:
    """Each term of the glossary whose first use needs a link, by its anchor."""
    return {anchor: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for anchor, pattern in HOUSE["terms"].items()}


@cache
def _known_acronyms() -> frozenset[str]:
    glossary = ROOT / "docs" / "glossary.md"
    defined = _ACRONYM.findall(glossary.read_text()) if glossary.exists() else []
    return frozenset([*HOUSE["acronyms"], *defined])


def _banned(text: Text) -> Iterator[Finding]:
    for block in text.blocks:
        said = _CODE.sub("`code`", block.text)
        for pattern, instead in _rules():
            for found in pattern.finditer(said):
                yield Finding(text.path, block.line, "banned", f"'{found[0].strip()}': {instead}")


def _long_sentences(text: Text) -> Iterator[Finding]:
    limit = HOUSE["limits"]["sentence"]
    for line, sentence in sentences_of(text):
        if (length := length_of(sentence)) > limit:
            yield Finding(text.path, line, "sentence", f"{length} words, at most {limit}: {sentence[:60]} ...")


def _length(text: Text) -> Iterator[Finding]:
    limit = HOUSE["limits"]["page"]
    if text.words >= limit and text.path not in HOUSE["limits"]["long_pages"]:
        yield Finding(text.path, 1, "page", f"{text.words:,} words; a page has fewer than {limit:,}.")


def _acronyms(text: Text) -> Iterator[Finding]:
    seen: set[str] = set()
    for block in text.blocks:
        for acronym in _ACRONYM.findall(_CODE.sub("", block.text)):
            if acronym not in seen and acronym not in _known_acronyms():
                seen.add(acronym)
                yield Finding(
                    text.path, block.line, "term", f"{acronym} is defined nowhere: define it in docs/glossary.md."
                )


def _unlinked(text: Text) -> Iterator[Finding]:
    for anchor, pattern in _terms().items():
        for block in text.blocks:
            said = _CODE.sub("", block.text)
            if block.where == "heading" or not (found := pattern.search(said)):
                continue
            if not any(f"glossary.md#{anchor}" in target for target, _ in block.links):
                yield Finding(
                    text.path, block.line, "glossary", f"'{found[0]}' needs a link to glossary.md#{anchor} here."
                )
            break
