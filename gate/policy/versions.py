"""Versions of a policy beside each other: as they are, and among like cases.

    compared = compare_versions({"1": {"a": Share(8, 10), "b": Share(1, 5)}, "2": {...}}, 1.0, min_sample=20)
    compared["2"].is_below            # whether version 2 does worse among like cases

Only actions that were let through are compared, by their terminal outcomes: of the others it is not known what would
have come of them. Versions meet different cases, so that a better one may well have the lower rate (Simpson's paradox);
what a version is judged by is therefore its difference from all others among cases with like facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gate.policy.anomalies.statistics import Share
from gate.policy.standardization import Comparison, Interval, compare, total

CHANCE: Final = 0.01
"""The chance, at most, that some version is said to do worse where all of them do equally well."""

LEAST_COMMON: Final = 0.5
"""The least share of a version's cases that lies in strata which other versions have as well, where it is judged."""

MOST_SENTENCES: Final = 10
"""How many versions sentences speak of, at most."""

_DIGITS: Final = 6

Cells = Mapping[str, Mapping[str, Share]]
"""By version and stratum, how many cases succeeded, of how many."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A version beside all others together.

    Attributes:
        raw: As they are.
        standardized: Among like cases; None where no other version met a like one.
        share: The share of the version's cases that have a like one among the others', six decimals.
        is_enough: Whether the version has enough cases to be judged, and the others together.
        raw_is_below: Whether the version does worse as they are.
        is_below: Whether it does worse among like cases.
    """

    raw: Comparison
    standardized: Comparison | None
    share: float
    is_enough: bool
    raw_is_below: bool
    is_below: bool

    @property
    def is_like(self) -> bool:
        """Whether enough of its cases have a like one among the others' to speak of it."""
        return self.standardized is not None and self.share >= LEAST_COMMON

    @property
    def disagrees(self) -> bool:
        """Whether raw rates and those among like cases say different things: that the version does worse, or, where one
        of the two differences is clear of 0, in which direction it lies.
        """
        if self.standardized is None or not (self.is_like and self.is_enough):
            return False
        raw, like = self.raw.difference, self.standardized.difference
        is_reversed = raw.value * like.value < 0 and (_is_clear(raw) or _is_clear(like))
        return is_reversed or self.raw_is_below != self.is_below


def _is_clear(difference: Interval) -> bool:
    return difference.low > 0 or difference.high < 0


def compare_versions(cells: Cells, design_effect: float, *, min_sample: int) -> dict[str, Compared]:
    """Each version beside all others together; those without a case, or without another version's, are left out.

    Args:
        cells: The let-through cases with a terminal outcome.
        design_effect: How many times as much their rates vary as those of independent cases.
        min_sample: How many cases a version needs to be judged, and the others together.
    """
    strata = _totals(cells.values())
    whole = total(strata.values())
    own = {version: total(of.values()) for version, of in cells.items()}
    judged = sum(min(of.whole, whole.whole - of.whole) >= min_sample * design_effect for of in own.values())
    found = {}
    for version, of in cells.items():
        raw = compare({"": (own[version], _less(whole, own[version]))}, design_effect)
        if raw is not None:
            like = compare({name: (share, _less(strata[name], share)) for name, share in of.items()}, design_effect)
            found[version] = _compared(raw, like, min_sample * design_effect, CHANCE / max(judged, 1))
    return found


def _compared(raw: Comparison, standardized: Comparison | None, required: float, chance: float) -> Compared:
    share = 0.0 if standardized is None else standardized.cases / raw.cases

    def is_below(of: Comparison) -> bool:
        enough = min(of.cases, of.other_cases) >= required
        return enough and of.difference.value < 0 and of.p_value <= chance

    return Compared(
        raw,
        standardized,
        round(share, _DIGITS),
        min(raw.cases, raw.other_cases) >= required,
        is_below(raw),
        standardized is not None and share >= LEAST_COMMON and is_below(standardized),
    )


def _totals(versions: Iterable[Mapping[str, Share]]) -> dict[str, Share]:
    """The cases of all versions by stratum."""
    totals: dict[str, Share] = {}
    for of in versions:
        for stratum, share in of.items():
            before = totals.get(stratum, Share(0, 0))
            totals[stratum] = Share(before.part + share.part, before.whole + share.whole)
    return totals


def _less(whole: Share, part: Share) -> Share:
    return Share(whole.part - part.part, whole.whole - part.whole)


def sentences(compared: Mapping[str, Compared]) -> list[str]:
    """What raw rates do not show: where they mislead, and which versions with enough cases are not judged."""
    misled = {version: of for version, of in sorted(compared.items()) if of.disagrees}
    if len(misled) == len(compared) == len(("one", "other")):
        # Both sentences would say the same; the one about the worse version is kept.
        worse = min(misled, key=lambda version: (_difference(misled[version]), version))
        misled = {worse: misled[worse]}
    unlike = {version: of for version, of in sorted(compared.items()) if of.is_enough and not of.is_like}
    said = [_misled(*item) for item in misled.items()] + [_unlike(*item) for item in unlike.items()]
    more = len(said) - MOST_SENTENCES
    return [*said[:MOST_SENTENCES], *([f"The same holds for {more:,} more of the versions."] if more > 0 else [])]


def _difference(of: Compared) -> float:
    return (of.standardized or of.raw).difference.value


def _misled(version: str, of: Compared) -> str:
    like = of.standardized or of.raw
    rates = (
        f"Version {version} succeeded in {of.raw.rate:.1%} of its let-through cases and the other versions in "
        f"{of.raw.others:.1%}; among like cases it succeeded in {like.rate:.1%} and they in {like.others:.1%}"
    )
    if of.is_below:
        return f"{rates}: it does worse, which the raw rates hide."
    if like.difference.value < 0:
        return f"{rates}: that it does worse is not certain."
    return f"{rates}: it does not do worse, the versions met different cases."


def _unlike(version: str, of: Compared) -> str:
    return (
        f"Version {version} is not judged: {of.share:.0%} of its let-through cases have a like one among those of the "
        f"other versions."
    )
