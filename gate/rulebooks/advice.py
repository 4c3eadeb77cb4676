"""Advice to the author of a valid rulebook: rules that are legal and probably not meant.

    find_warnings(body)                      # facts come from callers
    find_warnings(body, adapter_facts)       # facts come from an adapter with this output schema

A warning makes no rulebook invalid and changes no decision. The same warnings come from `gate rulebook check`, from a
registration, and from the metadata of a registered rulebook.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final, cast

from gate.encoding.shapes import MAX_ERRORS, json_type
from gate.encoding.strict_json import JsonObject
from gate.errors import FieldError
from gate.labels import OUTPUT_MATERIAL
from gate.rulebooks.conditions import tests_of
from gate.rulebooks.documents import Condition, DeclaredOutcome, DeclaredRule, RulebookBody
from gate.rulebooks.evaluation import compile_rulebook, is_of_type
from gate.rulebooks.explanation import shown


def find_warnings(body: RulebookBody, adapter_facts: JsonObject | None = None) -> list[FieldError]:
    """The warnings about a valid rulebook, at most `MAX_ERRORS`; `docs/reference/rulebook-codes.md` lists their codes.

    Args:
        body: The rulebook.
        adapter_facts: The output schema of the adapter that makes its facts; None where callers send them.
    """
    return list(islice(_warnings(body, adapter_facts), MAX_ERRORS))


def _warnings(body: RulebookBody, adapter_facts: JsonObject | None) -> Iterator[FieldError]:
    if adapter_facts is None:
        yield from _approval_of_nothing(body)
    yield from _contradictory_outcomes(body)
    yield from _equal_priorities(body["rules"])
    yield from _requirements_never_read(body) if adapter_facts is None else ()
    yield from undeclared_fields(body) if adapter_facts is None else _fields_never_made(body, adapter_facts)
    yield from _approvals_of_absence(body) if adapter_facts is None else ()
    yield from _silent_or_never_true(body)
    yield from _output_material(body)


def _approval_of_nothing(body: RulebookBody) -> Iterator[FieldError]:
    outcome = compile_rulebook(body).decide({})
    if outcome.decision == "yes":
        by = "the default outcome" if outcome.matched_rule_id is None else f"the rule {outcome.matched_rule_id}"
        yield FieldError(
            "input_schema.required",
            "approves_without_facts",
            f"A request without any facts is approved by {by}. Require the facts that the rules read.",
        )
    elif body["default_outcome"]["decision"] == "yes":
        yield FieldError(
            "default_outcome.decision",
            "approves_by_default",
            "A request that no rule matches is approved, even if a fact is absent because its name is "
            "misspelled. Let a rule approve, and let the default hold or block.",
        )


# --- Fields -----------------------------------------------------------------------------------------------------------


def undeclared_fields(body: RulebookBody) -> Iterator[FieldError]:
    """The warnings about fields of conditions that the input schema neither declares nor requires."""
    known = _KnownFields(body)
    for _, node in tests_of(body):
        field = node.condition["field"]
        reason = known.why_unknown(field)
        if reason is not None:
            yield FieldError(f"{node.path}.field", "undeclared_field", reason)


class _KnownFields:
    """The fields that an input schema declares or requires."""

    def __init__(self, body: RulebookBody) -> None:
        schema = body["input_schema"]
        # A required field without a declaration may have any type.
        types = dict.fromkeys(schema["required"], "any")
        types |= {name: declared["type"] for name, declared in schema["properties"].items()}
        self._types: Final = types
        self._sorted: Final = sorted(types)
        self._closest: Final = ClosestName()
        self._reasons: Final[dict[str, str | None]] = {}

    def why_unknown(self, field: str) -> str | None:
        """The warning about a field that the schema does not have; None where it has it."""
        if field not in self._reasons:
            self._reasons[field] = self._why_unknown(field)
        return self._reasons[field]

    def _why_unknown(self, field: str) -> str | None:
        # A field that holds declared fields is an object, whether or not the schema says so.
        if field in self._types or self._has_fields(field):
            return None
        for parent, _ in _splits(field):
            type_ = self._types.get(parent)
            if type_ in ("object", "any") and not self._has_fields(parent):
                return None
            if type_ not in (None, "object", "any"):
                return (
                    f"{parent!r} is declared as {type_}, so {field!r} is always absent. "
                    f"Declare {parent!r} as an object, or correct the field."
                )
        meant = self._closest.find(field, self._candidates(field))
        do = "Declare it in input_schema.properties." if meant is None else f"Did you mean {meant!r}?"
        return f"{field!r} is neither declared nor required, so nobody would notice a misspelled name. {do}"

    def _has_fields(self, parent: str) -> bool:
        at = bisect_left(self._sorted, f"{parent}.")
        return at < len(self._sorted) and self._sorted[at].startswith(f"{parent}.")

    def _candidates(self, field: str) -> Iterator[str]:
        yield from self._sorted
        # `ordr.total` is meant for a field of `order`, of which nothing is declared.
        for _, rest in _splits(field):
            for name in self._sorted:
                if self._types[name] in ("object", "any") and not self._has_fields(name):
                    yield f"{name}.{rest}"


_CLOSE: Final = 0.75
_MAX_COMPARISONS: Final = 2_000


class ClosestName:
    """Finds the names that misspelled names were probably meant to be.

    A hostile document can have any number of names, and each comparison takes time. After about 2,000 comparisons, it
    finds no more.
    """

    def __init__(self) -> None:
        """Begins a search with all comparisons left."""
        self._comparisons = 0

    def find(self, name: str, candidates: Iterable[str]) -> str | None:
        """The candidate that is closest to a name; None where none is close."""
        best, found = _CLOSE, None
        matcher = SequenceMatcher(b=_folded(name), autojunk=False)
        for candidate in candidates:
            self._comparisons += 1
            if self._comparisons > _MAX_COMPARISONS:
                break
            matcher.set_seq1(_folded(candidate))
            if matcher.real_quick_ratio() >= best and matcher.quick_ratio() >= best and matcher.ratio() >= best:
                best, found = matcher.ratio(), candidate
        return found


def _splits(field: str) -> Iterator[tuple[str, str]]:
    """A dotted path cut at each of its dots, the longest beginning first."""
    at = len(field)
    while (at := field.rfind(".", 0, at)) > 0:
        yield field[:at], field[at + 1 :]


def _folded(field: str) -> str:
    # daysSincePurchase is meant for days_since_purchase.
    return field.replace("_", "").replace("-", "").casefold()


def _requirements_never_read(body: RulebookBody) -> Iterator[FieldError]:
    """Required fields that nothing declares or reads: requests without them wait, whatever they are."""
    schema = body["input_schema"]
    used = {*schema["properties"], *(node.condition["field"] for _, node in tests_of(body))}
    closest = ClosestName()
    for index, name in enumerate(schema["required"]):
        if name not in used and not any(other.startswith(f"{name}.") for other in used):
            meant = closest.find(name, sorted(used))
            do = "Declare it, or remove it." if meant is None else f"Did you mean {meant!r}?"
            yield FieldError(
                f"input_schema.required[{index}]",
                "unread_requirement",
                f"{name!r} is required, but nothing declares or reads it. Facts without it get NEEDS_INPUT. {do}",
            )


def _fields_never_made(body: RulebookBody, adapter_facts: JsonObject) -> Iterator[FieldError]:
    read = [(f"input_schema.required[{index}]", name) for index, name in enumerate(body["input_schema"]["required"])]
    read += [(f"{node.path}.field", node.condition["field"]) for _, node in tests_of(body)]
    for path, field in read:
        if not _makes(adapter_facts, field):
            yield FieldError(
                path,
                "not_made_by_adapter",
                f"The adapter never returns the fact {field!r}, so it is always absent. `gate adapters show` "
                "lists its facts.",
            )


def _makes(schema: object, field: str) -> bool:
    """Whether facts of a schema can have a field."""
    for name in field.split("."):
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict):
            # An object without a list of its fields may have any.
            return isinstance(schema, dict) and schema.get("type", "object") in ("object", ["object", "null"])
        if name not in properties:
            return False
        schema = properties[name]
    return True


def _output_material(body: RulebookBody) -> Iterator[FieldError]:
    schema = body["input_schema"]
    declared = {f"input_schema.properties.{name}": name for name in schema["properties"]}
    required = {f"input_schema.required[{index}]": name for index, name in enumerate(schema["required"])}
    for path, name in {**declared, **required}.items():
        for segment in name.split("."):
            if segment in OUTPUT_MATERIAL:
                yield FieldError(
                    path,
                    "output_material",
                    f"A request with {segment!r} among its inputs is refused. Rename the field.",
                )


def _approvals_of_absence(body: RulebookBody) -> Iterator[FieldError]:
    """Comparisons below a `not`, in a rule that approves, on declared fields that callers may leave out."""
    required, known = frozenset(body["input_schema"]["required"]), _KnownFields(body)
    tested = {
        (rule["rule_id"], node.condition["field"])
        for rule, node in tests_of(body)
        if node.condition["operator"] == "exists" and not node.inverted
    }
    for rule, node in tests_of(body):
        operator, field = node.condition["operator"], node.condition["field"]
        # `undeclared_fields` names a field that the schema does not have.
        may_be_absent = field not in required and known.why_unknown(field) is None
        compared = operator not in ("exists", "not_exists") and (rule["rule_id"], field) not in tested
        if rule["outcome"]["decision"] == "yes" and node.inverted and compared and may_be_absent:
            yield FieldError(
                node.path,
                "approves_when_absent",
                f"{operator} is false where {field!r} is absent, and it is below a `not`, so this rule can then "
                "approve. Make the field required, or test it with exists, too.",
            )


_NUMBERS: Final = ("integer", "number")
_ORDERING: Final = ("gt", "gte", "lt", "lte")
_NEGATIVE: Final = ("neq", "not_in", "not_contains")


def _silent_or_never_true(body: RulebookBody) -> Iterator[FieldError]:
    required = frozenset(body["input_schema"]["required"])
    declared = body["input_schema"]["properties"]
    for rule, node in tests_of(body):
        test = node.condition
        operator, field = test["operator"], test["field"]
        blocking = rule["outcome"]["decision"] != "yes"
        # Inverted by a `not`, the false comparison makes the rule fire, which is no silence.
        if blocking and operator in _NEGATIVE and not node.inverted and field not in required:
            yield FieldError(
                node.path,
                "silent_when_absent",
                f"{operator} is false where {field!r} is absent, so this rule then does not match. Make the "
                "field required, or add a rule for not_exists.",
            )
        if operator in _ORDERING and json_type(test["value"]) not in _NUMBERS:
            value = _a_value(test["value"])
            yield FieldError(
                node.path, "never_holds", f"{operator} compares only numbers, so it never holds with {value}."
            )
        elif field in declared and not _fits(test, declared[field]["type"]):
            code, word = ("always_holds", "always") if operator in _NEGATIVE else ("never_holds", "never")
            where = f" where {field!r} is present" if operator in _NEGATIVE else ""
            yield FieldError(
                node.path,
                code,
                f"{field!r} is declared as {declared[field]['type']}, and no such value can equal, contain or be "
                f"ordered with {_a_value(test['value'])}: the {operator} test {word} holds{where}.",
            )


def _fits(test: Condition, type_: str) -> bool:
    """Whether a value of a declared type can equal the constant of a test, contain it, or be ordered with it."""
    operator = test["operator"]
    if operator in ("exists", "not_exists"):
        return True
    if operator in _ORDERING:
        return type_ in _NUMBERS
    if operator in ("contains", "not_contains"):
        return type_ == "array" or (type_ == "string" and isinstance(test["value"], str))
    values = cast("list[object]", test["value"]) if operator in ("in", "not_in") else [test["value"]]
    return not values or any(is_of_type(value, type_) for value in values)


def _a_value(value: object) -> str:
    """A constant for people, with its type."""
    named = {"string": "the text", "integer": "the number", "number": "the number", "array": "the array"}
    kind = json_type(value)
    return f"{named[kind]} {shown(value)}" if kind in named else "an object" if kind == "object" else shown(value)


# --- Rules and outcomes -----------------------------------------------------------------------------------------------


def _equal_priorities(rules: Sequence[DeclaredRule]) -> Iterator[FieldError]:
    by_priority: dict[float, list[tuple[str, int]]] = defaultdict(list)
    for index, rule in enumerate(rules):
        by_priority[rule.get("priority", 0)].append((rule["rule_id"], index))
    for priority, group in by_priority.items():
        first, *others = sorted(group)
        differing = [(rule_id, at) for rule_id, at in others if rules[at]["outcome"] != rules[first[1]]["outcome"]]
        if differing:
            tried = [rule_id for rule_id, _ in (first, *others)]
            shown = ", ".join(tried[:_SHOWN]) + (f" and {len(tried) - _SHOWN} more" if len(tried) > _SHOWN else "")
            at = differing[0][1]
            yield FieldError(
                f"rules[{at}].priority" if "priority" in rules[at] else f"rules[{at}]",
                "equal_priorities",
                f"{len(tried)} rules of priority {priority:g} have different outcomes. They are tried in the "
                f"order of their ids: {shown}. Give them different priorities.",
            )


_SHOWN: Final = 5


def _contradictory_outcomes(body: RulebookBody) -> Iterator[FieldError]:
    outcomes: list[tuple[str, DeclaredOutcome]] = [
        (f"rules[{index}].outcome", rule["outcome"]) for index, rule in enumerate(body["rules"])
    ]
    for path, outcome in (*outcomes, ("default_outcome", body["default_outcome"])):
        decision, verdict = outcome["decision"], outcome["verdict"]
        meant = _decision_meant_by(verdict)
        if meant not in (None, decision):
            yield FieldError(
                f"{path}.decision",
                "contradictory_outcome",
                f"The decision is {decision}, but the verdict {verdict} reads as {meant}. Callers act on the "
                "decision. Correct the wrong one.",
            )


_READ_AS: Final[Mapping[str, re.Pattern[str]]] = {
    "yes": re.compile(
        r"YES|OK|(ACCEPT|ALLOW|CONFIRM|GRANT|PASS|PROCEED)(ED)?|(APPROVE|AUTHORI[SZ]E)D?|PERMIT(TED)?",
    ),
    "no": re.compile(
        r"NO|(BLOCK|DISALLOW|PROHIBIT|REJECT)(ED)?|(DECLINE|REFUSE)D?|DENY|DENIED|FORBID(DEN)?|STOP(PED)?",
    ),
    "review": re.compile(
        r"REVIEW|DEFER(RED)?|ESCALATED?|HOLD|HELD|MANUAL|NEEDS|PENDING|UNCLEAR|UNDECIDED|UNKNOWN|WAIT(ING)?",
    ),
}
_NEGATIONS: Final = frozenset({"DO", "DONT", "NEVER", "NO", "NON", "NOT", "WITHOUT"})


def _decision_meant_by(verdict: str) -> str | None:
    """The decision that a verdict says in words, such as no for `BLOCK_PAYOUT`; None where it cannot be told.

    Authors choose the verdict freely. It is read by its first word, else by its last: `AUTO_APPROVE`, `MANUAL_REVIEW`.
    """
    words = [word for word in verdict.split("_") if word]
    if len(words) == 2 and words[0] == "NOT" and _read(words[1]) == "yes":
        return "no"
    if len(words) > 1 and not _NEGATIONS.isdisjoint(words):
        return None
    return _read(words[0]) or _read(words[-1])


def _read(word: str) -> str | None:
    return next((decision for decision, known in _READ_AS.items() if known.fullmatch(word)), None)
