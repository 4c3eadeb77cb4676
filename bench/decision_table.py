"""A rulebook as a decision table in the JSON Decision Model, for zen-engine.

Only rulebooks whose conditions are an ordering test, or `all` of such tests on different fields, have such a table.
The table leaves out the check of required and declared fields that the evaluator makes, which is to its advantage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

_COMPARISONS: Final = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
OUTPUTS: Final = ("decision", "verdict", "action", "reason_code", "matched_rule_id")


def decision_graph(body: Mapping[str, Any]) -> dict[str, Any]:
    """The graph input -> decision table -> output, with the rulebook's rules in its order; the first match counts.

    Raises:
        KeyError: A test's operator is not `lt`, `lte`, `gt` or `gte`.
        ValueError: A rule tests a field twice.
    """
    fields = sorted(body["input_schema"]["properties"])
    rules = sorted(body["rules"], key=lambda rule: (-rule.get("priority", 0), rule["rule_id"]))
    rows = [_row(fields, rule["rule_id"], _tests(rule["condition"]), rule["outcome"]) for rule in rules]
    content = {
        "hitPolicy": "first",
        "inputs": [{"id": field, "name": field, "field": field} for field in fields],
        "outputs": [{"id": name, "name": name, "field": name} for name in OUTPUTS],
        "rules": [*rows, _row(fields, None, [], body["default_outcome"])],
    }
    return {
        "nodes": [
            _node("input", "inputNode"),
            _node("rules", "decisionTableNode", content),
            _node("output", "outputNode"),
        ],
        "edges": [_edge("input", "rules"), _edge("rules", "output")],
    }


def _tests(condition: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    tests: Sequence[Mapping[str, Any]] = condition.get("all", [condition])
    return tests


def _row(
    fields: Sequence[str], rule_id: str | None, tests: Sequence[Mapping[str, Any]], outcome: Mapping[str, Any]
) -> dict[str, str]:
    cells = {test["field"]: f"{_COMPARISONS[test['operator']]} {test['value']}" for test in tests}
    if len(cells) != len(tests):
        raise ValueError(f"The rule {rule_id} tests a field twice; one cell holds one test.")
    given = {**outcome, "matched_rule_id": rule_id}
    inputs = {field: cells.get(field, "") for field in fields}
    return {"_id": rule_id or "default", **inputs, **{name: _literal(given[name]) for name in OUTPUTS}}


def _literal(value: Any) -> str:
    return orjson.dumps(value).decode()


def _node(name: str, kind: str, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    node: dict[str, Any] = {"id": name, "type": kind, "name": name, "position": {"x": 0, "y": 0}}
    return node if content is None else {**node, "content": content}


def _edge(source: str, target: str) -> dict[str, str]:
    return {"id": f"{source}-{target}", "type": "edge", "sourceId": source, "targetId": target}
