"""A rulebook over every possible fact: rules that never match or contend, tests that decide nothing, the default
outcome.

Every finding is exact: it is proved for all facts, and where facts show it, they are its witness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.advice import undeclared_fields
from gate.rulebooks.analysis.finding import Finding, Inconsistent, Severity
from gate.rulebooks.analysis.formulas.encoding import Encoded, EncodedRule, Encoder
from gate.rulebooks.analysis.formulas.solver import NotDecided, Solver
from gate.rulebooks.analysis.formulas.space import Space
from gate.rulebooks.analysis.regions import Regions
from gate.rulebooks.conditions import test_nodes
from gate.rulebooks.documents import Condition
from gate.rulebooks.evaluation import Evaluator, compile_rulebook
from gate.rulebooks.explanation import test_words

MAX_DEFAULT_REGIONS: Final = 50
"""How many regions that fall to the default outcome are listed."""

MAX_OVERLAPS: Final = 100
"""How many pairs of overlapping rules are listed."""


class Examiner:
    """Examines one encoded rulebook."""

    def __init__(self, encoder: Encoder, encoded: Encoded) -> None:
        """Takes a rulebook that was encoded over a space that has its fields."""
        self._encoder: Final = encoder
        self._encoded: Final = encoded
        self._space: Final[Space] = encoder.space
        self._solver: Final[Solver] = encoder.space.solver
        self._evaluator: Final[Evaluator] = compile_rulebook(encoded.body)
        self.undecided: Final[list[str]] = []

    def findings(self) -> Iterator[Finding]:
        """The findings. Undecided questions are then in `undecided`."""
        yield from self._rules_without_effect()
        yield from self._overlaps()
        yield from self._constant_tests()
        yield from self._undeclared_fields()
        yield from self._left_to_the_default()

    # --- Rules --------------------------------------------------------------------------------------------------------

    def _rules_without_effect(self) -> Iterator[Finding]:
        for at, rule in enumerate(self._encoded.rules):
            try:
                if not self._solver.solve([rule.matches]):
                    yield self._without_effect(rule, self._encoded.rules[:at])
            except NotDecided as error:
                self.undecided.append(f"Whether the rule {rule.rule_id} can match is not decided: {error}.")

    def _without_effect(self, rule: EncodedRule, before: Sequence[EncodedRule]) -> Finding:
        holds_back = rule.rule["outcome"]["decision"] != "yes"
        path = f"rules[{rule.place}]"
        if not self._solver.solve([self._encoded.valid, rule.condition]):
            message = f"The rule {rule.rule_id} never matches: {self._contradiction(rule)}."
            return Finding("rule_never_matches", "danger" if holds_back else "warning", (rule.rule_id,), path, message)
        by = self._taken_by(before, [self._encoded.valid, rule.condition])
        approved = any(other.rule["outcome"]["decision"] == "yes" for other in by)
        names = [other.rule_id for other in by]
        message = (
            f"The rule {rule.rule_id} never matches: whenever its condition holds, {_either(names)} has matched before "
            f"it. Give {rule.rule_id} a higher priority, or remove it."
        )
        severity: Severity = "danger" if holds_back and approved else "warning"
        return Finding("rule_shadowed", severity, (rule.rule_id, *names), path, message)

    def _contradiction(self, rule: EncodedRule) -> str:
        """Why no valid facts meet a condition."""
        children = rule.rule["condition"].get("all", [])
        literals = {rule.nodes[f"condition.all[{index}]"]: child for index, child in enumerate(children)}
        core = self._solver.smallest_core(literals, [self._encoded.valid]) if literals else []
        tests = [test_words(literals[literal]) for literal in core if "operator" in literals[literal]]
        if len(core) < 2 or len(tests) < len(core):
            return "its condition holds for no valid facts"
        return f"{', '.join(tests[:-1])} and {tests[-1]} cannot hold together"

    def _taken_by(self, rules: Iterable[EncodedRule], always: Sequence[int]) -> list[EncodedRule]:
        """Rules that together match whenever some literals hold; none of them can be left out."""
        by_literal: dict[int, EncodedRule] = {}
        for rule in rules:
            by_literal.setdefault(-rule.condition, rule)
        # Rules far away are left out first: the nearest one explains best.
        core = self._solver.smallest_core(by_literal, always)
        return [by_literal[literal] for literal in core]

    def _overlaps(self) -> Iterator[Finding]:
        found = 0
        for first, second in combinations(self._encoded.rules, 2):
            one, other = first.rule["outcome"], second.rule["outcome"]
            if _priority(first) != _priority(second) or one == other:
                continue
            try:
                overlap = self._solver.solve([first.matches, second.condition])
            except NotDecided as error:
                self.undecided.append(
                    f"Whether {first.rule_id} and {second.rule_id}, of equal priority, overlap is not decided: {error}."
                )
                continue
            if not overlap:
                continue
            if found == MAX_OVERLAPS:
                message = f"More pairs of rules of equal priority overlap than the {MAX_OVERLAPS} that are listed."
                yield Finding("equal_priorities_overlap", "warning", (), "rules", message)
                return
            found += 1
            approves = "yes" in (one["decision"], other["decision"]) and one["decision"] != other["decision"]
            yield Finding(
                "equal_priorities_overlap",
                "danger" if approves else "note" if one["action"] == other["action"] else "warning",
                (first.rule_id, second.rule_id),
                f"rules[{second.place}]",
                f"{first.rule_id} ({one['decision']}) and {second.rule_id} ({other['decision']}) have the same "
                f"priority and match the same facts. {first.rule_id} decides, because its id comes first. Give "
                "them different priorities.",
                self._facts(first),
            )

    # --- Tests --------------------------------------------------------------------------------------------------------

    def _constant_tests(self) -> Iterator[Finding]:
        pending = {
            (rule.tried, sign * rule.nodes[path])
            for rule in self._encoded.rules
            for path, _ in test_nodes(rule.rule)
            for sign in (1, -1)
        }
        for at, rule in enumerate(self._encoded.rules):
            for path, test in test_nodes(rule.rule):
                literal = rule.nodes[path]
                try:
                    can = {sign: self._can(rule.tried, sign * literal, pending) for sign in (1, -1)}
                    # A rule that is never tried is shadowed, which is a finding of its own.
                    if can[1] is not can[-1]:
                        yield self._constant(rule, path, test, can[1], self._encoded.rules[:at])
                except NotDecided as error:
                    self.undecided.append(
                        f"Whether {test_words(test)} decides anything in {rule.rule_id} is not decided: {error}."
                    )

    def _can(self, tried: int, literal: int, pending: set[tuple[int, int]]) -> bool:
        """Whether a literal can hold where a rule is tried; every solution answers more such questions."""
        if (tried, literal) not in pending:
            return True
        if not self._solver.solve([tried, literal]):
            return False
        pending -= {pair for pair in pending if all(map(self._solver.holds, pair))}
        return True

    def _constant(
        self, rule: EncodedRule, path: str, test: Condition, truth: bool, before: Sequence[EncodedRule]
    ) -> Finding:
        by = self._taken_by(before, [self._encoded.valid, -rule.nodes[path] if truth else rule.nodes[path]])
        word = "true" if truth else "false"
        if by:
            when = (
                f"whenever {rule.rule_id} is tried, because {_all([one.rule_id for one in by])} match all other facts"
            )
            if len(by) == 1:
                when = f"whenever {rule.rule_id} is tried, because {by[0].rule_id} matches all other facts"
        else:
            when = "for all valid facts"
        return Finding(
            f"test_always_{word}",
            "note" if by else "warning",
            (rule.rule_id, *(one.rule_id for one in by)),
            f"rules[{rule.place}].{path}",
            f"{test_words(test)} is {word} {when}.",
        )

    def _undeclared_fields(self) -> Iterator[Finding]:
        for warning in undeclared_fields(self._encoded.body):
            place = int(warning.field.partition("[")[2].partition("]")[0])
            rule_id = self._encoded.body["rules"][place]["rule_id"]
            path = warning.field.removesuffix(".field")
            yield Finding("undeclared_field", "warning", (rule_id,), path, warning.message)

    # --- Outcomes -----------------------------------------------------------------------------------------------------

    def _left_to_the_default(self) -> Iterator[Finding]:
        outcome = self._encoded.body["default_outcome"]
        severity: Severity = "danger" if outcome["decision"] == "yes" else "note"
        try:
            regions = Regions(self._encoder, [self._encoded.valid]).of(self._encoded.default)
            for found, region in enumerate(regions):
                if found == MAX_DEFAULT_REGIONS:
                    message = f"No rule matches for more facts than those in the {MAX_DEFAULT_REGIONS} regions listed."
                    yield Finding("falls_to_default", severity, (), "default_outcome", message)
                    return
                self._confirm(region.witness, None)
                yield Finding(
                    "falls_to_default",
                    severity,
                    (),
                    "default_outcome",
                    f"No rule matches for {region.condition}; the default outcome decides: {outcome['decision']}.",
                    region.witness,
                )
        except NotDecided as error:
            self.undecided.append(f"Whether more facts fall to the default outcome is not decided: {error}.")

    def _facts(self, rule: EncodedRule) -> JsonObject:
        """The facts found last, for which a rule matches."""
        facts = self._space.facts()
        self._confirm(facts, rule.rule_id)
        return facts

    def _confirm(self, facts: JsonObject, rule_id: str | None) -> None:
        """Has the evaluator confirm that a rule matches valid facts, or that none does."""
        found = self._evaluator.decide(facts)
        if found.status != "ok" or found.matched_rule_id != rule_id:
            raise Inconsistent(f"The evaluator gives {found} for {facts}, where {rule_id} should match.")


def _priority(rule: EncodedRule) -> int:
    return rule.rule.get("priority", 0)


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _all(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
