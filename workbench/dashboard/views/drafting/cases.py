"""The cases of a draft: each with its run, and where to add another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from gate.ids import parse_timestamp
from gate.ledger.drafts.cases import KeptCase
from gate.ledger.drafts.drafts import Draft
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.failures import Explainer
from gate.rulebooks.testing.runs import CaseResult, run
from workbench.dashboard.views.drafting.listing import EXAMPLE_FACTS
from workbench.dashboard.views.drafting.parts import body_of
from workbench.dashboard.views.html import ago, render
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.wording import counted

NONE: Final = "none"
"""What the form has for a list that has to be empty, and for no rule."""

_EXPECTED: Final = (
    ("reason_code", "Reason"),
    ("action", "Action"),
    ("application_verdict", "Verdict as the rulebook writes it, such as APPROVE"),
    ("missing_fields", "Missing facts: a, b; or none"),
    ("invalid_fields", "Invalid facts: a, b; or none"),
)


def cases(
    location: Location,
    draft: Draft,
    rulebook: Rulebook | None,
    kept: Sequence[KeptCase],
    *,
    may_draft: bool,
    now: datetime,
) -> Page:
    """The cases of a draft.

    Args:
        location: Where it is.
        draft: The draft.
        rulebook: Its rulebook; None where it is not valid.
        kept: Its cases.
        may_draft: Whether the user may change them.
        now: The current moment.
    """
    results = () if rulebook is None else run(rulebook, [each.case for each in kept])
    explainer = None if rulebook is None else Explainer(rulebook)
    rows = [_row(each, results[at] if results else None, explainer, now) for at, each in enumerate(kept)]
    failing = sum(not result.held for result in results)
    context = {
        "draft": draft,
        "url": Location("draft", scope=location.scope, id=draft.draft_id).url,
        "valid": rulebook is not None,
        "writes": may_draft and draft.closed_at is None,
        "rows": rows,
        "facts": body_of(EXAMPLE_FACTS if rulebook is None else _facts_of(rulebook)),
        "expected": _EXPECTED,
        "rules": [] if rulebook is None else [rule["rule_id"] for rule in rulebook.body["rules"]],
    }
    title = f"{draft.name} has no cases yet"
    if rows:
        holding = "none ran" if rulebook is None else _failing(failing) if failing else _holding(len(rows))
        title = f"{counted(len(rows), 'case')} of {draft.name}: {holding}"
    return Page(location, title, render("cases.html", context))


def _holding(count: int) -> str:
    return "it holds" if count == 1 else "all hold"


def _failing(count: int) -> str:
    return "1 does not hold" if count == 1 else f"{count:,} do not hold"


def _row(kept: KeptCase, result: CaseResult | None, explainer: Explainer | None, now: datetime) -> dict[str, Any]:
    case = kept.case
    return {
        "name": case.name,
        "facts": json.dumps(case.facts, ensure_ascii=False),
        "pretty": body_of(case.facts),
        "expect": case.expect,
        "typed": {name: _typed(case.expect.get(name)) for name, _ in _EXPECTED},
        "expected": ", ".join(f"{name} {json.dumps(value)}" for name, value in case.expect.items()),
        "held": None if result is None else result.held,
        "why": [reason.text for reason in explainer.reasons(result)]
        if result is not None and explainer is not None and not result.held
        else [],
        "by": kept.saved_by,
        "ago": ago(parse_timestamp(kept.saved_at), now),
    }


def _typed(expected: object) -> str:
    """What is expected of a member as the form has it: a list as `a, b`, and an empty one as `none`."""
    if isinstance(expected, list):
        return ", ".join(map(str, expected)) or NONE
    return "" if expected is None else str(expected)


def _facts_of(rulebook: Rulebook) -> Any:
    """Facts that name what a rulebook declares, for an author to fill in."""
    plain = {"number": 0, "integer": 0, "string": "", "boolean": False, "array": [], "object": {}}
    facts: dict[str, Any] = {}
    for name, declared in rulebook.body["input_schema"]["properties"].items():
        if "." not in name:
            facts[name] = plain.get(declared["type"])
    return facts
