"""How readable a text is: words, sentences, their length, and how many are passive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from docs.tools.prose.texts import Text

LONG: Final = 30
"""A sentence with more words than this is long."""

_CODE: Final = re.compile(r"`[^`]*`")
_END: Final = re.compile(r"(?<=[.!?])[)\"'*]*\s+(?=[\"'(*]*[A-Z`0-9])|(?<=:)\s*$")
_IRREGULAR: Final = (
    "begun|born|bound|bought|brought|built|caught|chosen|cut|done|drawn|driven|fed|felt|forgotten|found|frozen|given|gone|"
    "grown|heard|held|hidden|hit|kept|known|laid|led|left|lent|let|lost|made|meant|met|paid|proven|put|read|rung|run|said|"
    "seen|sent|set|shown|shut|spent|split|spoken|stolen|struck|sworn|taken|taught|thought|thrown|told|understood|woken|won|"
    "withdrawn|written"
)
_PASSIVE: Final = re.compile(
    rf"\b(?:is|are|was|were|be|been|being|gets?|got)\s+(?:(?:not|yet|never|also|only|then|always|\w+ly)\s+)*"
    rf"(?:\w+ed|{_IRREGULAR})\b",
    flags=re.IGNORECASE,
)
# Words that end like a participle and are none, or are as good as adjectives.
_NO_PARTICIPLE: Final = re.compile(
    r"\b(?:need|speed|feed|seed|exceed|indeed|hundred|supposed|based|limited)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted of some texts.

    Attributes:
        words: Pieces between white space with a letter or a digit, code and tables included.
        sentences: Sentences of paragraphs and lists.
        mean: Words of a sentence, at the mean; inline code is one word.
        long: The share of sentences with more than 30 words, 0 to 1.
        passive: The share of sentences with a verb in the passive voice, 0 to 1.
    """

    words: int
    sentences: int
    mean: float
    long: float
    passive: float


def count(texts: Iterable[Text]) -> Counts:
    """Counts over all the texts together."""
    words, spoken, long, passive, sentences = 0, 0, 0, 0, 0
    for text in texts:
        words += text.words
        for _, sentence in sentences_of(text):
            length = length_of(sentence)
            sentences += 1
            spoken += length
            long += length > LONG
            passive += is_passive(sentence)
    least = max(sentences, 1)
    return Counts(words, sentences, spoken / least, long / least, passive / least)


def sentences_of(text: Text) -> Iterator[tuple[int, str]]:
    """Each sentence of the paragraphs and lists of a text, with the line that its paragraph begins in."""
    for block in text.blocks:
        if block.where == "paragraph":
            for sentence in _END.split(block.text):
                if length_of(sentence) > 1:
                    yield block.line, sentence.strip()


def length_of(sentence: str) -> int:
    """How many words a sentence has; inline code is one."""
    return len(re.findall(r"[\w'.,@/%-]*\w[\w'.,@/%-]*", _CODE.sub(" code ", sentence)))


def is_passive(sentence: str) -> bool:
    """Whether a verb of the sentence is in the passive voice, as far as its form tells."""
    plain = _NO_PARTICIPLE.sub("", _CODE.sub("code", sentence))
    return _PASSIVE.search(plain) is not None
