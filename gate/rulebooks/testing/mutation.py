"""The mutation score: how many mutants of a rulebook its cases notice.

    report = mutation_score(rulebook, file.cases, judge)
    report.score.percent                                 # "93.4 %": killed, of those killed and survived
    [(survivor.mutant.description, survivor.facts) for survivor in report.survived]

A case kills a mutant where it holds on the rulebook and does not hold on the mutant. Only the mutants that no case
kills go to the judge, who proves that a mutant decides alike, or gives facts that tell the two apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.conditions import walk
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.evaluation import Evaluator, Outcome, compile_rulebook
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.answers import Answer, Found, Never
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.mutants import Mutant, mutants_of
from gate.rulebooks.testing.runs import holds
from gate.rulebooks.testing.shares import Share

MAX_MUTANTS: Final = 5_000
"""How many mutants are tried at most."""

MAX_RUNS: Final = 2_000_000
"""How often a case is run on a mutant at most, all together: about a minute."""

# Conditions of a mutant, and items in them, that are compiled at most, all mutants together.
_MAX_COMPILED: Final = 50_000_000


class Judge(Protocol):
    """Decides over all facts whether two rulebooks decide alike; where that costs too much, it answers `Undecided`."""

    def difference(self, original: RulebookBody, mutant: RulebookBody) -> Answer:
        """Facts for which the outcomes of two valid rulebooks differ."""


@dataclass(frozen=True, slots=True)
class Killed:
    """A mutant that a case notices.

    Attributes:
        mutant: The mutant.
        case: The name of the first case that does not hold on it.
    """

    mutant: Mutant
    case: str


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no case notices, though it decides otherwise.

    Attributes:
        mutant: The mutant.
        facts: Facts for which its outcome differs. A case with them kills it.
        original: The outcome of the rulebook for these facts, which the evaluator gave.
        mutated: The outcome of the mutant.
    """

    mutant: Mutant
    facts: JsonObject
    original: Outcome
    mutated: Outcome


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A mutant that no case notices, and of which it is not decided whether it decides alike.

    Attributes:
        mutant: The mutant.
        reason: Why it is not decided, as a clause without a full stop.
    """

    mutant: Mutant
    reason: str


@dataclass(frozen=True, slots=True)
class MutationReport:
    """How well cases tell a rulebook from its mutants.

    Attributes:
        killed: The mutants that a case notices.
        survived: The mutants that none notices, though they decide otherwise.
        equivalent: The mutants that decide alike for all facts, which no case could notice.
        undecided: The mutants of which that is not decided. They do not count in the score.
        failing: The names of the cases that do not hold on the rulebook itself, and so kill nothing.
        cut: Whether there are more mutants than the bounds allow to try.
    """

    killed: tuple[Killed, ...]
    survived: tuple[Survivor, ...]
    equivalent: tuple[Mutant, ...]
    undecided: tuple[Unjudged, ...]
    failing: tuple[str, ...]
    cut: bool

    @property
    def score(self) -> Share:
        """The mutants killed, of those killed and survived."""
        return Share(len(self.killed), len(self.killed) + len(self.survived))


def mutation_score(rulebook: Rulebook, cases: Iterable[Case], judge: Judge) -> MutationReport:
    """Runs cases on the mutants of a rulebook, and has those judged that no case kills.

    Args:
        rulebook: The rulebook.
        cases: Its cases.
        judge: Decides over all facts whether two rulebooks decide alike.
    """
    trials = _Trials(rulebook, cases)
    killed: list[Killed] = []
    survived: list[Survivor] = []
    equivalent: list[Mutant] = []
    undecided: list[Unjudged] = []
    cut = False
    for number, mutant in enumerate(islice(mutants_of(rulebook.body), MAX_MUTANTS + 1)):
        if number == trials.most_mutants or trials.runs > MAX_RUNS:
            cut = True
            break
        evaluator = compile_rulebook(mutant.body)
        if (killer := trials.killer(mutant, evaluator)) is not None:
            killed.append(Killed(mutant, killer))
            continue
        judged = _judged(mutant, evaluator, rulebook, judge)
        if isinstance(judged, Survivor):
            survived.append(judged)
        elif isinstance(judged, Unjudged):
            undecided.append(judged)
        else:
            equivalent.append(judged)
    return MutationReport(
        tuple(killed), tuple(survived), tuple(equivalent), tuple(undecided), tuple(trials.failing), cut
    )


def _judged(mutant: Mutant, evaluator: Evaluator, rulebook: Rulebook, judge: Judge) -> Survivor | Unjudged | Mutant:
    answer = judge.difference(rulebook.body, mutant.body)
    if isinstance(answer, Never):
        return mutant
    if not isinstance(answer, Found):
        return Unjudged(mutant, answer.reason)
    original, mutated = rulebook.evaluator.decide(answer.facts), evaluator.decide(answer.facts)
    if original == mutated:
        return Unjudged(mutant, "the evaluator does not confirm the facts that should tell them apart")
    return Survivor(mutant, answer.facts, original, mutated)


class _Trials:
    """The cases that hold on a rulebook, by the rules that they try.

    Attributes:
        failing: The names of the cases that do not hold.
        runs: How often a case was run on a mutant.
        most_mutants: How many mutants are tried at most.
    """

    def __init__(self, rulebook: Rulebook, cases: Iterable[Case]) -> None:
        self.failing: Final[list[str]] = []
        self.runs = 0
        self.most_mutants: Final = min(MAX_MUTANTS, max(_MAX_COMPILED // _size(rulebook.body), 1))
        rules = sorted(rulebook.body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
        self._order: Final = {rule["rule_id"]: at for at, rule in enumerate(rules)}
        self._all: Final[list[Case]] = []
        decided_by: dict[int, list[Case]] = defaultdict(list)
        for case in cases:
            if not holds(rulebook.evaluator, case):
                self.failing.append(case.name)
                continue
            self._all.append(case)
            outcome = rulebook.evaluator.decide(case.facts)
            if outcome.status == "ok":
                by = outcome.matched_rule_id
                decided_by[len(rules) if by is None else self._order[by]].append(case)
        self._decided_by: Final[Mapping[int, Sequence[Case]]] = decided_by

    def killer(self, mutant: Mutant, evaluator: Evaluator) -> str | None:
        """The name of a case that does not hold on a mutant; None where all of them do."""
        for case in self._reaching(mutant):
            self.runs += 1
            if not holds(evaluator, case):
                return case.name
        return None

    def _reaching(self, mutant: Mutant) -> Iterator[Case]:
        """The cases that can notice a mutant, those first that its rule decides.

        Where another rule matches before the changed one is tried, nothing changes. Any case can notice a change of the
        input schema or the default outcome, and a rule with another priority may come before rules of that priority.
        """
        if mutant.rule_id is None or mutant.kind == "priorities_exchanged":
            yield from self._all
            return
        for at in range(self._order[mutant.rule_id], len(self._order) + 1):
            yield from self._decided_by.get(at, ())


def _size(body: RulebookBody) -> int:
    """How many conditions, and items in their lists, a mutant has about."""
    values = [node.condition.get("value") for rule in body["rules"] for node in walk(rule["condition"])]
    return sum(1 + (len(value) if isinstance(value, list | dict) else 0) for value in values)
