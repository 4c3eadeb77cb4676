"""The bins in which the values of a fact are alike.

Numbers are cut at the values that a rulebook compares them with, and at their fifths. Fifths remove nine tenths of the
distortion that one such fact causes (Cochran, "The effectiveness of adjustment by subclassification in removing bias in
observational studies", Biometrics 24, 1968). Each of the most frequent texts has a bin, and so does each text that a
rulebook tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

import polars as pl

from workbench.engines.slicing import lower_quantiles
from workbench.engines.wording import amount
from workbench.facts import ABSENT, WITHHELD, number_of, string_of, type_of

TEXTS: Final = (49, 9)
"""How many of the commonest texts have a bin each; fewer, where so many leave too few like cases."""

_FIFTHS: Final = 5
_MISSING, _OTHER, _NUMBERS, _TEXTS = 2, 3, 1000, 10_000_000


class Tested(NamedTuple):
    """The values that rulebooks compare a fact with.

    Attributes:
        numbers: Numbers, sorted.
        texts: Texts, sorted.
    """

    numbers: tuple[float, ...]
    texts: tuple[str, ...]


class Bins(NamedTuple):
    """Where the bins of a fact lie.

    Attributes:
        field: The fact.
        cuts: Where numbers are cut, in order.
        texts: The texts that have a bin each, sorted.
        values: How many numbers and texts it has.
        pooled: How many texts have no bin of their own.
    """

    field: str
    cuts: tuple[float, ...]
    texts: tuple[str, ...]
    values: int
    pooled: int

    @property
    def number(self) -> pl.Expr:
        """The number of a value's bin."""
        kind, number, text = type_of(self.field), number_of(self.field), string_of(self.field)
        # A number at a cut lies with neither side: `lte 10` and `lt 10` part it differently.
        above = pl.sum_horizontal(
            pl.lit(0, pl.Int32), *((number > cut).cast(pl.Int32) + (number >= cut).cast(pl.Int32) for cut in self.cuts)
        )
        named = {name: at for at, name in enumerate(self.texts, 1)}
        of_text = text.replace_strict(named, default=0, return_dtype=pl.Int32) if named else pl.lit(0, pl.Int32)
        return (
            pl.when(kind == "number")
            .then(_NUMBERS + above)
            .when(kind == "string")
            .then(_TEXTS + of_text)
            .when(kind == "boolean")
            .then(number.cast(pl.Int32))
            .when(kind.is_in([ABSENT, WITHHELD]))
            .then(pl.lit(_MISSING, pl.Int32))
            .otherwise(pl.lit(_OTHER, pl.Int32))
        )

    def holds(self, number: int) -> str:
        """The content of a bin, in words: `amount above 100`."""
        return f"{self.field} {self._named(number)}"

    def _named(self, number: int) -> str:
        if number >= _TEXTS:
            at = number - _TEXTS
            return json.dumps(self.texts[at - 1], ensure_ascii=False) if at else "of a rarer text"
        if number >= _NUMBERS:
            at, is_cut = divmod(number - _NUMBERS, 2)
            if is_cut:
                return amount(self.cuts[at])
            if at == 0:
                return f"below {amount(self.cuts[0])}" if self.cuts else "a number"
            if at == len(self.cuts):
                return f"above {amount(self.cuts[-1])}"
            return f"between {amount(self.cuts[at - 1])} and {amount(self.cuts[at])}"
        return ("false", "true", "missing", "a list or object")[number]


def bins_of(compared: pl.DataFrame, tested: Mapping[str, Tested], texts: int | None) -> dict[str, Bins]:
    """The bins of each fact. The values of the compared cases determine where they lie.

    Args:
        compared: The cases, with the columns of the facts.
        tested: The values that rulebooks compare each fact with.
        texts: The number of most frequent texts that have a bin each. With None, there are only the bins that rulebooks
            distinguish.
    """
    return {field: _bins(compared, field, of, texts) for field, of in tested.items()}


def _bins(compared: pl.DataFrame, field: str, tested: Tested, texts: int | None) -> Bins:
    kind = type_of(field)
    numbers = compared.filter(kind == "number").select(number_of(field)).to_series()
    strings = compared.filter(kind == "string").select(string_of(field)).to_series()
    counted = strings.alias("text").value_counts(name="values").sort("values", "text", descending=[True, False])["text"]
    cuts, named = set(tested.numbers), set(tested.texts)
    if texts is not None:
        cuts.update(lower_quantiles(numbers, _FIFTHS) if numbers.len() else ())
        named.update(counted.head(texts))
    pooled = counted.len() - len(named.intersection(counted))
    return Bins(field, tuple(sorted(cuts)), tuple(sorted(named)), numbers.n_unique() + counted.len(), pooled)
