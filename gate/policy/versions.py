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
from gate.policy.standardization import Comparison, compare, total

CHANCE: Final = 0.01
"""The chance, at most, that some version is said to do worse where all of them do equally well."""

LEAST_COMMON: Final = 0.5
"""The least share of a version's cases that lies in strata which other versions have as well, where it is judged."""

_NOTICEABLE: Final = 0.01
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
        raw_is_below: Whether the version does worse as they are.
        is_below: Whether it does worse among like cases.
    """

    raw: Comparison
    standardized: Comparison | None
    share: float
    raw_is_below: bool
    is_below: bool

    @property
    def disagrees(self) -> bool:
        """Whether the raw rates say another thing than those among like cases."""
        if self.standardized is None:
            return False
        raw, standardized = self.raw.difference.value, self.standardized.difference.value
        reversed_ = raw * standardized < 0 and min(abs(raw), abs(standardized)) >= _NOTICEABLE
        return reversed_ or self.raw_is_below != self.is_below


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
        return enough and of.is_testable and of.difference.value < 0 and of.p_value <= chance

    return Compared(
        raw,
        standardized,
        round(share, _DIGITS),
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
    """What comparisons say that is not plain from raw rates: where these mislead, and which versions are not judged."""
    told = {version: _sentence(version, of) for version, of in sorted(compared.items())}
    if len(told) == len(("one", "other")):
        # Of two versions, both would say the same.
        version = min(compared, key=lambda version: (_standing_of(compared[version]), version))
        return [told[version]] if told[version] else []
    return [sentence for sentence in told.values() if sentence]


def _standing_of(of: Compared) -> float:
    return (of.raw if of.standardized is None else of.standardized).difference.value


def _sentence(version: str, of: Compared) -> str:
    if of.standardized is None or of.share < LEAST_COMMON:
        return (
            f"Version {version} is not judged: {of.share:.0%} of its let-through cases have a like one among those of "
            f"the other versions."
        )
    if not of.disagrees:
        return ""
    return (
        f"Version {version} succeeded in {of.raw.rate:.1%} of its let-through cases and the other versions in "
        f"{of.raw.others:.1%}; among like cases it succeeded in {of.standardized.rate:.1%} and they in "
        f"{of.standardized.others:.1%}. The versions met different cases."
    )
