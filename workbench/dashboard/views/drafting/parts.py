"""The parts of the studio next to the text of a draft. After an act, only the parts that it changes are made again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from gate.drafting.diagnosis import Diagnosis
from gate.drafting.given import fields_of
from gate.drafting.splicing import Text
from gate.encoding.shapes import dotted
from gate.encoding.strict_json import JsonObject
from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.explanation import explain_rules
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.failures import Explainer
from gate.rulebooks.testing.runs import run
from workbench.dashboard.studio.units import Units
from workbench.dashboard.views.decided.rules import outcome, tree
from workbench.dashboard.views.html import render
from workbench.dashboard.views.location import Location
from workbench.engines.wording import counted

_PROPOSALS_SHOWN: Final = 100
_FINDINGS_SHOWN: Final = 60
_DEFAULTS_SHOWN: Final = 3
TONES: Final = {"danger": "bad", "warning": "few", "note": ""}


def state(found: Diagnosis) -> Markup:
    """Whether a text is a valid rulebook, and each error or warning with its line."""
    errors = sum(each.severity == "error" for each in found.problems)
    words = f"Not valid: {counted(errors, 'error')}" if errors else "Valid"
    if not errors and found.problems:
        words = f"Valid, with {counted(len(found.problems), 'warning')}"
    units = Units("" if found.text is None else found.text.text)
    problems = [
        {
            "severity": each.severity,
            "line": each.line,
            "at": units.of(each.start),
            "field": each.field,
            "message": each.message,
        }
        for each in found.problems
    ]
    return render("studio_state.html", {"state": words, "valid": not errors, "problems": problems})


def marks(found: Diagnosis) -> list[dict[str, Any]]:
    """The problems as the editor marks them, by offsets as a browser counts them."""
    units = Units("" if found.text is None else found.text.text)
    return [
        {"start": units.of(each.start), "end": units.of(each.end), "severity": each.severity, "message": each.message}
        for each in found.problems
    ]


def words(found: Diagnosis) -> dict[str, list[str]]:
    """What the editor proposes: the names of the draft's facts, and what its rules use already."""
    body = None if found.authored is None else found.authored.body
    schema = body.get("input_schema") if isinstance(body, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return {"field": list(properties)[:500] if isinstance(properties, dict) else []}


# --- The facts at hand ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FactsForm:
    """The form of the test facts.

    Attributes:
        of: What tells one form from another: the names and types of its lines.
        html: The form.
    """

    of: str
    html: Markup


def given(body: RulebookBody, facts: Mapping[str, object], faults: Mapping[str, str]) -> FactsForm:
    """The test facts as a form."""
    fields = fields_of(body, facts)
    of = json.dumps([(each.name, each.type, each.required) for each in fields])
    return FactsForm(of, render("studio_given.html", {"fields": fields, "faults": faults}))


def explained(rulebook: Rulebook, facts: Mapping[str, object]) -> Markup:
    """The draft's decision from the test facts, and why: every rule with its condition as a tree."""
    found = rulebook.evaluator.explain(dict(facts))
    evaluation = found.evaluation
    rows = [
        {
            "id": each.rule["rule_id"],
            "matched": each.matched,
            "outcome": outcome(each.rule["outcome"]),
            "tree": tree(each.tree),
        }
        for each in explain_rules(rulebook.body, evaluation)
    ]
    of = found.outcome
    context = {
        "decision": of.decision,
        "tone": {"yes": "good", "no": "bad"}.get(of.decision, "few"),
        "reason": of.reason_code,
        "action": of.action,
        "matched": of.matched_rule_id,
        "missing": evaluation["missing_fields"],
        "invalid": evaluation["invalid_fields"],
        "rules": rows,
        "left": len(rulebook.body["rules"]) - len(rows),
        "facts": json.dumps(facts, ensure_ascii=False),
    }
    return render("studio_explained.html", context)


# --- What was found ---------------------------------------------------------------------------------------------------


def findings(found: Mapping[str, Any], text: Text | None) -> Markup:
    """What the exact analysis found: an analysis as JSON."""
    places = {} if text is None else {dotted(text.value, steps): span for steps, span in text.spans.items()}
    units = Units("" if text is None else text.text)
    rows, defaults = [], 0
    for each in found["findings"]:
        if each["kind"] == "falls_to_default":
            defaults += 1
            if defaults > _DEFAULTS_SHOWN:
                continue
        span = places.get(each["path"])
        rows.append(
            {
                "severity": each["severity"],
                "tone": TONES[each["severity"]],
                "message": each["message"],
                "line": None if span is None or text is None else text.text.count("\n", 0, span.begin) + 1,
                "at": None if span is None else units.of(span.begin),
                "witness": None if each["witness"] is None else json.dumps(each["witness"], ensure_ascii=False),
            }
        )
    context = {
        "findings": rows[:_FINDINGS_SHOWN],
        "more": len(rows) - len(rows[:_FINDINGS_SHOWN]),
        "defaults": max(0, defaults - _DEFAULTS_SHOWN),
        "undecided": found["undecided"],
        "decided": found["decided"],
        "summary": _summary([each["severity"] for each in found["findings"]]),
    }
    return render("studio_findings.html", context)


def _summary(severities: Sequence[str]) -> str:
    counts = {severity: severities.count(severity) for severity in ("danger", "warning", "note")}
    told = [counted(count, severity) for severity, count in counts.items() if count]
    return ", ".join(told) if told else "No dangers, warnings, or notes"


def held(rulebook: Rulebook, cases: Sequence[Case], scope: str, draft_id: str) -> Markup:
    """How many cases of a draft hold, and those that do not."""
    results = run(rulebook, cases)
    failing = [result for result in results if not result.held]
    explainer = Explainer(rulebook)
    rows = [
        {"name": result.case.name, "why": [reason.text for reason in explainer.reasons(result)][:2]}
        for result in failing[:5]
    ]
    context = {
        "count": len(results),
        "failing": len(failing),
        "rows": rows,
        "more": len(failing) - len(rows),
        "url": Location("cases", scope=scope, id=draft_id).url,
    }
    return render("studio_held.html", context)


# --- What takes longer ------------------------------------------------------------------------------------------------


def working(words: str, work: str) -> Markup:
    """That something is being done, and how to end it."""
    return render("studio_working.html", {"words": words, "work": work})


def cancelled(part: str, draft_id: str) -> Markup:
    """That something of a draft was ended before it was done."""
    act = {"findings": "examine", "measured": "measure", "proposed": "boundaries"}.get(part)
    return render("studio_cancelled.html", {"act": act, "draft": draft_id})


def fault(message: str) -> Markup:
    """Why something could not be done."""
    return render("fault.html", {"message": message})


def measuring(progress: Mapping[str, Any]) -> Markup:
    """How far the measuring of cases has come."""
    words = {"coverage": "Measuring the coverage…", "mutation": "Counting the changes that the cases detect…"}
    return working(words[progress["doing"]], "measured")


def measured(found: Mapping[str, Any], cases: int) -> Markup:
    """How well cases test a draft: coverage, mutation score, and the cases that are missing."""
    coverage, mutation = found["coverage"], found["mutation"]
    missing = found["missing"]
    context = {
        "cases": cases,
        "coverage": coverage,
        "mutation": mutation,
        "count": len(missing),
        "missing": [_proposal(case) for case in missing[:_PROPOSALS_SHOWN]],
        "all": json.dumps(missing, ensure_ascii=False),
    }
    return render("studio_measured.html", context)


def proposed(cases: Sequence[Mapping[str, Any]], draft_id: str) -> Markup:
    """Cases that are proposed for a draft, each to be added or left."""
    rows = [_proposal(case) for case in cases[:200]]
    context = {"cases": rows, "more": max(0, len(cases) - 200), "draft_id": draft_id}
    return render("studio_proposed.html", context)


def _proposal(case: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": case["name"],
        "facts": json.dumps(case["facts"], ensure_ascii=False),
        "verdict": case["expect"].get("verdict"),
        "reason": case["expect"].get("reason_code"),
        "json": json.dumps(case, ensure_ascii=False),
    }


def body_of(facts: JsonObject) -> str:
    """Facts as they are written in a form."""
    return json.dumps(facts, ensure_ascii=False, indent=2)
