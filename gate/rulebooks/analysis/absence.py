"""Facts that are missing or of a wrong type, and what a rulebook makes of them.

A comparison is false where its field is absent, or has a type that the comparison does not speak of. A rule that holds
back can so fall silent, and facts be approved that would not be if they were whole. Each question compares two answers
of one rulebook: for facts as they are, and for the same facts seen with one field absent or of another type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from gate.encoding.strict_json import JsonObject
from gate.rulebooks.analysis.finding import Finding, Inconsistent, Severity
from gate.rulebooks.analysis.formulas.classes import Kind, kind_of
from gate.rulebooks.analysis.formulas.encoding import Encoded, EncodedRule, Encoder, Result, result_of
from gate.rulebooks.analysis.formulas.solver import NotDecided, Solver
from gate.rulebooks.analysis.formulas.space import Space
from gate.rulebooks.conditions import replaced, test_nodes, walk
from gate.rulebooks.documents import Condition
from gate.rulebooks.evaluation import Evaluator, compile_rulebook, value_at
from gate.rulebooks.explanation import shown, test_words
from gate.rulebooks.facts import with_value

_NEGATIVE: Final = ("neq", "not_in", "not_contains")
_KINDS: Final[tuple[Kind, ...]] = ("null", "boolean", "number", "string", "array", "object")


class Absences:
    """Asks what an encoded rulebook makes of facts that are missing or of a wrong type."""

    def __init__(self, encoder: Encoder, encoded: Encoded) -> None:
        """Takes a rulebook that was encoded over a space that has its fields."""
        self._encoder: Final = encoder
        self._encoded: Final = encoded
        self._space: Final[Space] = encoder.space
        self._solver: Final[Solver] = encoder.space.solver
        self._evaluator: Final[Evaluator] = compile_rulebook(encoded.body)
        self._tests: Final[Mapping[str, list[Condition]]] = _by_field(encoded)
        self.undecided: Final[list[str]] = []

    def findings(self) -> Iterator[Finding]:
        """The findings. Undecided questions are then in `undecided`."""
        silent = set()
        for rule in self._encoded.rules:
            if rule.rule["outcome"]["decision"] != "yes":
                for finding, field in self._silent(rule):
                    if finding.severity == "danger":
                        silent.add(field)
                    yield finding
        for field in self._tests:
            # Where a named rule falls silent, that says more than that the field may be left out.
            if field not in silent:
                yield from self._approved(field, "absent")
            yield from self._approved_for_a_type(field)

    # --- Rules that fall silent ---------------------------------------------------------------------------------------

    def _silent(self, rule: EncodedRule) -> Iterator[tuple[Finding, str]]:
        """Negative tests of a rule that absence makes false, so that the rule does not match."""
        for node in walk(rule.rule["condition"]):
            test = node.condition
            # Below a `not`, a false comparison makes the rule match.
            if node.inverted or test.get("operator") not in _NEGATIVE:
                continue
            try:
                found = self._silenced(rule, node.path, test)
            except NotDecided as error:
                self.undecided.append(
                    f"Whether {rule.rule_id} stops matching where {test['field']} is absent is not decided: {error}."
                )
                continue
            if found is not None:
                yield found, test["field"]

    def _silenced(self, rule: EncodedRule, path: str, test: Condition) -> Finding | None:
        absent = self._space.fields[test["field"]].absent
        if not self._solver.solve([self._encoded.valid, absent]):
            return None
        # The rule as it would be if absence counted as a difference.
        wide: Condition = {"any": [test, {"field": test["field"], "operator": "not_exists"}]}
        meant = self._encoder.condition(replaced(rule.rule["condition"], path, wide))
        silent = [absent, rule.tried, meant, -rule.condition]
        same = rule.rule["outcome"]["decision"]
        severities: tuple[tuple[Severity, int], ...] = (
            ("danger", self._decides(self._encoded, "yes")),
            ("warning", -self._decides(self._encoded, same)),
        )
        for severity, among in severities:
            if self._solver.solve([*silent, among]):
                facts = self._space.facts()
                result = self._result(facts)
                by = "the default outcome" if result.rule_id is None else result.rule_id
                return Finding(
                    "silent_when_absent",
                    severity,
                    (rule.rule_id, *([result.rule_id] if result.rule_id is not None else [])),
                    f"rules[{rule.place}].condition{path}",
                    f"{test_words(test)} is false where {test['field']} is absent, so {rule.rule_id} does not "
                    f"match, and {by} decides: {result.decision}. Make {test['field']} required, or add a test "
                    "for not_exists.",
                    facts,
                )
        return None

    # --- Approvals ----------------------------------------------------------------------------------------------------

    def _approved_for_a_type(self, field: str) -> Iterator[Finding]:
        declared = self._encoded.body["input_schema"]["properties"]
        spoken_of = {kind for test in self._tests[field] for kind in _kinds_of(test)}
        if field in declared or not spoken_of:
            return
        for kind in _KINDS:
            if kind not in spoken_of:
                # To the tests of the field, all values that they do not speak of are the same.
                yield from self._approved(field, kind)
                return

    def _approved(self, field: str, kind: Kind) -> Iterator[Finding]:
        try:
            found = self._unwarranted(field, kind)
        except NotDecided as error:
            what = "left out" if kind == "absent" else f"given as {_CALLED[kind]}"
            self.undecided.append(f"Whether facts with {field} {what} are approved is not decided: {error}.")
            return
        if found is not None:
            yield found

    def _unwarranted(self, field: str, kind: Kind) -> Finding | None:
        """Facts that are approved with a field absent or of another type, and with a value of the field are not."""
        variables = self._space.fields[field]
        if kind == "absent" and not self._solver.solve([self._encoded.valid, variables.absent]):
            return None
        above = variables.parent
        while above is not None:
            if any(one.kind == "object" and not one.is_open for one in above.of.classes):
                raise NotDecided(f"rules compare {above.name}, which holds the field, with whole objects")
            above = above.parent
        classes = enumerate(variables.of.classes)
        index = next(at for at, one in classes if one.kind == kind and (one.is_open or kind in _CLOSED))
        fixed = {field: index} | {below.name: 0 for below in self._space.below(field)}
        other = self._encoder.encode(self._encoded.body, fixed)
        speaking = [lit for test in self._tests[field] for lit in variables.of_kinds(*_kinds_of(test))]
        present = [-variables.absent] if kind == "absent" else [self._encoder.any_of(speaking)]
        question = [self._decides(other, "yes"), self._encoded.valid, -self._decides(self._encoded, "yes"), *present]
        if not self._solver.solve(question):
            return None
        whole = self._space.facts()
        return self._finding(field, kind, whole, with_value(whole, field, variables.of.classes[index].sample))

    def _finding(self, field: str, kind: Kind, whole: JsonObject, partial: JsonObject) -> Finding:
        approved, otherwise = self._result(partial), self._result(whole)
        if approved.decision != "yes" or otherwise.decision == "yes":
            raise Inconsistent(f"The evaluator gives {approved} for {partial} and {otherwise} for {whole}.")
        value = shown(value_at(whole, field))
        rules = tuple(one.rule_id for one in (approved, otherwise) if one.rule_id is not None)
        by = "the default outcome" if approved.rule_id is None else approved.rule_id
        instead = f"the decision is {otherwise.decision}, by {otherwise.rule_id or 'the default outcome'}"
        path = f"input_schema.properties.{field}"
        if kind == "absent":
            message = (
                f"Facts without {field} are approved by {by}; with {field} {value}, {instead}. Make "
                f"{field} required, or let no rule approve where it is absent."
            )
            return Finding("approves_without_fact", "danger", rules, path, message, partial)
        message = (
            f"Facts with {_CALLED[kind]} as {field} are approved by {by}; with {field} {value}, {instead}. Declare the "
            f"type of {field} in input_schema.properties."
        )
        return Finding("approves_wrong_type", "danger", rules, path, message, partial)

    def _decides(self, encoded: Encoded, decision: str) -> int:
        return self._encoder.any_of(
            literal for result, literal in encoded.results.items() if result.decision == decision
        )

    def _result(self, facts: JsonObject) -> Result:
        return result_of(self._evaluator.decide(facts))


# The kinds whose one class, or whose first, represents all values that no test mentions.
_CLOSED: Final = ("absent", "null", "boolean", "number")

_CALLED: Final[Mapping[Kind, str]] = {
    "null": "null", "boolean": "a boolean", "number": "a number", "string": "a string", "array": "an array",
    "object": "an object",
}  # fmt: skip


def _by_field(encoded: Encoded) -> dict[str, list[Condition]]:
    found: dict[str, list[Condition]] = {}
    for rule in encoded.rules:
        for _, test in test_nodes(rule.rule):
            found.setdefault(test["field"], []).append(test)
    return found


def _kinds_of(test: Condition) -> tuple[Kind, ...]:
    """The JSON types that a test speaks of."""
    operator = test["operator"]
    if operator in ("exists", "not_exists"):
        return ()
    if operator in ("gt", "gte", "lt", "lte"):
        return ("number",)
    if operator in ("contains", "not_contains"):
        return ("string", "array") if isinstance(test["value"], str) else ("array",)
    values = cast("list[object]", test["value"]) if operator in ("in", "not_in") else [test["value"]]
    return tuple(dict.fromkeys(kind_of(value) for value in values))
