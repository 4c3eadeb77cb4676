"""What somebody can learn of a scope who does everything to learn it: all the other scopes of its cohort are his. He
chooses their decisions and outcomes, opts them in and out, and asks from each of them each month with every parameter.

The guarantee: he learns in which interval of 0.05 a rate lies, and nothing beyond. Two tests say so. Histories of the
victim that are told alike give him the same bytes, whatever he does. And whoever tries out every history that the
victim could have had is left with an interval that is no narrower.

Both are held against services that leak, as one might have built them, and find every one of them out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product, zip_longest
from operator import eq
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl
import pytest

import gate.policy.peers as judging
from gate.ids import timestamp
from gate.policy.peers import (
    METRICS,
    Coded,
    Cohort,
    MonthCounts,
    Own,
    beginning,
    benchmark_report,
    code,
    decided_in,
    earlier,
    folded,
    interval,
)
from gate.policy.questions import BenchmarksQuestion
from tests.support.torture import size
from tests.workbench.benchmarking import POLICY, chain_of
from workbench import benchmarks
from workbench.lake import cohorts as freezing
from workbench.lake.cohorts import freeze, latest, write
from workbench.lake.reader import Snapshot

VICTIM: Final = "victim"
FREEZES: Final = ("2026-03", "2026-04", "2026-05")
WIDTH: Final = Fraction(1, 20)
# Of the possible rates that are told alike, which are fractions of whole numbers, none need lie at an interval's very
# end: tests/gate/policy/test_peers.py counts them.
GRAIN: Final = Fraction(4, 1000)

Months = Mapping[str, MonthCounts]

THRESHOLDS: Final = list(product((5, 6, 9, 10, 11, 20, 1000), (50, 500, 777, 1000, 2000, 5000, 1_000_000)))
QUESTIONS: Final = [
    BenchmarksQuestion(POLICY, min_cohort_scopes=scopes, min_cohort_decisions=decisions)
    for scopes, decisions in THRESHOLDS
]
# The answer does not depend on who asks, so all but one of the attacker's scopes ask each threshold once.
EACH: Final = [
    question
    for question in QUESTIONS
    if question.min_cohort_scopes == THRESHOLDS[0][0] or question.min_cohort_decisions == THRESHOLDS[0][1]
]
CHOSEN: Final[Sequence[dict[str, Any]]] = ({}, {"policy_version": "1"}, {"policy_version": "x"}, {"limit": 7})


@dataclass(frozen=True)
class Attack:
    """What the attacker does.

    Attributes:
        scopes: By scope, what comes of its decisions of each month.
        members: By month of a freeze, which of them are opted in.
        victim_is_in: By month, whether the victim is: that is not the attacker's to choose, but he may know it.
    """

    scopes: Mapping[str, Months]
    members: Mapping[str, frozenset[str]]
    victim_is_in: Mapping[str, bool]


def attack(chance: random.Random, near: Months) -> Attack:
    """An attack by chance: rates at both ends, in the middle, and near the victim's."""

    def counts(month: str) -> MonthCounts:
        decisions = chance.choice([45, 50, 99, 100, 199, 400])
        terminal = round(decisions * chance.choice([0.9, 0.95, 1]))
        of = near[month]
        rate = chance.choice([0, 0, 1, 1, 0.5, 0.925, 0.875, of.succeeded / max(of.terminal, 1)])
        approved = chance.choice([0, 1, 0.5, of.approved / max(of.decisions, 1)])
        return MonthCounts(decisions, round(decisions * approved), terminal, round(terminal * rate))

    names = [f"attacker {number}" for number in range(chance.choice([6, 7, 9, 10, 21]))]
    scopes = {name: {decided_in(month): counts(decided_in(month)) for month in FREEZES} for name in names}
    members = {
        month: frozenset(names if chance.random() < 0.4 else chance.sample(names, max(6, len(names) - 2)))
        for month in FREEZES
    }
    return Attack(scopes, members, {month: chance.random() < 0.9 for month in FREEZES})


@cache
def drawn(seed: int) -> tuple[dict[str, MonthCounts], dict[str, MonthCounts], Attack]:
    """Two such histories, and an attack. They do not depend on the service: `code` here is the true one."""
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    one, other = histories(chance)
    return one, other, attack(chance, one)


def histories(chance: random.Random) -> tuple[dict[str, MonthCounts], dict[str, MonthCounts]]:
    """Two histories of the victim of which the same is told in every month, and that differ as much as they can."""
    first: dict[str, MonthCounts] = {}
    second: dict[str, MonthCounts] = {}
    for month in map(decided_in, FREEZES):
        first[month] = some(chance)
        second[month] = alike(chance, first[month])
    return first, second


def some(chance: random.Random) -> MonthCounts:
    decisions = chance.choice([chance.randrange(1, 60), chance.randrange(45, 400)])
    terminal = round(decisions * chance.choice([chance.random(), 0.95, 1]))
    return MonthCounts(decisions, chance.randint(0, decisions), terminal, chance.randint(0, terminal))


def alike(chance: random.Random, counts: MonthCounts) -> MonthCounts:
    """Other counts of which the same is told; the farthest of some tries."""
    wanted, found, farthest = code(counts), counts, 0.0
    for _ in range(3000):
        # Below 20 outcomes nothing is told at all, and everything is alike.
        other = some(chance) if wanted is None else shifted(chance, counts)
        if (far := distance(other, counts)) > farthest and code(other) == wanted:
            found, farthest = other, far
    return found


def shifted(chance: random.Random, counts: MonthCounts) -> MonthCounts:
    decisions = max(1, round(counts.decisions * chance.uniform(0.5, 2)))
    terminal = min(decisions, round(decisions * (counts.terminal / counts.decisions + chance.uniform(-0.05, 0.05))))
    approved = round(decisions * (counts.approved / counts.decisions + chance.uniform(-0.05, 0.05)))
    succeeded = round(terminal * (counts.succeeded / counts.terminal + chance.uniform(-0.05, 0.05)))
    return MonthCounts(
        decisions, min(max(approved, 0), decisions), max(terminal, 0), min(max(succeeded, 0), max(terminal, 0))
    )


def distance(one: MonthCounts, other: MonthCounts) -> float:
    return float(sum(abs((getattr(one, of) or 0) - (getattr(other, of) or 0)) for of in METRICS))


def own_of(counts: MonthCounts) -> Own:
    return Own(counts, counts, None, None, 1, "0" * 64, truncated=False)


def seen(plan: Attack, victim: Months, lake: Path) -> Iterator[bytes]:
    """Everything that the attacker is answered: from the real freeze, each month, each scope, each threshold."""
    chains = {name: chain_of(name, months, lake) for name, months in plan.scopes.items()}
    chains[VICTIM] = chain_of(VICTIM, victim, lake)
    for month in FREEZES:
        members = plan.members[month] | ({VICTIM} if plan.victim_is_in[month] else set())
        write(lake, month, freeze([chains[name] for name in sorted(members)], month))
        frozen = latest(lake)
        assert frozen is not None
        for name in plan.scopes:
            cohort = Cohort(month, frozen.has_member(name), frozen.others(name, POLICY))
            own = own_of(plan.scopes[name][decided_in(month)])
            for question in QUESTIONS if name == "attacker 0" else size(EACH, QUESTIONS):
                yield orjson.dumps(benchmark_report(own, cohort, question, month=month))
            # The engine gives the same, and no parameter of it changes what is told of others.
            several = CHOSEN if month == FREEZES[-1] else size(CHOSEN[:1], CHOSEN)
            for chosen in several if name == "attacker 0" else ():
                yield orjson.dumps(benchmarks(chains[name], POLICY, **chosen).to_dict())


def differ(seed: int, lake: Path, leak: Callable[[], None] = lambda: None) -> bool:
    """Whether an attack by chance tells two histories apart that are told alike; `leak` makes the service another."""
    one, other, plan = drawn(seed)
    leak()
    answers = zip_longest(seen(plan, one, lake / "one"), seen(plan, other, lake / "other"))
    return any(first != second for first, second in answers)


def lakes(directory: Path) -> Path:
    for name in ("one", "other"):
        (directory / name).mkdir(parents=True)
    return directory


class TestPairs:
    """Two histories of which the same is told."""

    @pytest.mark.heavy
    @pytest.mark.parametrize("seed", range(size(3, 8)))
    def test_histories_that_are_told_alike_give_the_same_bytes_whatever_is_done(
        self, seed: int, tmp_path: Path
    ) -> None:
        assert not differ(seed, lakes(tmp_path))

    def test_the_pairs_differ_and_are_compared_with(self, tmp_path: Path) -> None:
        """What the test above rests on: rates far apart, and answers that tell something."""
        pairs = [
            pair for one, other, _ in map(drawn, range(8)) for pair in zip(one.values(), other.values(), strict=True)
        ]
        told = [pair for pair in pairs if code(pair[0]) is not None]
        assert len(told) >= 8
        farthest = {metric: max(abs(getattr(a, metric) - getattr(b, metric)) for a, b in told) for metric in METRICS}
        assert all(far > 0.04 for far in farthest.values()), farthest
        one, _, plan = drawn(0)
        answers = [orjson.loads(answer) for answer in seen(plan, one, lakes(tmp_path) / "one")]
        assert {answer["cross_customer"]["reason"] for answer in answers} >= {None, "too_few_scopes"}


def frozen_of(counts: MonthCounts) -> Coded | None:
    """What is frozen of a scope, also where a leak freezes something else."""
    found: Coded | None = vars(freezing)["code"](counts)
    return found


Others = tuple[Own, list[Coded]]
"""The attacker's scopes in a cohort: the one that asks, and what is frozen of all."""


def frozen_others(attacks: Sequence[Sequence[MonthCounts]]) -> list[Others]:
    """What a freeze holds of the attacker's scopes, by whatever `code` the service has."""
    return [(own_of(others[0]), [coded for coded in map(frozen_of, others) if coded is not None]) for others in attacks]


def answers(attacks: Sequence[Others], victim: Coded | None) -> Iterator[bytes]:
    """What is told of the others in some cohorts, each the attacker's scopes and what is frozen of the victim."""
    for own, others in attacks:
        cohort = Cohort("2026-03", member=True, others=[*others, *([] if victim is None else [victim])])
        body = benchmark_report(own, cohort, BenchmarksQuestion(POLICY), month="2026-03")
        yield orjson.dumps(body["cross_customer"])


LOW: Final = MonthCounts(decisions=2000, approved=0, terminal=60, succeeded=0)
HIGH: Final = MonthCounts(decisions=100, approved=100, terminal=100, succeeded=100)

# Cohorts in which the victim's three rates are the medians, quartiles or outer percentiles at once.
ON_RATES: Final = [[LOW] * low + [HIGH] * high for low, high in ((2, 2), (1, 3), (3, 1), (10, 10), (2, 20), (20, 2))]
# And such as its number of decisions decides which step all of them together reach.
ON_NUMBERS: Final = [
    [MonthCounts(number, 0, number, 0) for number in numbers]
    for numbers in ((200, 100, 100, 50), (200, 100, 50, 50), (100, 100, 50, 50))
]
# And such as a rate of his own moves in small steps beside it.
SWEPT: Final = [[LOW, LOW, MonthCounts(1000, 500, 1000, 700 + 6 * number), HIGH, HIGH] for number in range(17)]
# More than anyone has, for a month has one cohort.
ATTACKS: Final = [*ON_RATES, *ON_NUMBERS, *SWEPT]


def left_open(
    victim: MonthCounts, attacks: Sequence[Sequence[MonthCounts]] = ATTACKS, numbers: range = range(20, 200)
) -> dict[str, tuple[Fraction, Fraction]]:
    """Between what each rate of the victim lies, for somebody who tries out what he would be answered in every case.

    Args:
        victim: What came of the victim's decisions.
        attacks: The cohorts that he makes, each of his scopes and the victim.
        numbers: How many decisions the victim may have made.
    """
    others = frozen_others(attacks)
    told = list(answers(others, frozen_of(victim)))
    known: dict[Coded | None, bool] = {}

    def fits(counts: MonthCounts) -> bool:
        # What is answered depends on a history by what is frozen of it, and need not be made anew for each.
        coded = frozen_of(counts)
        if coded not in known:
            # The first other answer rules it out.
            known[coded] = all(map(eq, answers(others, coded), told))
        return known[coded]

    shares: dict[str, set[Fraction]] = {metric: set() for metric in METRICS}
    for decisions in numbers:
        for terminal in range(20, decisions + 1):
            # Each rate beside the victim's others: what is told of one does not depend on another.
            base = victim_like(victim, decisions, terminal)
            if not fits(base):
                continue
            shares["terminal_coverage"].add(Fraction(terminal, decisions))
            for succeeded in near(victim.succeeded, victim.terminal, terminal):
                if fits(base._replace(succeeded=succeeded)):
                    shares["success_rate"].add(Fraction(succeeded, terminal))
            for approved in near(victim.approved, victim.decisions, decisions):
                if fits(base._replace(approved=approved)):
                    shares["approval_rate"].add(Fraction(approved, decisions))
    return {metric: (min(of), max(of)) for metric, of in shares.items()}


def victim_like(victim: MonthCounts, decisions: int, terminal: int) -> MonthCounts:
    """A history with other numbers, whose rates are as near to the victim's as they can be."""
    return MonthCounts(
        decisions,
        round(decisions * victim.approved / victim.decisions),
        terminal,
        round(terminal * victim.succeeded / victim.terminal),
    )


def near(part: int, whole: int, of: int) -> range:
    """The parts of another whole whose share is not far from that of one."""
    middle = part * of // whole
    return range(max(0, middle - of // 9 - 1), min(of, middle + of // 9 + 1) + 1)


VICTIMS: Final = (
    MonthCounts(decisions=100, approved=61, terminal=90, succeeded=67),
    MonthCounts(decisions=49, approved=20, terminal=45, succeeded=44),
    MonthCounts(decisions=120, approved=118, terminal=33, succeeded=4),
)


class TestReconstruction:
    """Whoever tries out everything."""

    @pytest.mark.heavy
    @pytest.mark.parametrize("victim", VICTIMS)
    def test_it_leaves_an_interval_no_narrower_than_the_rounding(self, victim: MonthCounts) -> None:
        coded = code(victim)
        assert coded is not None
        for metric, (low, high) in left_open(victim).items():
            share = Fraction(*share_of(victim, metric))
            assert low <= share <= high
            assert high - low > WIDTH - GRAIN, metric
            # And what is told is the interval, of which these are the fractions.
            bounds = interval(getattr(coded, metric))
            assert bounds[0] <= low <= high <= bounds[1]
            assert bounds[1] - bounds[0] >= WIDTH

    @pytest.mark.heavy
    def test_the_attack_finds_what_is_told_of_the_victim(self) -> None:
        """It is no weak one: of the three rates and the number of decisions it finds what is frozen, which is all there
        is to be found.
        """
        everything = [
            Coded(decisions, *rates)
            for decisions in (20, 50, 100, 200)
            for rates in product([number / 20 for number in range(1, 20, size(9, 4))], repeat=3)
        ]
        others = frozen_others(ATTACKS)
        assert len({tuple(answers(others, coded)) for coded in everything}) == len(everything)


def share_of(counts: MonthCounts, metric: str) -> tuple[int, int]:
    return {
        "success_rate": (counts.succeeded, counts.terminal),
        "approval_rate": (counts.approved, counts.decisions),
        "terminal_coverage": (counts.terminal, counts.decisions),
    }[metric]


def exact_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freezes rates as they are."""

    def exact(counts: MonthCounts) -> Coded | None:
        if counts.terminal < 20:
            return None
        rates = (float(Fraction(*share_of(counts, metric))) for metric in METRICS)
        return Coded(folded(counts.decisions), *rates)

    monkeypatch.setattr(freezing, "code", exact)


def rounded_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freezes rates as they are, interpolates between them as is usual, and rounds the answer to 0.05."""
    exact_rates(monkeypatch)

    def interpolated(values: Any, percent: int) -> float:
        ordered = sorted(values)
        at = (len(ordered) - 1) * percent / 100
        low, part = int(at), at - int(at)
        value = ordered[low] + part * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])
        return round(20 * float(value)) / 20

    monkeypatch.setattr(judging, "percentile", interpolated)


def exact_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds rates, and tells numbers of scopes and decisions as they are."""

    def counted(counts: MonthCounts) -> Coded | None:
        if counts.terminal < 45:
            return None
        return Coded(counts.decisions, *(judging.told(*share_of(counts, metric)) for metric in METRICS))

    monkeypatch.setattr(freezing, "code", counted)
    monkeypatch.setattr(judging, "folded", lambda number: number)


def finer_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds everything, but counts whoever has 20 outcomes: of some numbers only 20 remain possible."""
    monkeypatch.setattr(judging, "POSSIBLE_OUTCOMES", 0)


LEAKS: Final[Sequence[Callable[[pytest.MonkeyPatch], None]]] = (exact_rates, rounded_answers, exact_numbers)


class TestLeaks:
    """The same procedures find services out that leak."""

    @pytest.mark.parametrize("leak", LEAKS)
    def test_pairs_tell_a_service_that_leaks(
        self, leak: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def is_found(seed: int) -> bool:
            with monkeypatch.context() as leaking:
                return differ(seed, lakes(tmp_path / str(seed)), partial(leak, leaking))

        # The first that is found out is enough.
        assert any(map(is_found, range(3)))

    @pytest.mark.heavy
    @pytest.mark.parametrize("leak", [exact_rates, rounded_answers])
    def test_reconstruction_does_too(
        self, leak: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        leak(monkeypatch)
        low, high = left_open(VICTIMS[0], [ON_RATES[0], *SWEPT[::2]], range(size(99, 97), 101))["success_rate"]
        assert high - low < WIDTH / 2

    def test_a_rate_told_of_exactly_twenty_outcomes_is_no_longer_hidden_by_rounding(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        victim = MonthCounts(decisions=49, approved=20, terminal=20, succeeded=17)
        assert code(victim) is None
        finer_thresholds(monkeypatch)
        assert left_open(victim, numbers=range(20, 60))["success_rate"] == (Fraction(17, 20), Fraction(17, 20))


def test_who_did_not_opt_in_sees_nothing_whatever_the_others_do(tmp_path: Path) -> None:
    month, period = "2026-03", "2026-01"
    outsider = chain_of("outsider", {period: MonthCounts(100, 50, 90, 45)}, tmp_path)
    found = set()
    for rate in (0.0, 0.5, 1.0):
        others: list[Snapshot] = [
            chain_of(f"s{number}", {period: MonthCounts(100, 50, 90, round(90 * rate))}, tmp_path)
            for number in range(7)
        ]
        write(tmp_path, month, freeze(others, month))
        for scopes, decisions in ((5, 50), (10, 50), (5, 1_000_000)):
            body = benchmarks(outsider, POLICY, min_cohort_scopes=scopes, min_cohort_decisions=decisions).to_dict()
            found.add(orjson.dumps(body["cross_customer"]))
    assert len(found) == 1
    assert orjson.loads(found.pop())["reason"] == "not_opted_in"


def test_the_file_holds_what_is_told_and_nothing_else(tmp_path: Path) -> None:
    period = {"2026-01": MonthCounts(137, 61, 131, 97)}
    rows = freeze([chain_of("s1", period, tmp_path), chain_of("s2", {}, tmp_path)], "2026-03")
    assert rows.rows() == [
        ("s1", None, None, None, None, None),
        ("s1", POLICY, 100, 0.75, 0.45, 0.95),
        ("s2", None, None, None, None, None),
    ]
    assert rows.schema["decisions"] == pl.Int64


def test_a_decision_counts_in_one_month_only_so_that_watching_refines_nothing(tmp_path: Path) -> None:
    counts = MonthCounts(100, 50, 90, 70)
    chain = chain_of("s1", {"2026-01": counts}, tmp_path)
    frozen = {
        month: freeze([chain], month).height for month in (earlier("2026-03", -number) for number in range(-2, 3))
    }
    assert frozen == {"2026-01": 1, "2026-02": 1, "2026-03": 2, "2026-04": 1, "2026-05": 1}
    assert timestamp(beginning("2026-03")).startswith("2026-03-01")
