"""Reference interpreter of Rulebook v1: the oracle that the product's compiled evaluator is tested against.

It shares no code with the product. It is written to be read beside the rules it states, not to be fast: it
takes no short cuts, keeps nothing between calls, and expects a valid rulebook.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import rfc8785

_ABSENT: Final = object()
_LARGEST_SAFE_INTEGER: Final = 2**53 - 1
_LARGEST_OBSERVED: Final = 1024
_VALUELESS: Final = ("exists", "not_exists")


def evaluate(rulebook: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Decide `facts` by `rulebook` and explain the decision."""
    rulebook = _as_json_numbers(rulebook)
    facts = _as_json_numbers(facts)

    missing = _missing_fields(rulebook["input_schema"], facts)
    invalid = _invalid_fields(rulebook["input_schema"], facts)
    if missing or invalid:
        outcome = {
            "decision": "review",
            "verdict": "NEEDS_INPUT",
            "action": "collect_required_input",
            "reason_code": "INPUT_SCHEMA_FAILED",
        }
        return _result("needs_input", outcome, None, missing, invalid, [])

    rules: list[dict[str, Any]] = []
    for rule in sorted(rulebook["rules"], key=lambda rule: (-_priority(rule), rule["rule_id"])):
        tests: list[dict[str, Any]] = []
        passed = _condition_holds(rule["condition"], "condition", facts, tests)
        rules.append({"rule_id": rule["rule_id"], "priority": _priority(rule), "passed": passed, "tests": tests})
        if passed:
            return _result("ok", rule["outcome"], rule["rule_id"], [], [], rules)
    return _result("ok", rulebook["default_outcome"], None, [], [], rules)


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value."""
    return rfc8785.dumps(_as_json_numbers(value))


def json_type(value: Any) -> str:
    """The JSON type name of a value; a number without a fractional part is an "integer"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def _result(
    status: str,
    outcome: dict[str, Any],
    matched_rule_id: str | None,
    missing: list[str],
    invalid: list[dict[str, Any]],
    rules: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "status": status,
        "decision": outcome["decision"],
        "verdict": outcome["verdict"],
        "action": outcome["action"],
        "reason_code": outcome["reason_code"],
        "matched_rule_id": matched_rule_id,
        "evaluation": {
            "matched": matched_rule_id is not None,
            "missing_fields": missing,
            "invalid_fields": invalid,
            "rules": rules,
        },
    }


def _as_json_numbers(value: Any) -> Any:
    """A copy in which integers beyond 2**53-1 are floats: JSON numbers are doubles, and rfc8785 refuses such
    integers although their doubles (1e20, say) are legal JSON."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST_SAFE_INTEGER:
        return float(value)
    if isinstance(value, list):
        return [_as_json_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_json_numbers(member) for name, member in value.items()}
    return value


def _priority(rule: dict[str, Any]) -> int:
    return int(rule.get("priority", 0))


def _look_up(facts: dict[str, Any], path: str) -> Any:
    """The value at a dotted path, or `_ABSENT`. Only objects are entered, one segment at a time."""
    value: Any = facts
    for segment in path.split("."):
        if not isinstance(value, dict) or segment not in value:
            return _ABSENT
        value = value[segment]
    return value


def _missing_fields(schema: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    return sorted({name for name in schema["required"] if _look_up(facts, name) is _ABSENT})


def _invalid_fields(schema: dict[str, Any], facts: dict[str, Any]) -> list[dict[str, Any]]:
    invalid: list[dict[str, Any]] = []
    for name in sorted(schema["properties"]):
        expected = schema["properties"][name]["type"]
        value = _look_up(facts, name)
        if value is not _ABSENT and not _is_of_type(value, expected):
            invalid.append({"field": name, "expected": expected, "observed_type": json_type(value)})
    return invalid


def _is_of_type(value: Any, expected: str) -> bool:
    if expected == "number":
        return json_type(value) in ("number", "integer")
    return json_type(value) == expected


def _condition_holds(condition: dict[str, Any], path: str, facts: dict[str, Any], tests: list[dict[str, Any]]) -> bool:
    """Whether a condition holds; every test in it is carried out and appended to `tests`."""
    if "all" in condition:
        return all(_children_hold(condition["all"], f"{path}.all", facts, tests))
    if "any" in condition:
        return any(_children_hold(condition["any"], f"{path}.any", facts, tests))
    if "not" in condition:
        return not _condition_holds(condition["not"], f"{path}.not", facts, tests)

    field, operator = condition["field"], condition["operator"]
    observed = _look_up(facts, field)
    passed = _test_passes(operator, observed, condition.get("value"))
    test: dict[str, Any] = {"path": path, "field": field, "operator": operator, "passed": passed}
    if operator not in _VALUELESS:
        test["expected"] = condition["value"]
    if observed is not _ABSENT:
        test["observed"] = _reported(observed)
    tests.append(test)
    return passed


def _children_hold(
    children: list[dict[str, Any]], path: str, facts: dict[str, Any], tests: list[dict[str, Any]]
) -> list[bool]:
    return [_condition_holds(child, f"{path}[{i}]", facts, tests) for i, child in enumerate(children)]


def _reported(observed: Any) -> Any:
    raw = canonical(observed)
    if len(raw) > _LARGEST_OBSERVED:
        return {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
    return observed


def _test_passes(operator: str, observed: Any, value: Any) -> bool:
    if operator == "exists":
        return observed is not _ABSENT
    if operator == "not_exists":
        return observed is _ABSENT
    if observed is _ABSENT:
        return False
    if operator == "eq":
        return _equal(observed, value)
    if operator == "neq":
        return not _equal(observed, value)
    if operator == "gt":
        return _both_numbers(observed, value) and bool(observed > value)
    if operator == "gte":
        return _both_numbers(observed, value) and bool(observed >= value)
    if operator == "lt":
        return _both_numbers(observed, value) and bool(observed < value)
    if operator == "lte":
        return _both_numbers(observed, value) and bool(observed <= value)
    if operator == "in":
        return _has_member(value, observed)
    if operator == "not_in":
        return not _has_member(value, observed)
    if operator == "contains":
        return _contains(observed, value)
    if operator == "not_contains":
        return not _contains(observed, value)
    raise ValueError(f"unknown operator: {operator}")


def _equal(left: Any, right: Any) -> bool:
    # Canonical bytes tell true from 1 and make 1 and 1.0, 0 and -0.0 one; Python's == does neither.
    return canonical(left) == canonical(right)


def _both_numbers(left: Any, right: Any) -> bool:
    return _is_of_type(left, "number") and _is_of_type(right, "number")


def _has_member(array: list[Any], value: Any) -> bool:
    return any(_equal(member, value) for member in array)


def _contains(observed: Any, value: Any) -> bool:
    if isinstance(observed, list):
        return _has_member(observed, value)
    return isinstance(observed, str) and isinstance(value, str) and value in observed
