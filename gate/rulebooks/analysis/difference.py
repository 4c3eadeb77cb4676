"""The difference of two rulebooks: the regions of facts in which their results differ, the most dangerous first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.analysis.finding import Inconsistent, Severity
from gate.rulebooks.analysis.formulas.encoding import REFUSED, Encoded, Encoder, Result, result_of
from gate.rulebooks.analysis.formulas.solver import TRUE, NotDecided, Solver
from gate.rulebooks.analysis.regions import Region, Regions
from gate.rulebooks.evaluation import Evaluator, compile_rulebook

MAX_REGIONS: Final = 200
"""How many regions a difference lists."""

MAX_REGIONS_OF_A_CHANGE: Final = 20
"""How many of them have the same results before and after."""


@dataclass(frozen=True, slots=True)
class ChangedRegion:
    """Facts whose result changes from one result to one other.

    Attributes:
        before: The result of the rulebook compared against.
        after: The result of the rulebook.
        region: The facts, among those that are valid for each rulebook whose result is not that of refused facts.
        severity: `danger` where no or review becomes yes; `warning` where the decision or the action changes otherwise;
            `note` where nothing else than the verdict, the reason code or the rule does.
    """

    before: Result
    after: Result
    region: Region
    severity: Severity
    _evaluators: tuple[Evaluator, Evaluator]

    @property
    def condition(self) -> str:
        """The facts in words."""
        return self.region.condition

    @property
    def witness(self) -> JsonObject:
        """Facts in the region, which both evaluators were given."""
        return self.region.witness

    def holds(self, facts: JsonObject) -> bool:
        """Whether facts are in the region."""
        for evaluator, result in zip(self._evaluators, (self.before, self.after), strict=True):
            if result != REFUSED and evaluator.decide(facts).status != "ok":
                return False
        return self.region.holds(facts)

    def to_dict(self) -> dict[str, object]:
        """The region as a JSON object."""
        return {
            "from": self.before.to_dict(),
            "to": self.after.to_dict(),
            "severity": self.severity,
            "condition": self.condition,
            "witness": self.witness,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """How the results of two rulebooks differ.

    Attributes:
        equal: Whether they have the same result for all facts; None where that is not decided.
        regions: Where they differ.
        undecided: The undecided questions, as sentences; empty if the regions are complete.
    """

    equal: bool | None
    regions: tuple[ChangedRegion, ...]
    undecided: tuple[str, ...]

    @property
    def decided(self) -> bool:
        """Whether the regions are all there are."""
        return not self.undecided

    def to_dict(self) -> dict[str, object]:
        """The difference as a JSON object."""
        return {
            "decided": self.decided,
            "equal": self.equal,
            "regions": [region.to_dict() for region in self.regions],
            "undecided": list(self.undecided),
        }


_ORDER: Final[tuple[Severity, ...]] = ("danger", "warning", "note")


def severity_of(before: Result, after: Result) -> Severity:
    """How dangerous a change is."""
    if after.decision == "yes" and before.decision != "yes":
        return "danger"
    return "note" if (before.decision, before.action) == (after.decision, after.action) else "warning"


class Comparer:
    """Compares two encoded rulebooks."""

    def __init__(self, encoder: Encoder, before: Encoded, after: Encoded) -> None:
        """Takes rulebooks that were encoded over one space."""
        self._encoder: Final = encoder
        self._space: Final = encoder.space
        self._solver: Final[Solver] = encoder.space.solver
        self._before: Final = before
        self._after: Final = after
        self._evaluators: Final = (compile_rulebook(before.body), compile_rulebook(after.body))

    def differ(self) -> int:
        """The literal of facts whose results differ."""
        return self._encoder.any_of(
            self._encoder.all_of([literal, -self._after.results.get(result, -TRUE)])
            for result, literal in self._before.results.items()
        )

    def witness(self) -> JsonObject | None:
        """Facts whose results differ, confirmed by the evaluators; None where there are none.

        Raises:
            NotDecided: It cost too much.
        """
        if not self._solver.solve([self.differ()]):
            return None
        facts = self._space.facts()
        before, after = (result_of(evaluator.decide(facts)) for evaluator in self._evaluators)
        if before == after:
            raise Inconsistent(f"Both rulebooks have the result {before} for {facts}.")
        return facts

    def difference(self) -> Difference:
        """Every region in which the results differ, within the bounds."""
        regions: list[ChangedRegion] = []
        undecided: list[str] = []
        equal: bool | None = None
        differ = self.differ()
        try:
            equal = not self._solver.solve([differ])
            for before, after in self._changes(differ):
                self._list(before, after, regions, undecided)
                if len(regions) >= MAX_REGIONS:
                    undecided.append(f"Only the first {MAX_REGIONS} regions are listed.")
                    break
        except NotDecided as error:
            where = "Whether the rulebooks are equal" if equal is None else "Whether there are more regions"
            undecided.append(f"{where} is not decided: {error}.")
        regions.sort(key=lambda region: _ORDER.index(region.severity))
        return Difference(equal, tuple(regions), tuple(undecided))

    def _changes(self, differ: int) -> Iterator[tuple[Result, Result]]:
        """Pairs of results before and after that occur, the most dangerous first."""
        yes_before, yes_after = (self._decided(one, "yes") for one in (self._before, self._after))
        here = self._solver.variable()
        no_before = self._decided(self._before, "no")
        for among in (
            [no_before, yes_after],
            [-yes_before, yes_after],
            [yes_before, -yes_after],
            [],
        ):
            while self._solver.solve([here, differ, *among]):
                before, after = (
                    next(result for result, literal in one.results.items() if self._solver.holds(literal))
                    for one in (self._before, self._after)
                )
                yield before, after
                self._solver.add([-here, -self._before.results[before], -self._after.results[after]])

    def _decided(self, encoded: Encoded, decision: str) -> int:
        return self._encoder.any_of(
            literal for result, literal in encoded.results.items() if result.decision == decision
        )

    def _list(self, before: Result, after: Result, regions: list[ChangedRegion], undecided: list[str]) -> None:
        """Adds the regions of one pair of results."""
        sides = ((before, self._before), (after, self._after))
        given = [encoded.valid for result, encoded in sides if result != REFUSED]
        target = self._encoder.all_of([self._before.results[before], self._after.results[after]])
        for found, region in enumerate(Regions(self._encoder, given).of(target)):
            if found == MAX_REGIONS_OF_A_CHANGE or len(regions) == MAX_REGIONS:
                undecided.append(f"Only {found} regions are listed in which {_named(before)} becomes {_named(after)}.")
                return
            results = tuple(result_of(evaluator.decide(region.witness)) for evaluator in self._evaluators)
            if results != (before, after):
                raise Inconsistent(f"{before} becomes {after} for {region.witness}, but the evaluator says {results}.")
            regions.append(ChangedRegion(before, after, region, severity_of(before, after), self._evaluators))


def _named(result: Result) -> str:
    by = "no rule" if result.rule_id is None else result.rule_id
    return f"{result.decision} ({by})"
