"""Compares the versions of a policy: unadjusted, among like cases, and by the cases that only one of them lets through.

    compared = compare_versions(Cells({"1": {"a": Share(8, 10), "b": Share(1, 5)}, "2": {...}}), 1.0, min_sample=20)
    compared["2"].is_below            # whether version 2 does worse

Only let-through actions are compared, by their terminal outcomes: how the others would have ended is unknown. Versions
meet different cases, so a better one may have the lower rate (Simpson's paradox). A version is therefore judged by its
difference from all others among cases with like facts. If a version lets through cases that the others stop, it has no
like cases there. Those cases are judged apart, against the success rate of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gate.policy.anomalies.statistics import Share, standard_distance
from gate.policy.standardization import Comparison, Interval, compare, total

CHANCE: Final = 0.01
"""The greatest probability that some version is called worse if all of them do equally well."""

LEAST_COMMON: Final = 0.5
"""The least share of a version's cases in strata shared with other versions, for the version to be judged."""

MOSTLY: Final = 0.8
"""A version mostly lets through the cases of a stratum if it lets through at least this share of those it met. The
others mostly stop them if they stop at least this share.
"""

LEAST_MET: Final = 5
"""The number of cases of a stratum that the others must have met for them to mostly stop it."""

LEAST_LOSS: Final = 0.1
"""The least deficit in the rate of the cases that a version alone lets through. Marginal cases always do a little
worse, wherever the line is drawn.
"""

FAR: Final = 2.0
"""The distance of two rates in standard errors from which a kind of case is tested."""

MOST_SENTENCES: Final = 10
"""The most versions that sentences describe."""

_DIGITS: Final = 6

Cells = Mapping[str, Mapping[str, Share]]
"""By version and stratum, a part and its whole."""


class Kind(NamedTuple):
    """A kind of case in which a version does worse than the others.

    Attributes:
        stratum: The stratum, or what its cases share.
        comparison: The version compared with the others in it.
    """

    stratum: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Compared:
    """A version compared with all others together.

    Attributes:
        raw: The unadjusted comparison.
        standardized: The comparison among like cases; None if no other version met a like one.
        admitted: The cases that it mostly lets through and the others mostly stop, compared with all that the others
            let through; None without such cases.
        share: The share of the version's cases that have a like one among the others', six decimals.
        is_enough: Whether the version, and the others together, have enough cases.
        raw_is_below: Whether the version does worse in the unadjusted comparison.
        like_is_below: Whether it does worse among like cases.
        admits_worse: Whether the cases that it alone lets through do worse.
        worst: The kind of case in which it most certainly does worse, by a tenth or more; None if there is none.
    """

    raw: Comparison
    standardized: Comparison | None
    admitted: Comparison | None
    share: float
    is_enough: bool
    raw_is_below: bool
    like_is_below: bool
    admits_worse: bool
    worst: Kind | None = None

    def described(self, describe: Callable[[str], str]) -> Compared:
        """The same, with its worst kind of case described."""
        if self.worst is None:
            return self
        return replace(self, worst=self.worst._replace(stratum=describe(self.worst.stratum)))

    @property
    def is_below(self) -> bool:
        """Whether the version does worse than the others, for either reason."""
        return self.like_is_below or self.admits_worse

    @property
    def is_like(self) -> bool:
        """Whether enough of its cases have a like one among the others' to judge it."""
        return self.standardized is not None and self.share >= LEAST_COMMON

    @property
    def disagrees(self) -> bool:
        """Whether raw rates and those among like cases disagree.

        They disagree on whether the version does worse. Or their differences point in different directions, and one of
        them is clear of 0.
        """
        if self.standardized is None or not (self.is_like and self.is_enough):
            return False
        raw, like = self.raw.difference, self.standardized.difference
        is_reversed = raw.value * like.value < 0 and (_is_clear(raw) or _is_clear(like))
        return is_reversed or self.raw_is_below != self.is_below


def _is_clear(difference: Interval) -> bool:
    return difference.low > 0 or difference.high < 0


def compare_versions(
    cells: Cells, design_effect: float, *, min_sample: int, met: Cells | None = None
) -> dict[str, Compared]:
    """Compares each version with all others together. Versions without a case, or without another version, are left
    out.

    Args:
        cells: The let-through cases that succeeded, of those with a terminal outcome.
        design_effect: The factor by which their rates vary more than those of independent cases.
        min_sample: The number of cases that a version needs, and that the others need together.
        met: The let-through cases, of all that were decided. None if the stopped ones are unknown.
    """
    strata, decided = _totals(cells.values()), _totals((met or {}).values())
    whole = total(strata.values())
    own = {version: total(of.values()) for version, of in cells.items()}
    found = {}
    for version, of in cells.items():
        others = _less(whole, own[version])
        raw = compare({"": (own[version], others)}, design_effect)
        if raw is not None:
            like = compare({name: (share, _less(strata[name], share)) for name, share in of.items()}, design_effect)
            alone = total(of[name] for name in _admitted(of, (met or {}).get(version, {}), decided))
            found[version] = (raw, like, compare({"": (alone, others)}, design_effect))
    required = min_sample * design_effect
    # What a version alone lets through may be little: so exact a test needs no more.
    tests = sum((1 if alone is None else 2) for raw, _, alone in found.values() if _is_enough(raw, required))
    worst = _worst(cells, strata, design_effect, required)
    return {
        version: replace(_compared(*of, required, CHANCE / max(tests, 1)), worst=worst.get(version))
        for version, of in found.items()
    }


def _worst(cells: Cells, strata: Mapping[str, Share], design_effect: float, required: float) -> dict[str, Kind]:
    """Of each version the kind of cases in which it most certainly does worse than the others; none of one kind."""
    if len(strata) == 1:
        return {}
    tested = [
        (version, name, share, _less(strata[name], share))
        for version, of in sorted(cells.items())
        for name, share in sorted(of.items())
        if min(share.whole, strata[name].whole - share.whole) >= required
    ]
    found: dict[str, Kind] = {}
    for version, name, share, others in tested:
        if share.rate > others.rate - LEAST_LOSS or standard_distance(share, others) < FAR:
            continue
        of = compare({"": (share, others)}, design_effect)
        if of is not None and of.p_value <= CHANCE / len(tested):
            kind = found.get(version)
            if kind is None or _order(of) < _order(kind.comparison):
                found[version] = Kind(name, of)
    return found


def _order(of: Comparison) -> tuple[float, float]:
    return of.p_value, of.difference.value


def _admitted(of: Mapping[str, Share], met: Mapping[str, Share], decided: Mapping[str, Share]) -> list[str]:
    """The strata whose cases a version mostly lets through, and the others, which met some too, mostly stop."""
    found = []
    for name in of:
        own = met.get(name, Share(0, 0))
        others = _less(decided.get(name, Share(0, 0)), own)
        stopped = Share(others.whole - others.part, others.whole)
        if others.whole >= LEAST_MET and min(own.rate, stopped.rate) >= MOSTLY:
            found.append(name)
    return found


def _is_enough(of: Comparison | None, required: float) -> bool:
    return of is not None and min(of.cases, of.other_cases) >= required


def _compared(
    raw: Comparison, standardized: Comparison | None, admitted: Comparison | None, required: float, chance: float
) -> Compared:
    share = 0.0 if standardized is None else standardized.cases / raw.cases
    is_enough = _is_enough(raw, required)

    def is_below(of: Comparison | None, least: float = required) -> bool:
        return of is not None and _is_enough(of, least) and of.difference.value < 0 and of.p_value <= chance

    return Compared(
        raw=raw,
        standardized=standardized,
        admitted=admitted,
        share=round(share, _DIGITS),
        is_enough=is_enough,
        raw_is_below=is_below(raw),
        like_is_below=share >= LEAST_COMMON and is_below(standardized),
        admits_worse=is_enough
        and admitted is not None
        and is_below(admitted, least=1)
        and admitted.difference.value <= -LEAST_LOSS,
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
    """Sentences about what raw rates do not show.

    They describe what versions alone let through, misleading rates, versions with enough cases that are not judged, and
    versions that do worse in one kind of case.
    """
    of_each = sorted(compared.items())
    misled = {version: of for version, of in of_each if of.disagrees and not of.admits_worse}
    if len(misled) == len(compared) == len(("one", "other")):
        # Both sentences would say the same; the one about the worse version is kept.
        worse = min(misled, key=lambda version: (_difference(misled[version]), version))
        misled = {worse: misled[worse]}
    unlike = {version: of for version, of in of_each if of.is_enough and not of.is_like and not of.admits_worse}
    said = [_admits(version, of.admitted) for version, of in of_each if of.admitted is not None and of.admits_worse]
    said += [_misled(*item) for item in misled.items()] + [_unlike(*item) for item in unlike.items()]
    said += [_worse_in(version, of.worst) for version, of in of_each if of.worst is not None and not of.is_below]
    more = len(said) - MOST_SENTENCES
    return [*said[:MOST_SENTENCES], *([f"The same is true of {more:,} more of the versions."] if more > 0 else [])]


def _difference(of: Compared) -> float:
    return (of.standardized or of.raw).difference.value


def _admits(version: str, of: Comparison) -> str:
    return (
        f"Version {version} let through {of.cases:,} cases of a kind that the other versions mostly stop: "
        f"{round(of.rate * of.cases):,} of them succeeded ({of.rate:.1%}). Of the cases that the others let "
        f"through, {of.others:.1%} succeeded."
    )


def _misled(version: str, of: Compared) -> str:
    like = of.standardized or of.raw
    rates = (
        f"Version {version} succeeded in {of.raw.rate:.1%} of its let-through cases and the other versions in "
        f"{of.raw.others:.1%}; among like cases, it succeeded in {like.rate:.1%} and they in {like.others:.1%}"
    )
    if of.is_below:
        hidden = "hide" if of.raw.difference.value >= 0 else "leave open"
        return f"{rates}: it does worse, which the raw rates {hidden}."
    if like.difference.value < 0:
        return f"{rates}: the difference among like cases may be chance."
    return f"{rates}: it does not do worse; the versions let through different cases."


def _worse_in(version: str, kind: Kind) -> str:
    of = kind.comparison
    return (
        f"Version {version} does worse in one kind of case: with {kind.stratum}, it succeeded in {of.rate:.1%} of "
        f"{of.cases:,} cases and the others in {of.others:.1%} of {of.other_cases:,}."
    )


def _unlike(version: str, of: Compared) -> str:
    return (
        f"Version {version} is not judged: {of.share:.0%} of its let-through cases have a like one among those of the "
        f"other versions."
    )
