"""The rules of a draft as a table, in which they are changed in place.

A draft of a hundred rules makes a large table, and most of what an author types changes one row or none. So a page
keeps the content of its rows, and only changed rows are made and sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from markupsafe import Markup

from gate.drafting.editing import PRESENCE, typed_value
from gate.drafting.given import declared_type
from gate.rulebooks.documents import Condition, DeclaredOutcome, RulebookBody
from workbench.dashboard.views.html import render

OPERATORS: Final = (
    "exists", "not_exists", "eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "not_contains",
)  # fmt: skip
"""The operators of tests."""

Row: TypeAlias = Mapping[str, Any]
"""What a row shows: a rule, or what is decided where none matches."""


def rows_of(body: RulebookBody, *, writes: bool) -> list[Row]:
    """The rows of a rulebook, in the order in which its rules are tried; the last one is for where none matches."""
    order = sorted(
        range(len(body["rules"])), key=lambda at: (-body["rules"][at].get("priority", 0), body["rules"][at]["rule_id"])
    )
    only = len(order) == 1
    rules: list[Row] = [
        {
            "path": f"rules[{at}]",
            "id": body["rules"][at]["rule_id"],
            "priority": body["rules"][at].get("priority", 0),
            "condition": _condition(body, body["rules"][at]["condition"], f"rules[{at}].condition"),
            "outcome": _outcome(body["rules"][at]["outcome"], f"rules[{at}].outcome"),
            "only": only,
            "writes": writes,
        }
        for at in order
    ]
    default = {"id": None, "outcome": _outcome(body["default_outcome"], "default_outcome"), "writes": writes}
    return [*rules, default]


def whole(rows: Sequence[Row] | None, *, writes: bool) -> Markup:
    """The table.

    Args:
        rows: Its rows; None where the text is no valid rulebook.
        writes: Whether the user may change it.
    """
    made = None if rows is None else [_made(row) for row in rows]
    return render("studio_rules.html", {"rows": made, "writes": writes})


def changes(before: Sequence[Row], after: Sequence[Row]) -> list[int | str]:
    """The table as a page that has another one takes it: each row as HTML, or as the place where the page has it."""
    places = list(enumerate(before))
    found: list[int | str] = []
    for number, row in enumerate(after):
        if number < len(before) and before[number] == row:
            found.append(number)
        else:
            had = next((place for place, each in places if each == row), None)
            found.append(str(_made(row)) if had is None else had)
    return found


def fields_of_table(body: RulebookBody) -> Markup:
    """The declared facts, which the table proposes as fields of its tests."""
    return Markup("").join(Markup("<option>{}</option>").format(name) for name in body["input_schema"]["properties"])


def _made(row: Row) -> Markup:
    return render("studio_rule.html", {"row": row, "operators": OPERATORS, "decisions": ("yes", "no", "review")})


def _outcome(of: DeclaredOutcome, path: str) -> list[tuple[str, str, str]]:
    return [(name, of[name], f"{path}.{name}") for name in ("decision", "verdict", "action", "reason_code")]


def _condition(body: RulebookBody, of: Condition, path: str) -> dict[str, Any]:
    if "not" in of:
        return {
            "path": path,
            "joined": "not",
            "grows": False,
            "children": [_condition(body, of["not"], f"{path}.not")],
            "sheds": False,
        }
    if "all" in of:
        return _joined(body, of["all"], path, "all")
    if "any" in of:
        return _joined(body, of["any"], path, "any")
    shown = None
    if of["operator"] not in PRESENCE:
        shown = typed_value(of["value"], of["operator"], declared_type(body, of["field"]))
    return {"path": path, "joined": None, "field": of["field"], "operator": of["operator"], "value": shown}


def _joined(body: RulebookBody, children: Sequence[Condition], path: str, by: str) -> dict[str, Any]:
    return {
        "path": path,
        "joined": f"{by} of",
        "grows": True,
        "children": [_condition(body, child, f"{path}.{by}[{at}]") for at, child in enumerate(children)],
        # The last one of a list cannot go: the condition would be none.
        "sheds": len(children) > 1,
    }
