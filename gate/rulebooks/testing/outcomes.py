"""Outcomes by the names that cases and records have for their parts: `verdict` is the rulebook's `decision`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from gate.rulebooks.documents import DeclaredOutcome, RulebookBody
from gate.rulebooks.evaluation import NEEDS_INPUT, Outcome

OUTCOME_MEMBERS: Final = ("verdict", "application_verdict", "action", "reason_code", "matched_rule_id")
"""The members of an answer that an outcome fixes."""

NamedOutcome: TypeAlias = Mapping[str, str | None]
"""An outcome, with `OUTCOME_MEMBERS`."""


def named(outcome: Outcome) -> NamedOutcome:
    """An outcome that a rulebook gave."""
    parts = (outcome.decision, outcome.verdict, outcome.action, outcome.reason_code, outcome.matched_rule_id)
    return dict(zip(OUTCOME_MEMBERS, parts, strict=True))


def named_declared(outcome: DeclaredOutcome, rule_id: str | None) -> NamedOutcome:
    """The outcome of a rule, or that of no rule where there is no `rule_id`."""
    return named(
        Outcome("ok", outcome["decision"], outcome["verdict"], outcome["action"], outcome["reason_code"], rule_id)
    )


def possible_outcomes(body: RulebookBody) -> list[NamedOutcome]:
    """The outcomes of a rulebook: those of its rules, the default one, and that of missing or invalid input."""
    schema = body["input_schema"]
    return [
        *(named_declared(rule["outcome"], rule["rule_id"]) for rule in body["rules"]),
        named_declared(body["default_outcome"], None),
        *([named(NEEDS_INPUT)] if schema["required"] or schema["properties"] else []),
    ]
