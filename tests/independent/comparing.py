"""A second way to the comparison of versions: docs/reference/formulas/comparison.md in plain Python, with fractions.

It shares no code with the product. Facts that are not known are None.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Json = dict[str, Any]

Z = 1.959963984540054
MOST_FACTS = 6
MOST_KNOWN = 40
MOST_NAMED = 10
MOST_COMBINATIONS = 20_000
MOST_CUTS = 20
COMMONEST = (49, 9)
FEW_VALUES = 20
MOST_SENTENCES = 10
LEAST_P = 1e-40
MISSING = object()
NOT_TOLD_APART = "Versions are compared without adjustment: no examined fact separates their let-through decisions."
NOT_BY = (
    "Versions are compared by {}, not by {}: with more facts, too few let-through cases would have a like one of "
    "another version. The effect of the facts left out is not removed from the rates."
)
WEAKER = "Versions are not compared by {}: the chosen facts have more to do with the outcome."
IDS = "Versions are not compared by {}: cases of different versions hardly ever share an id or a date."
PARTING = (
    "By {} alone, fewer than half of the let-through cases have a like one of another version. If a fact does not "
    "matter for the outcome, leave it out of the map."
)
POOLED = "The rarer texts of {} count as alike."


class Case(NamedTuple):
    """A decision; compared are let-through actions with a terminal outcome."""

    version: str
    facts: Any
    succeeded: bool
    minute: str
    let_through: bool = True
    is_compared: bool = True


class Pair(NamedTuple):
    """A stratum: of n cases of the one side a succeeded, of m of the other c."""

    a: int
    n: int
    c: int
    m: int


def tests_in(condition: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """(fact, values that it is compared with) of each test of a condition."""
    if "field" in condition:
        value = condition.get("value")
        yield condition["field"], value if isinstance(value, list) else [value]
    for child in [
        *condition.get("all", ()),
        *condition.get("any", ()),
        *([condition["not"]] if "not" in condition else ()),
    ]:
        yield from tests_in(child)


def tested_facts(rulebooks: Iterable[Mapping[str, Any]]) -> dict[str, tuple[list[float], list[str]]]:
    """The facts that the most rulebooks test, with the numbers and the texts that they are compared with."""
    used: Counter[str] = Counter()
    values: dict[str, list[Any]] = {}
    for body in rulebooks:
        tests = [test for rule in body["rules"] for test in tests_in(rule["condition"])]
        used.update({fact for fact, _ in tests})
        for fact, of in tests:
            values.setdefault(fact, []).extend(of)
    chosen = sorted(used, key=lambda fact: (-used[fact], fact))[:MOST_KNOWN]
    return {
        fact: (
            sorted({float(of) for of in values[fact] if type(of) in (int, float)})[:MOST_CUTS],
            sorted({of for of in values[fact] if type(of) is str})[:MOST_CUTS],
        )
        for fact in sorted(chosen)
    }


def value_at(facts: Any, path: str) -> Any:
    """What is at the end of a path through objects."""
    for name in path.split("."):
        facts = facts.get(name, MISSING) if isinstance(facts, dict) else MISSING
    return facts


def bin_of(value: Any, cuts: Sequence[float], texts: Collection[str]) -> tuple[str, Any]:
    """What a value is alike with: a number between the same cuts or at the same one, a text of the same name."""
    if value is MISSING:
        return "absent", None
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int | float):
        return "number", (sum(value > cut for cut in cuts), value if value in cuts else None)
    if isinstance(value, str):
        return "text", value if value in texts else None
    return "other", None


class Fact(NamedTuple):
    """A fact of cases: the bin of each, where numbers are cut, and whether some of its texts share one bin."""

    bins: list[tuple[str, Any]]
    cuts: list[float]
    pooled: bool


def binned(cases: Sequence[Case], tested: Mapping[str, tuple[list[float], list[str]]], most: int) -> dict[str, Fact]:
    """Each fact that is not alike in all compared cases; `most` of the commonest texts have a bin, 0 where only what
    rulebooks tell apart has.
    """
    found = {}
    for name, (cuts, texts) in tested.items():
        values = [value_at(case.facts, name) for case in cases]
        seen = among_compared(cases, values)
        counted = Counter(of for of in seen if type(of) is str)
        if most:
            numbers = sorted(of for of in seen if type(of) in (int, float))
            fifths = [numbers[(len(numbers) - 1) * part // 5] for part in range(1, 5)] if numbers else []
            common = sorted(counted, key=lambda text: (-counted[text], text))[:most]
            cuts, texts = [*cuts, *map(float, fifths)], [*texts, *common]
        ordered = sorted(set(cuts))
        fact = Fact([bin_of(value, ordered, texts) for value in values], ordered, not set(counted) <= set(texts))
        if len(set(among_compared(cases, fact.bins))) > 1:
            found[name] = fact
    return found


def among_compared(cases: Sequence[Case], of_each: Sequence[Any]) -> list[Any]:
    """What belongs to the compared cases."""
    return [of for case, of in zip(cases, of_each, strict=True) if case.is_compared]


class Apart(NamedTuple):
    """The facts that tell cases apart, the others, and the stratum of each case."""

    facts: dict[str, Fact]
    strata: list[Any]
    left_out: Sequence[str] = ()
    weaker: Sequence[str] = ()
    ids: Sequence[str] = ()
    parting: Sequence[str] = ()


def apart(cases: Sequence[Case], facts: Mapping[str, Fact], chosen: Iterable[str]) -> Apart:
    """Cases told apart by some facts."""
    kept = {name: facts[name] for name in sorted(chosen)}
    return Apart(kept, list(zip(*(of.bins for of in kept.values()), strict=True)) if kept else [()] * len(cases))


def best(cases: Sequence[Case], facts: Mapping[str, Fact]) -> list[str]:
    """The facts by how well each tells successes from failures within versions, the best first; only ordered where
    there are more than are compared by.
    """
    return sorted(facts, key=lambda name: (-telling(cases, facts[name].bins), name))


def telling(cases: Sequence[Case], bins: Sequence[Any]) -> float:
    """Chi-squared of bin and success over the versions, less its degrees of freedom, in standard deviations."""
    compared = [(case, of) for case, of in zip(cases, bins, strict=True) if case.is_compared]
    squares, freedom = Fraction(0), 0
    for version in {case.version for case, _ in compared}:
        own = [(case.succeeded, of) for case, of in compared if case.version == version]
        rate = Fraction(sum(won for won, _ in own), len(own))
        if 0 < rate < 1:
            sizes, won = Counter(of for _, of in own), Counter(of for ok, of in own if ok)
            squares += sum(
                ((won[of] - rate * size) ** 2 / (size * rate * (1 - rate)) for of, size in sizes.items()), Fraction(0)
            )
            freedom += len(sizes) - 1
    return round(float(squares - freedom) / math.sqrt(2 * freedom), 6) if freedom else 0.0


def strata_of(cases: Sequence[Case], tested: Mapping[str, Any]) -> Apart:
    """Cases told apart by what rulebooks test."""
    finest = binned(cases, tested, COMMONEST[0])
    ordered = best(cases, finest)
    chosen, weaker = ordered[:MOST_FACTS], sorted(ordered[MOST_FACTS:])
    for most in COMMONEST:
        found = apart(cases, binned(cases, tested, most), chosen)
        if is_enough(cases, found.strata, Fraction(4, 5)):
            return found._replace(weaker=weaker)
    coarse = binned(cases, tested, 0)
    found = apart(cases, coarse, [name for name in chosen if name in coarse])
    return found._replace(left_out=sorted(set(chosen) - set(coarse)), weaker=weaker)


def strata_of_history(cases: Sequence[Case]) -> Apart:
    """Imported cases, of which the facts are flat: as many facts as leave enough of them alike."""
    names = sorted({name for case in cases for name in case.facts})[:MOST_KNOWN]
    nothing: dict[str, tuple[list[float], list[str]]] = {name: ([], []) for name in names}
    facts = binned(cases, nothing, COMMONEST[0])
    number = max(1, sum(case.is_compared for case in cases))
    share = {name: Fraction(alike(cases, of.bins), number) for name, of in facts.items()}
    parting = {name for name in facts if 2 * share[name] < 1}
    ids = [name for name in facts if name in parting and values_of(cases, name) > FEW_VALUES]
    score = {name: telling(cases, of.bins) for name, of in facts.items() if name not in ids}
    ordered = sorted(score, key=lambda name: (name not in parting, -score[name], name))
    chosen = [name for name in ordered[:MOST_FACTS] if name == ordered[0] or name in parting or score[name] > 0]
    kept = [*chosen]
    while True:
        least = min((share[name] for name in kept), default=Fraction(0)) * Fraction(4, 5)
        for most in COMMONEST:
            found = apart(cases, binned(cases, nothing, most), kept)
            if is_enough(cases, found.strata, least):
                return found._replace(
                    left_out=sorted(set(chosen) - set(kept)),
                    weaker=sorted(set(ordered) - set(chosen)),
                    ids=ids,
                    parting=sorted(parting.intersection(kept)),
                )
        del kept[-1]


def alike(cases: Sequence[Case], strata: Sequence[Any]) -> int:
    """How many compared cases lie in a stratum of several versions."""
    versions: dict[Any, set[str]] = {}
    compared = among_compared(cases, strata)
    for version, stratum in zip(among_compared(cases, [case.version for case in cases]), compared, strict=True):
        versions.setdefault(stratum, set()).add(version)
    return sum(len(versions[stratum]) > 1 for stratum in compared)


def is_enough(cases: Sequence[Case], strata: Sequence[Any], least: Fraction) -> bool:
    """Whether so many cases have a like one of another version, in not too many combinations."""
    combined = {(case.version, stratum) for case, stratum in zip(cases, strata, strict=True) if case.is_compared}
    compared = sum(case.is_compared for case in cases)
    return len(combined) <= MOST_COMBINATIONS and alike(cases, strata) >= least * compared


def values_of(cases: Sequence[Case], name: str) -> int:
    """How many numbers and texts a fact has."""
    return len(
        {case.facts[name] for case in cases if case.is_compared and type(case.facts.get(name)) in (int, float, str)}
    )


def effect_of(cases: Sequence[Case]) -> float:
    """The design effect of cases that were decided in the same minute."""
    observed, independent = Fraction(0), Fraction(0)
    groups: dict[str, dict[str, list[bool]]] = {}
    for case in cases:
        groups.setdefault(case.version, {}).setdefault(case.minute, []).append(case.succeeded)
    for of in groups.values():
        every = [succeeded for group in of.values() for succeeded in group]
        if len(of) > 1:
            rate = Fraction(sum(every), len(every))
            squares = sum(((sum(group) - rate * len(group)) ** 2 for group in of.values()), Fraction(0))
            observed += squares * len(of) / (len(of) - 1)
            independent += Fraction(sum(every) * (len(every) - sum(every)), len(every) - 1)
    return max(1.0, round(float(observed / independent), 6)) if independent else 1.0


def beside(pairs: Sequence[Pair], effect: float) -> Json | None:
    """One side of pairs beside the other; None where no pair has both."""
    common = [pair for pair in pairs if pair.n and pair.m]
    if not common:
        return None
    weights = [Fraction(pair.n * pair.m, pair.n + pair.m) for pair in common]
    whole = sum(weights)
    one = sum(weight * Fraction(pair.a, pair.n) for weight, pair in zip(weights, common, strict=True)) / whole
    other = sum(weight * Fraction(pair.c, pair.m) for weight, pair in zip(weights, common, strict=True)) / whole
    low, high = interval_of(common, float(one), float(other), effect)
    ends = {"value": float(one - other), "low": max(-1.0, low), "high": min(1.0, high)}
    return {
        "success_rate": round(float(one), 6),
        "others": round(float(other), 6),
        "difference": {name: round(value, 6) + 0.0 for name, value in ends.items()},
        "p_value": p_value_of(common, effect),
        "cases": sum(pair.n for pair in common),
        "other_cases": sum(pair.m for pair in common),
    }


def interval_of(common: Sequence[Pair], one: float, other: float, effect: float) -> tuple[float, float]:
    """The roots of (d - difference)^2 = z^2 effect (d P + Q) / W^2; Newcombe's where Q is 0."""
    whole = float(sum(Fraction(n * m, n + m) for _, n, _, m in common))
    p = sum(Fraction(2 * (n * n * c - m * m * a) + n * m * (m - n), 2 * (n + m) ** 2) for a, n, c, m in common)
    q = sum(Fraction(a * (m - c) + c * (n - a), 2 * (n + m)) for a, n, c, m in common)
    difference = one - other
    if q:
        b = 2 * difference + Z**2 * effect * float(p) / whole**2
        root = math.sqrt(max(0.0, b**2 - 4 * (difference**2 - Z**2 * effect * float(q) / whole**2)))
        return (b - root) / 2, (b + root) / 2
    own, others = (sum(of) / effect for of in ([pair.n for pair in common], [pair.m for pair in common]))
    (low, high), (other_low, other_high) = wilson(one, own), wilson(other, others)
    return (
        difference - math.sqrt((one - low) ** 2 + (other_high - other) ** 2),
        difference + math.sqrt((high - one) ** 2 + (other - other_low) ** 2),
    )


def wilson(rate: float, size: float) -> tuple[float, float]:
    """Wilson's interval of a rate."""
    middle, whole = rate + Z**2 / (2 * size), 1 + Z**2 / size
    reach = Z * math.sqrt(rate * (1 - rate) / size + Z**2 / (4 * size**2))
    return (middle - reach) / whole, (middle + reach) / whole


def p_value_of(common: Sequence[Pair], effect: float) -> float:
    """Cochran's, Mantel's and Haenszel's; or that of every way in which the successes could lie."""
    expected = sum(Fraction(n * (a + c), n + m) for a, n, c, m in common)
    fewest = sum(max(0, a + c - m) for a, n, c, m in common)
    most = sum(min(n, a + c) for a, n, c, m in common)
    observed = sum(pair.a for pair in common)
    if min(float(expected) - fewest, most - float(expected)) >= 5:
        spread = sum(Fraction(n * m * (a + c) * (n + m - a - c), (n + m) ** 2 * (n + m - 1)) for a, n, c, m in common)
        return told(math.erfc(math.sqrt(float((observed - expected) ** 2 / spread) / effect / 2)))
    ways = {0: 1}
    for a, n, c, m in common:
        numbers = range(max(0, a + c - m), min(n, a + c) + 1)
        together: Counter[int] = Counter()
        for before, way in ways.items():
            for number in numbers:
                together[before + number] += way * math.comb(n, number) * math.comb(m, a + c - number)
        ways = dict(together)
    exact = float(Fraction(sum(way for way in ways.values() if way <= ways[observed]), sum(ways.values())))
    if effect == 1:
        return told(exact)
    return told(math.erfc(deviate(max(exact, LEAST_P)) / math.sqrt(2 * effect)))


def deviate(p_value: float) -> float:
    """How many standard deviations a normal variable is off as rarely as this, by bisection."""
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > p_value else (low, middle)
    return low


def told(p_value: float) -> float:
    """A p-value as it is told: six digits, none less than LEAST_P."""
    return float(f"{min(1.0, max(p_value, LEAST_P)):.6g}")


class Comparison(NamedTuple):
    """What a report has of its versions: `comparison`, `compared` and the versions below the others."""

    comparison: Json
    compared: dict[str, Json]
    below: set[str]
    notes: Sequence[str] = ()


def compared_of(
    cases: Sequence[Case],
    rulebooks: Iterable[Mapping[str, Any]] | None,
    min_sample: int,
    one_of: int,
    *,
    is_judged: bool = False,
) -> Comparison:
    """The comparison of versions, over sampled cases; nothing where there are none to be judged. Imported cases have no
    rulebooks: None.
    """
    nothing = {"facts": [], "decisions": 0, "unknown": 0, "strata": 0, "sampled_one_of": 1, "design_effect": 1.0}
    if not is_judged:
        return Comparison({"of": "let_through", **nothing, "disagreements": 0, "sentences": []}, {}, set())
    tested = None if rulebooks is None else tested_facts(rulebooks)
    known = [case for case in cases if tested == {} or case.facts is not None]
    chosen = strata_of_history(known) if tested is None else strata_of(known, tested)
    facts, strata = list(chosen.facts), chosen.strata
    compared = [case for case in known if case.is_compared]
    of_compared = among_compared(known, strata)
    effect = effect_of(compared)
    counts: dict[str, dict[Any, list[bool]]] = {}
    for case, stratum in zip(compared, of_compared, strict=True):
        counts.setdefault(case.version, {}).setdefault(stratum, []).append(case.succeeded)
    every: dict[Any, Counter[bool]] = {}
    for case, stratum in zip(compared, of_compared, strict=True):
        every.setdefault(stratum, Counter())[case.succeeded] += 1
    found = judged_all(counts, every, opened(known, strata) if facts else set(), effect, min_sample)
    worst = worst_of(counts, every, effect, min_sample)
    footing = {
        "of": "let_through",
        "facts": facts,
        "decisions": len(compared),
        "unknown": sum(case.is_compared for case in cases) - len(compared),
        "strata": len(set(of_compared)),
        "sampled_one_of": one_of,
        "design_effect": effect,
        "disagreements": sum(of["disagrees"] for of in found.values()),
        "sentences": sentences_of(
            found, {version: worse_in(version, *of, chosen.facts) for version, of in worst.items()}
        ),
    }
    members = ["raw", "standardized", "admitted", "share", "raw_below_others", "like_below_others", "admits_worse"]
    members += ["disagrees"]
    shown = {version: {name: of[name] for name in members} for version, of in found.items()}
    below = {version for version, of in found.items() if of["below"]}
    return Comparison(footing, shown, below, list(footing_notes(chosen)))


def footing_notes(of: Apart) -> Iterator[str]:
    """What a report notes of the facts that it compares versions by."""
    if of.left_out:
        yield NOT_BY.format(in_a_row(list(of.facts)) if of.facts else "no fact", in_a_row(of.left_out))
    elif not of.facts:
        yield NOT_TOLD_APART
    pooled = [name for name, fact in of.facts.items() if fact.pooled]
    for note, names in ((WEAKER, of.weaker), (IDS, of.ids), (PARTING, of.parting), (POOLED, pooled)):
        if names:
            yield note.format(in_a_row(names))


def worst_of(
    counts: Mapping[str, Mapping[Any, Sequence[bool]]],
    every: Mapping[Any, Counter[bool]],
    effect: float,
    min_sample: int,
) -> dict[str, tuple[Any, Json]]:
    """Of each version the kind of cases in which it most certainly does worse, by a tenth or more."""
    if len(every) == 1:
        return {}
    pairs = {
        (version, stratum): Pair(
            sum(cases), len(cases), every[stratum][True] - sum(cases), every[stratum].total() - len(cases)
        )
        for version, of in counts.items()
        for stratum, cases in of.items()
    }
    tested = {where: of for where, of in pairs.items() if min(of.n, of.m) >= min_sample * effect}
    found: dict[str, list[tuple[float, float, Any, Json]]] = {}
    for (version, stratum), (a, n, c, m) in tested.items():
        pooled = (a + c) / (n + m)
        if a / n > c / m - 0.1 or (a / n - c / m) ** 2 < 4 * pooled * (1 - pooled) * (1 / n + 1 / m):
            continue
        of = beside([Pair(a, n, c, m)], effect)
        if of is not None and of["p_value"] <= 0.01 / len(tested):
            found.setdefault(version, []).append((of["p_value"], of["difference"]["value"], stratum, of))
    least = {version: min(of, key=lambda one: one[:2]) for version, of in found.items()}
    return {version: (stratum, of) for version, (_, _, stratum, of) in least.items()}


def worse_in(version: str, stratum: Sequence[Any], of: Json, facts: Mapping[str, Fact]) -> str:
    """The sentence about a kind of cases."""
    names = [f"{name} {in_words(at, fact.cuts)}" for (name, fact), at in zip(facts.items(), stratum, strict=True)]
    return (
        f"Version {version} does worse in one kind of case: with {in_a_row(names)}, it succeeded in "
        f"{of['success_rate']:.1%} of {of['cases']:,} cases and the others in {of['others']:.1%} of "
        f"{of['other_cases']:,}."
    )


def in_words(at: tuple[str, Any], cuts: Sequence[float]) -> str:
    """What lies in a bin."""
    kind, value = at
    if kind == "text":
        return "of a rarer text" if value is None else json.dumps(value, ensure_ascii=False)
    if kind == "number":
        above, exact = value
        ends = [*map(written, cuts)]
        if exact is not None:
            return written(exact)
        if not cuts:
            return "a number"
        if above in (0, len(cuts)):
            return f"above {ends[-1]}" if above else f"below {ends[0]}"
        return f"between {ends[above - 1]} and {ends[above]}"
    return {"absent": "missing", "other": "a list or object", "boolean": str(value).lower()}[kind]


def written(value: float) -> str:
    """A number as people read it."""
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,.6g}"


def in_a_row(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    shown = list(names)[:MOST_NAMED]
    if len(names) > MOST_NAMED:
        shown.append(f"{len(names) - MOST_NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def opened(cases: Sequence[Case], strata: Sequence[Any]) -> set[tuple[str, Any]]:
    """(version, stratum) where it let through at least four of five cases, and the others at most one of five, of at
    least five.
    """
    met: dict[Any, dict[str, list[bool]]] = {}
    for case, stratum in zip(cases, strata, strict=True):
        met.setdefault(stratum, {}).setdefault(case.version, []).append(case.let_through)
    found = set()
    for stratum, versions in met.items():
        number = sum(map(len, versions.values()))
        passed = sum(map(sum, versions.values()))
        for version, own in versions.items():
            others, through = number - len(own), passed - sum(own)
            if others >= 5 and 5 * sum(own) >= 4 * len(own) and 5 * (others - through) >= 4 * others:
                found.add((version, stratum))
    return found


def judged_all(
    counts: Mapping[str, Mapping[Any, Sequence[bool]]],
    every: Mapping[Any, Counter[bool]],
    alone: Collection[tuple[str, Any]],
    effect: float,
    min_sample: int,
) -> dict[str, Json]:
    """Each version beside the others."""
    whole = sum(of.total() for of in every.values())
    won = sum(of[True] for of in every.values())
    needed = min_sample * effect
    found: dict[str, Json] = {}
    for version, of in counts.items():
        own, size = sum(map(sum, of.values())), sum(map(len, of.values()))
        raw = beside([Pair(own, size, won - own, whole - size)], effect)
        if raw is None:
            continue
        like = beside(
            [
                Pair(sum(cases), len(cases), every[stratum][True] - sum(cases), every[stratum].total() - len(cases))
                for stratum, cases in of.items()
            ],
            effect,
        )
        opening = [case for stratum, cases in of.items() if (version, stratum) in alone for case in cases]
        share = like["cases"] / raw["cases"] if like else 0.0
        found[version] = {
            "raw": raw,
            "standardized": like,
            "admitted": beside([Pair(sum(opening), len(opening), won - own, whole - size)], effect),
            "share": round(share, 6),
            "enough": min(raw["cases"], raw["other_cases"]) >= needed,
        }
    tests = sum(1 + (of["admitted"] is not None) for of in found.values() if of["enough"])
    for of in found.values():
        judge(of, needed, 0.01 / max(tests, 1))
    return found


def judge(of: Json, needed: float, chance: float) -> None:
    """Adds to a version's numbers what follows from them."""
    alone, is_like = of["admitted"], of["share"] >= 0.5
    of["raw_below_others"] = is_worse(of["raw"], needed, chance)
    of["like_below_others"] = is_like and is_worse(of["standardized"], needed, chance)
    of["admits_worse"] = bool(
        of["enough"] and is_worse(alone, 1, chance) and alone and alone["difference"]["value"] <= -0.1
    )
    of["below"] = of["like_below_others"] or of["admits_worse"]
    differs = differ(of["raw"], of["standardized"], of["raw_below_others"], of["below"])
    of["disagrees"] = of["enough"] and is_like and differs


def is_worse(of: Json | None, needed: float, chance: float) -> bool:
    """Whether a version does worse, and no chance did it."""
    if of is None or min(of["cases"], of["other_cases"]) < needed:
        return False
    return bool(of["difference"]["value"] < 0 and of["p_value"] <= chance)


def differ(raw: Json, like: Json | None, raw_below: bool, is_below: bool) -> bool:
    """Whether raw rates say another thing than those among like cases."""
    if like is None:
        return False
    one, other = raw["difference"], like["difference"]
    clear = any(of["low"] > 0 or of["high"] < 0 for of in (one, other))
    return raw_below != is_below or (one["value"] * other["value"] < 0 and clear)


def sentences_of(found: Mapping[str, Json], worst: Mapping[str, str]) -> list[str]:
    """What is said of versions."""
    misled = sorted(version for version, of in found.items() if of["disagrees"] and not of["admits_worse"])
    if len(misled) == len(found) == 2:
        misled = sorted(misled, key=lambda version: found[version]["standardized"]["difference"]["value"])[:1]
    said = [
        (
            f"Version {version} let through {of['admitted']['cases']:,} cases of a kind that the other versions mostly "
            f"stop: {round(of['admitted']['success_rate'] * of['admitted']['cases']):,} of them succeeded "
            f"({of['admitted']['success_rate']:.1%}). Of the cases that the others let through, "
            f"{of['admitted']['others']:.1%} succeeded."
        )
        for version, of in sorted(found.items())
        if of["admits_worse"]
    ]
    for version in misled:
        raw, like = found[version]["raw"], found[version]["standardized"]
        end = "it does not do worse; the versions let through different cases"
        if found[version]["below"]:
            end = f"it does worse, which the raw rates {'leave open' if raw['difference']['value'] < 0 else 'hide'}"
        elif like["difference"]["value"] < 0:
            end = "the difference among like cases may be chance"
        said.append(
            f"Version {version} succeeded in {raw['success_rate']:.1%} of its let-through cases and the other "
            f"versions in {raw['others']:.1%}; among like cases, it succeeded in {like['success_rate']:.1%} and "
            f"they in {like['others']:.1%}: {end}."
        )
    said += [
        f"Version {version} is not judged: {of['share']:.0%} of its let-through cases have a like one among those of "
        f"the other versions."
        for version, of in sorted(found.items())
        if of["enough"] and of["share"] < 0.5 and not of["admits_worse"]
    ]
    said += [worst[version] for version in sorted(worst) if not found[version]["below"]]
    more = len(said) - MOST_SENTENCES
    return said[:MOST_SENTENCES] + ([f"The same is true of {more:,} more of the versions."] if more > 0 else [])
