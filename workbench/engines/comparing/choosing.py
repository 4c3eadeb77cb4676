"""Chooses the facts that separate cases: those that best tell successes from failures, as long as enough cases stay
alike.

A fact that has nothing to do with the outcome distorts no comparison. A fact that has much to do with it distorts the
most (Brookhart and others, "Variable selection for propensity score models", American Journal of Epidemiology 163,
2006). The measure is taken within each version, so that differences between versions do not choose the facts.

If fine strata leave too few cases with a like one in another version, only the cuts and texts of rulebooks separate
cases. No rulebook decided imported cases. For these, facts that tell no more than chance are dropped, and then others
one by one, the least telling first. A fact that separates the versions is kept, such as a channel that only one of them
had: without it, unlike cases would count as alike. If such a fact has many values, it is an id or a date, and is
dropped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl

from gate.policy.anomalies.statistics import Share
from gate.policy.versions import LEAST_COMMON, Cells
from workbench.engines.comparing.bins import TEXTS, Bins, Tested, bins_of

MAX_FACTS: Final = 6
"""The most facts that separate cases."""

ENOUGH: Final = 0.8
"""The least share of cases with a like one of another version, where strata are as fine as they can be; of imported
cases, of those that have one in each fact alone.
"""

FEW_VALUES: Final = 20
"""An imported fact of more values that parts the versions is taken for an id or a date."""

MAX_CELLS: Final = 20_000
"""How many combinations of version and stratum are compared, at most, where strata are as fine as they can be."""

SUCCEEDED: Final = "succeeded"
_DIGITS: Final = 6


class Apart(NamedTuple):
    """Cases, told apart by some facts and not by others.

    Attributes:
        facts: The facts, sorted.
        cells: How many compared cases succeeded, of how many.
        binned: All cases, with the bins of the facts.
        bins: Where these lie.
        left_out: Facts by which too few cases would be alike, sorted.
        weaker: Facts that tell less than those chosen, sorted.
        ids: Facts of many values that part the versions, sorted.
        parting: Chosen facts that part them, sorted.
    """

    facts: tuple[str, ...]
    cells: Cells
    binned: pl.DataFrame
    bins: Mapping[str, Bins]
    left_out: tuple[str, ...] = ()
    weaker: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    parting: tuple[str, ...] = ()


def as_tested(rows: pl.DataFrame, tested: Mapping[str, Tested]) -> Apart:
    """By fine bins of each fact, or, where these leave too few like cases, as rulebooks test the facts.

    Args:
        rows: All cases: {policy_version, succeeded, is_compared, ...}, with the columns of the facts.
        tested: The facts, and what rulebooks compare them with.
    """
    levels = _Levels(rows, tested)
    telling = levels.telling(TEXTS[0])
    chosen, weaker = _best(levels, telling)
    for texts in TEXTS:
        found = levels.apart(chosen, texts)
        if _is_enough(found.cells, ENOUGH):
            return found._replace(weaker=weaker)
    coarse = [field for field in levels.telling(None) if field in chosen]
    left_out = tuple(field for field in chosen if field not in coarse)
    return levels.apart(coarse, None)._replace(left_out=left_out, weaker=weaker)


def one_by_one(rows: pl.DataFrame, known: Iterable[str]) -> Apart:
    """By fine bins of as many facts of imported cases as leave enough like cases; arguments as `as_tested`."""
    levels = _Levels(rows, {field: Tested((), ()) for field in known})
    telling = levels.telling(TEXTS[0])
    common = {field: _common(levels.apart([field], TEXTS[0]).cells) for field in telling}
    parting = {field for field in telling if common[field] < LEAST_COMMON}
    ids = tuple(field for field in telling if field in parting and levels.values(field) > FEW_VALUES)
    ranked = sorted(
        (field for field in telling if field not in ids), key=lambda of: (of not in parting, *levels.rank(of))
    )
    # A fact that tells no more than chance only makes strata smaller; one that parts versions cannot tell within them.
    chosen = [of for at, of in enumerate(ranked[:MAX_FACTS]) if at == 0 or of in parting or levels.rank(of)[0] < 0]
    kept = list(chosen)
    while True:
        # Those that part versions leave few alike by themselves: the others are not left out for that.
        least = ENOUGH * min((common[field] for field in kept), default=0.0)
        found = [levels.apart(sorted(kept), texts) for texts in levels.different(TEXTS)]
        enough = next((of for of in found if _is_enough(of.cells, least)), None)
        if enough is not None:
            return enough._replace(
                left_out=tuple(sorted(set(chosen).difference(kept))),
                weaker=tuple(sorted(set(ranked).difference(chosen))),
                ids=ids,
                parting=tuple(sorted(parting.intersection(kept))),
            )
        kept.pop()


class _Levels:
    """The bins of facts, finer and coarser."""

    def __init__(self, rows: pl.DataFrame, tested: Mapping[str, Tested]) -> None:
        self._rows = rows
        self._compared = rows.filter("is_compared")
        self._tested = tested
        self._bins: dict[int | None, dict[str, Bins]] = {}
        self._binned: dict[int | None, pl.DataFrame] = {}

    def telling(self, texts: int | None) -> list[str]:
        """The facts that are not alike in all compared cases, sorted."""
        compared = self.binned(texts).filter("is_compared")
        return [field for field in sorted(self._tested) if compared[bin_of(field)].n_unique() > 1]

    def values(self, field: str) -> int:
        """How many values a fact has."""
        return self.bins(TEXTS[0])[field].values

    def different(self, levels: Sequence[int]) -> list[int]:
        """Levels, without those whose bins are those of the one before."""
        return [of for at, of in enumerate(levels) if not at or self.bins(of) != self.bins(levels[at - 1])]

    def rank(self, field: str) -> tuple[float, str]:
        """The facts by how well they tell successes from failures within versions, the best first."""
        return -_telling(self.apart([field], TEXTS[0]).cells), field

    def apart(self, facts: Sequence[str], texts: int | None) -> Apart:
        """The cases, told apart by some facts."""
        binned = self.binned(texts)
        cells = shares(binned.filter("is_compared"), facts, SUCCEEDED)
        return Apart(tuple(facts), cells, binned, self.bins(texts))

    def bins(self, texts: int | None) -> dict[str, Bins]:
        """Where the bins lie."""
        if texts not in self._bins:
            self._bins[texts] = bins_of(self._compared, self._tested, texts)
        return self._bins[texts]

    def binned(self, texts: int | None) -> pl.DataFrame:
        """All cases, with the bins of each fact."""
        if texts not in self._binned:
            of_each = (of.number.alias(bin_of(field)) for field, of in self.bins(texts).items())
            self._binned[texts] = self._rows.with_columns(of_each)
        return self._binned[texts]


def _best(levels: _Levels, telling: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The facts that tell most, sorted, and the others."""
    if len(telling) <= MAX_FACTS:
        return list(telling), ()
    ranked = sorted(telling, key=levels.rank)
    return sorted(ranked[:MAX_FACTS]), tuple(sorted(ranked[MAX_FACTS:]))


def _telling(cells: Cells) -> float:
    """How far chi-squared of bins and success, added over the versions, lies above what chance lets expect, in its
    standard deviations; six decimals.
    """
    squares, freedom = [], 0
    for _, bins in sorted(cells.items()):
        part, whole = (sum(of) for of in zip(*bins.values(), strict=True))
        if 0 < part < whole:
            squares += [
                (of.part * whole - of.whole * part) ** 2 / (of.whole * part * (whole - part))
                for _, of in sorted(bins.items())
            ]
            freedom += len(bins) - 1
    return round((math.fsum(squares) - freedom) / math.sqrt(2 * freedom), _DIGITS) if freedom else 0.0


def bin_of(field: str) -> str:
    """The column with a fact's bins; no field's name has a colon, so that it is never a column of the cases."""
    return f"{field}:bin"


def shares(rows: pl.DataFrame, facts: Sequence[str], part: str) -> Cells:
    """By version and stratum, in how many rows a column is true, of how many."""
    stratum = pl.concat_str([pl.col(bin_of(field)) for field in facts], separator=",") if facts else pl.lit("")
    counted = rows.group_by("policy_version", stratum.alias("stratum")).agg(
        pl.col(part).sum().cast(pl.Int64), pl.len().cast(pl.Int64)
    )
    cells: dict[str, dict[str, Share]] = {}
    for version, name, *share in counted.iter_rows():
        cells.setdefault(version, {})[name] = Share(*share)
    return cells


def _is_enough(cells: Cells, least: float) -> bool:
    """Whether enough cases have a like one of another version, and not too many are to be compared."""
    return sum(map(len, cells.values())) <= MAX_CELLS and _common(cells) >= least


def _common(cells: Cells) -> float:
    """The share of cases with a like one of another version; 1 without any."""
    versions = Counter(stratum for of in cells.values() for stratum in of)
    sizes = [(share.whole, versions[stratum] > 1) for of in cells.values() for stratum, share in of.items()]
    whole = sum(of for of, _ in sizes)
    return sum(of for of, is_common in sizes if is_common) / whole if whole else 1.0
