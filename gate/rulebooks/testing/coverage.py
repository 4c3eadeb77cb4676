"""The coverage of a rulebook by cases: the rules, tests, and combinators that they try, and those that they leave out.

    coverage = measure(rulebook, file.cases)
    coverage.share("test_false").percent                    # "87.5 %"
    [hole.goal.description for hole in coverage.holes]      # ["amount lte 50 is false in approve_small"]
    coverage.judged(finder).found()                         # facts that close the holes

A goal asks for evaluations, one or two: facts for which a rule is tried, and some nodes of its condition are true or
false. A goal is met where cases give all of them. Whether the cases hold is another question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

from gate.rulebooks.conditions import walk
from gate.rulebooks.documents import Condition, DeclaredRule, RulebookBody, TriedRule
from gate.rulebooks.explanation import condition_words, test_words
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.answers import Answer, Found, Never, Undecided
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.shares import Share

GoalKind: TypeAlias = Literal["rule_matched", "default_reached", "test_true", "test_false", "decides_alone"]

GOAL_KINDS: Final[tuple[GoalKind, ...]] = (
    "rule_matched", "default_reached", "test_true", "test_false", "decides_alone",
)  # fmt: skip
"""The kinds of goals, in the order of reports."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An evaluation that a goal asks for.

    Attributes:
        rule_id: A rule that is tried: the facts are valid, and no rule before it matches. None: no rule matches.
        nodes: Nodes of its condition, by their path in the rule such as `condition.all[0]`, and whether each holds.
    """

    rule_id: str | None
    nodes: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that the cases of a rulebook should show.

    Attributes:
        kind: `rule_matched`, `default_reached`, `test_true` and `test_false` in a rule that is tried, and
            `decides_alone`: a child of an `all` or `any` of several turns it around while the others stay.
        rule_id: The rule; None for the default outcome.
        path: The place in the rulebook: `rules[2].condition.all[0]`.
        description: The goal as a sentence, without a full stop.
        wanted: The evaluations that meet it, all of them together.
    """

    kind: GoalKind
    rule_id: str | None
    path: str
    description: str
    wanted: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class GoalResult:
    """A goal, and how far cases meet it.

    Attributes:
        goal: The goal.
        met_by: For each evaluation that it asks for, the name of the first case that gives it; None where none does.
        answers: For each evaluation that no case gives, whether there are facts for it; empty before a finder was
            asked.
    """

    goal: Goal
    met_by: tuple[str | None, ...]
    answers: Mapping[Wanted, Answer]

    @property
    def met(self) -> bool:
        """Whether cases give all evaluations that it asks for."""
        return None not in self.met_by

    @property
    def missing(self) -> tuple[Wanted, ...]:
        """The evaluations that no case gives."""
        return tuple(wanted for wanted, name in zip(self.goal.wanted, self.met_by, strict=True) if name is None)

    @property
    def impossible(self) -> bool:
        """Whether it is proved that no facts meet it."""
        return any(isinstance(answer, Never) for answer in self.answers.values())

    @property
    def undecided(self) -> tuple[str, ...]:
        """Why it is not decided whether facts can meet it; empty where that is decided, or nobody was asked."""
        if self.impossible:
            return ()
        return tuple(answer.reason for answer in self.answers.values() if isinstance(answer, Undecided))


class Finder(Protocol):
    """Finds facts for evaluations, among every possible fact. If that costs too much, it answers `Undecided`."""

    def find(self, wanted: Wanted) -> Answer:
        """Facts for which an evaluation is as wanted."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far cases meet the goals of a rulebook.

    Attributes:
        results: Every goal, in the order of `goals_of`.
    """

    results: tuple[GoalResult, ...]

    @property
    def holes(self) -> tuple[GoalResult, ...]:
        """The goals that are not met, and not proved to be impossible."""
        return tuple(result for result in self.results if not result.met and not result.impossible)

    @property
    def impossible(self) -> tuple[GoalResult, ...]:
        """The goals that no facts can meet, which do not count."""
        return tuple(result for result in self.results if result.impossible)

    def share(self, kind: GoalKind | None = None) -> Share:
        """The goals met, of all that are not proved to be impossible.

        Args:
            kind: Of one kind of goals alone; of all kinds where None.
        """
        counted = [one for one in self.results if kind in (None, one.goal.kind) and not one.impossible]
        return Share(sum(one.met for one in counted), len(counted))

    def judged(self, finder: Finder) -> Coverage:
        """The same, with the answers of a finder to what no case gives; it is asked about each evaluation once."""
        missing = dict.fromkeys(wanted for result in self.results for wanted in result.missing)
        answers = {wanted: finder.find(wanted) for wanted in missing}
        results = (replace(one, answers={wanted: answers[wanted] for wanted in one.missing}) for one in self.results)
        return Coverage(tuple(results))

    def found(self) -> dict[Wanted, Found]:
        """The facts that close holes, by the evaluations that they give. Those of impossible goals are left out."""
        return {
            wanted: answer
            for hole in self.holes
            for wanted, answer in hole.answers.items()
            if isinstance(answer, Found)
        }


def measure(rulebook: Rulebook, cases: Iterable[Case]) -> Coverage:
    """How far cases meet the goals of a rulebook, without looking for what no case gives.

    Args:
        rulebook: The rulebook.
        cases: The cases; each is evaluated, whether it holds or not.
    """
    goals = goals_of(rulebook.body)
    given = _given(rulebook, cases, dict.fromkeys(wanted for goal in goals for wanted in goal.wanted))
    return Coverage(tuple(GoalResult(goal, tuple(given.get(wanted) for wanted in goal.wanted), {}) for goal in goals))


# --- Goals ------------------------------------------------------------------------------------------------------------


def goals_of(body: RulebookBody) -> list[Goal]:
    """The goals of a valid rulebook: rule by rule as they are written, the default outcome last."""
    found = [goal for place, rule in enumerate(body["rules"]) for goal in _goals_of_rule(place, rule)]
    return [*found, Goal("default_reached", None, "default_outcome", "no rule matches", (Wanted(None),))]


def _goals_of_rule(place: int, rule: DeclaredRule) -> Iterator[Goal]:
    rule_id = rule["rule_id"]
    matched = Wanted(rule_id, (("condition", True),))
    yield Goal("rule_matched", rule_id, f"rules[{place}]", f"{rule_id} matches", (matched,))
    for node in walk(rule["condition"], "condition"):
        path = f"rules[{place}].{node.path}"
        if "operator" in node.condition:
            words = test_words(node.condition)
            for kind, truth, word in _TRUTHS:
                wanted = Wanted(rule_id, ((node.path, truth),))
                yield Goal(kind, rule_id, path, f"{words} is {word} in {rule_id}", (wanted,))
        elif "not" not in node.condition:
            yield from _decisions(rule_id, path, node.path, node.condition)


_TRUTHS: Final[tuple[tuple[GoalKind, bool, str], ...]] = (
    ("test_true", True, "true"),
    ("test_false", False, "false"),
)


def _decisions(rule_id: str, path: str, within: str, condition: Condition) -> Iterator[Goal]:
    """For each child of a combinator of several: that it decides alone, while the others leave it open."""
    name: Literal["all", "any"] = "all" if "all" in condition else "any"
    children = condition[name]
    # An `all` is open as long as its children are true, an `any` as long as they are false.
    is_open = name == "all"
    paths = [f"{within}.{name}[{index}]" for index in range(len(children))]
    among_open = Wanted(rule_id, tuple((one, is_open) for one in paths))
    for index, child in enumerate(children) if len(children) > 1 else ():
        alone = Wanted(rule_id, tuple((one, is_open if at != index else not is_open) for at, one in enumerate(paths)))
        yield Goal(
            "decides_alone",
            rule_id,
            f"{path}.{name}[{index}]",
            f"{condition_words(child)} alone decides the {name} ({len(children)} conditions) in {rule_id}",
            (among_open, alone),
        )


# --- Evaluations ------------------------------------------------------------------------------------------------------


def _given(rulebook: Rulebook, cases: Iterable[Case], wanted: Iterable[Wanted]) -> dict[Wanted, str]:
    """The evaluations, of some wanted, that cases give, each with the name of the first case that gives it."""
    given: dict[Wanted, str] = {}
    open_: dict[str | None, list[Wanted]] = defaultdict(list)
    for one in wanted:
        open_[one.rule_id].append(one)
    conditions = {rule["rule_id"]: rule["condition"] for rule in rulebook.body["rules"]}
    for case in cases:
        explained = rulebook.evaluator.explain(case.facts)
        if explained.outcome.status == "ok" and not explained.evaluation["matched"]:
            given.setdefault(Wanted(None), case.name)
        for tried in explained.evaluation["rules"]:
            # Nothing is worked out of a rule whose evaluations were all given before.
            if sought := open_[tried["rule_id"]]:
                truths = _truths(conditions[tried["rule_id"]], tried)
                gives = [one for one in sought if all(truths[path] is truth for path, truth in one.nodes)]
                given.update((one, case.name) for one in gives)
                open_[tried["rule_id"]] = [one for one in sought if one not in given]
    return given


def _truths(condition: Condition, tried: TriedRule) -> dict[str, bool]:
    """Whether each node of a condition holds, by its path in the rule."""
    truths = {test["path"]: test["passed"] for test in tried["tests"]}
    # Children come after their parents, so that backwards they are known before.
    for node in reversed(list(walk(condition, "condition"))):
        if "not" in node.condition:
            truths[node.path] = not truths[f"{node.path}.not"]
        elif "all" in node.condition:
            truths[node.path] = all(_children(truths, node.path, "all", node.condition["all"]))
        elif "any" in node.condition:
            truths[node.path] = any(_children(truths, node.path, "any", node.condition["any"]))
    return truths


def _children(truths: Mapping[str, bool], path: str, name: str, children: Sequence[Condition]) -> Iterator[bool]:
    return (truths[f"{path}.{name}[{index}]"] for index in range(len(children)))
