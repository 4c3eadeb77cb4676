"""The result of a dry run as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from api.cli.output import counted
from gate.migration.drift import Answer, CorpusResult, FixtureDrift
from gate.rulebooks.explanation import shown

MOST_LISTED: Final = 100
"""How many fixtures, and how many faults, are listed for people; `--json` lists all."""


# What an outcome has besides its verdict and its rule.
_OTHERS: Final = ("application_verdict", "action", "reason_code", "missing_fields", "invalid_fields")


def drift_line(drift: FixtureDrift) -> str:
    """A fixture that drifts: its fields, and its outcomes before and now."""
    line = f"{drift.fixture}: {', '.join(drift.fields)}; {_between(drift)}"
    if drift.unexpected == drift.fields:
        return f"{line} (unexpected)"
    return f"{line} (unexpected: {', '.join(drift.unexpected)})" if drift.unexpected else f"{line} (expected)"


def _between(drift: FixtureDrift) -> str:
    before = _decided(drift.before)
    if drift.now is None:
        return f"{before}, now refused with {drift.refusal}"
    now = _decided(drift.now)
    if now != before:
        return f"{before}, now {now}"
    others = [f"{name} {shown(drift.now[name])}" for name in _OTHERS if drift.now[name] != drift.before[name]]
    return f"{before}, now with {', '.join(others)}" if others else f"{before}, unchanged"


def _decided(answer: Answer) -> str:
    """A verdict, and what it came from: `yes by the rule approve_small`."""
    if answer["missing_fields"] or answer["invalid_fields"]:
        by = "missing or invalid input"
    elif answer["matched_rule_id"] is None:
        by = "the default outcome"
    else:
        by = f"the rule {answer['matched_rule_id']}"
    return f"{answer['verdict']} by {by}"


def summary(result: CorpusResult) -> str:
    """The result of the gate in a sentence."""
    if result.ok:
        return f"gate passed: nothing drifts, {_scale(result)}"
    if result.gate_passed:
        return f"gate passed: {_drifting(len(result.drift))} exactly as expected, {_scale(result)}"
    if result.as_expected:
        return f"NOT PASSED: {_drifting(len(result.drift))} exactly as expected, but the drift is not approved"
    if result.unexpected:
        return f"NOT PASSED: {_drifting(len(result.unexpected))} unexpectedly, {_scale(result)}"
    return f"NOT PASSED: the drift differs from expected_drift, {_scale(result)}"


def _drifting(count: int) -> str:
    return f"{counted(count, 'fixture')} drift{'s' if count == 1 else ''}"


def _scale(result: CorpusResult) -> str:
    return f"{result.concerned:,} of {counted(result.fixtures, 'fixture')} of {result.label} concerned"


def advice(result: CorpusResult, *, allow_drift: bool) -> Iterator[str]:
    """The next steps."""
    if not result.concerned:
        yield (
            "No fixture has a rulebook or an adapter of the candidate, so this shows nothing about it. Give your own "
            "corpus in the manifest, or with --corpus."
        )
    if result.unexpected:
        yield (
            "Correct the candidate. If the drift is intended, add the fixtures and fields to expected_drift, under the "
            "policy requires_approval."
        )
    elif result.errors and not result.gate_passed:
        yield "Correct the candidate or the manifest, and check again."
    elif result.as_expected and not result.gate_passed:
        yield (
            "Have the drift approved. Then set status and approval.status to approved, and approval.approved_by and "
            "approval.approved_at to the approver and the time."
        )
        if allow_drift:
            yield "With --allow-drift, drift that is exactly as expected does not fail the command."
        else:
            yield "With --allow-drift, the command succeeds until then."
