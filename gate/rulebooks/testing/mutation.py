"""The mutation score: how many mutants of a rulebook its cases notice.

    report = mutation_score(rulebook, file.cases, judge)
    report.score.percent                                 # "93.4 %": killed, of those killed and survived
    [(survivor.mutant.description, survivor.facts) for survivor in report.survived]

A case kills a mutant where it holds on the rulebook and does not hold on the mutant. Only the mutants that no case
kills go to the judge, who proves that a mutant decides alike, or gives facts that tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.conditions import walk
from gate.rulebooks.documents import DeclaredRule, RulebookBody
from gate.rulebooks.evaluation import Evaluator, Outcome, compile_rulebook
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.answers import Answer, Found, Never
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.mutants import Mutant, mutants_of
from gate.rulebooks.testing.runs import holds
from gate.rulebooks.testing.shares import Share

MAX_MUTANTS: Final = 5_000
"""How many mutants are tried at most."""

MAX_WORK: Final = 50_000_000
"""How many rules are evaluated, and conditions and items of lists compiled, at most: about a minute."""


class Judge(Protocol):
    """Decides whether two rulebooks decide every fact alike. If that costs too much, it answers `Undecided`."""

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
    """A mutant that no case notices, and it is undecided whether it decides alike.

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
        undecided: The undecided mutants. They do not count in the score.
        failing: The names of the cases that do not hold on the rulebook itself, and so kill nothing.
        cut: Whether there are more mutants than the bounds permit.
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
        judge: Decides whether two rulebooks decide every possible fact alike.
    """
    trials = _Trials(rulebook, cases)
    killed: list[Killed] = []
    survived: list[Survivor] = []
    equivalent: list[Mutant] = []
    undecided: list[Unjudged] = []
    cut = False
    for number, mutant in enumerate(mutants_of(rulebook.body)):
        if number == MAX_MUTANTS or trials.work > MAX_WORK:
            cut = True
            break
        if (killer := trials.killer(mutant)) is not None:
            killed.append(Killed(mutant, killer))
            continue
        judged = _judged(mutant, rulebook, judge)
        if isinstance(judged, Survivor):
            survived.append(judged)
        elif isinstance(judged, Unjudged):
            undecided.append(judged)
        else:
            equivalent.append(judged)
    return MutationReport(
        tuple(killed), tuple(survived), tuple(equivalent), tuple(undecided), tuple(trials.failing), cut
    )


def _judged(mutant: Mutant, rulebook: Rulebook, judge: Judge) -> Survivor | Unjudged | Mutant:
    answer = judge.difference(rulebook.body, mutant.body)
    if isinstance(answer, Never):
        return mutant
    if not isinstance(answer, Found):
        return Unjudged(mutant, answer.reason)
    original, mutated = (of.decide(answer.facts) for of in (rulebook.evaluator, compile_rulebook(mutant.body)))
    if original == mutated:
        return Unjudged(mutant, "the evaluator does not confirm the facts that should tell them apart")
    return Survivor(mutant, answer.facts, original, mutated)


class _Trials:
    """The cases that hold on a rulebook, by the rules that decide them.

    Attributes:
        failing: The names of the cases that do not hold.
        work: How much was evaluated and compiled so far, as `MAX_WORK` counts it.
    """

    def __init__(self, rulebook: Rulebook, cases: Iterable[Case]) -> None:
        self.failing: Final[list[str]] = []
        self.work = 0
        self._size: Final = sum(map(_size, rulebook.body["rules"]))
        rules = sorted(rulebook.body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
        self._order: Final = {rule["rule_id"]: at for at, rule in enumerate(rules)}
        self._all: Final[list[Case]] = []
        # Those that no rule decides come last.
        self._decided_by: Final[list[list[Case]]] = [[] for _ in range(len(rules) + 1)]
        for case in cases:
            if not holds(rulebook.evaluator, case):
                self.failing.append(case.name)
                continue
            self._all.append(case)
            outcome = rulebook.evaluator.decide(case.facts)
            if outcome.status == "ok":
                by = outcome.matched_rule_id
                self._decided_by[len(rules) if by is None else self._order[by]].append(case)

    def killer(self, mutant: Mutant) -> str | None:
        """The name of a case that does not hold on a mutant; None where all of them do."""
        evaluator: Evaluator | None = None
        for case in self._affected(mutant):
            if evaluator is None:
                evaluator = compile_rulebook(mutant.body)
                self.work += self._size
            self.work += len(self._order)
            if not holds(evaluator, case):
                return case.name
        return None

    def _affected(self, mutant: Mutant) -> Iterable[Case]:
        """The cases whose outcome a mutant may change; it changes that of no other."""
        if mutant.rule_id is None:
            return self._all if mutant.path.startswith("input_schema") else self._decided_by[-1]
        if mutant.kind == "priorities_exchanged":
            return self._all
        at = self._order[mutant.rule_id]
        return self._decided_by[at] if mutant.changed is None else self._matching_otherwise(at, mutant, mutant.changed)

    def _matching_otherwise(self, at: int, mutant: Mutant, changed: DeclaredRule) -> Iterator[Case]:
        """The cases for which a rule is tried, and with its changed condition matches where it did not, or no more."""
        alone = compile_rulebook(
            {**mutant.body, "input_schema": {"required": [], "properties": {}}, "rules": [changed]}
        )
        self.work += _size(changed)
        for by in range(at, len(self._decided_by)):
            for case in self._decided_by[by]:
                self.work += 1
                matches = alone.decide(case.facts).matched_rule_id is not None
                if matches is not (by == at):
                    yield case


def _size(rule: DeclaredRule) -> int:
    """How many conditions a rule has, and items in their lists."""
    values = [node.condition.get("value") for node in walk(rule["condition"])]
    return sum(1 + (len(value) if isinstance(value, list | dict) else 0) for value in values)
