"""The reports about a decision: its execution receipts, outcomes, and CRM syncs, in the order of the chain."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gate.records.advisory import is_advisory
from gate.records.documents import Record
from gate.records.reports.receipts import ACTION_TAKEN_MISMATCH, BINDING_MISMATCH, EXECUTIONS, KINDS, NOT_APPROVED, Kind
from workbench.dashboard.store.ledger import Reported, Story
from workbench.dashboard.views.decided.checks import stamp, value
from workbench.dashboard.views.reviews.standing import broken_by, grant_position
from workbench.engines.wording import counted, joined, phrase

_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NOT_APPROVED: "The verdict of the decision is not yes.",
        BINDING_MISMATCH: "The receipt has a different target than the decision.",
        ACTION_TAKEN_MISMATCH: "The receipt has a different action than the decision.",
    }
)
_FLAGS_OF_REVIEW: Final[Mapping[str, str]] = MappingProxyType(
    {NOT_APPROVED: "The verdict of the decision is review, and its owner did not grant the action before the receipt."}
)
_FLAGS_OF_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {NOT_APPROVED: "The decision is advisory and approves nothing."}
)
# What every report repeats of its decision, and what stands elsewhere in its part of the page.
_REPEATED: Final = frozenset(
    {
        *("decision_protocol_version", "decision_id", "decision_record_hash", "decision_receipt_hash", "flags"),
        *("decision_verdict", "decision_action", "policy_id", "policy_version", "policy_bundle_hash", "reported_at"),
        *("decision_found", "audit_chain", "action_binding", "observed_metrics"),
        *(name for kind in KINDS for name in (kind.version_member, kind.id_member, kind.status_member)),
    }
)
CALLED: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "execution": ("Execution receipt", "execution receipt", "execution receipts"),
        "outcome": ("Outcome", "outcome", "outcomes"),
        "crm-sync": ("CRM sync", "CRM sync", "CRM syncs"),
    }
)
"""What a report of each kind is called: as a title, alone, and in the plural."""


def told_of(story: Story) -> tuple[Reported, ...]:
    """The reports of each kind."""
    return story.executions, story.outcomes, story.crm_syncs


def reports(story: Story) -> list[dict[str, Any]]:
    """All that was reported, in the order of the chain.

    Args:
        story: The decision.
    """
    grant, against, flags = grant_position(story.review), broken_by(story), _flags(story.record)
    every: list[dict[str, Any]] = []
    for kind, told in zip(KINDS, told_of(story), strict=True):
        reported: list[Mapping[str, Any]] = list(told.reports)
        every += [_report(kind, of, flags, None if of[kind.id_member] in against else grant) for of in reported]
    return sorted(every, key=lambda report: report["position"])


def _flags(record: Record) -> Mapping[str, str]:
    if is_advisory(record):
        return {**_FLAGS, **_FLAGS_OF_ADVICE}
    return {**_FLAGS, **(_FLAGS_OF_REVIEW if record["verdict"] == "review" else {})}


def _report(kind: Kind, report: Mapping[str, Any], flags: Mapping[str, str], grant: int | None) -> dict[str, Any]:
    metrics = report.get("observed_metrics") or {}
    return {
        "kind": CALLED[kind.name][0],
        "status": phrase(str(report[kind.status_member])),
        "at": stamp(report["reported_at"]),
        "id": report[kind.id_member],
        "position": report["audit_chain"]["chain_position"],
        "flags": [(flag, flags.get(flag, phrase(flag))) for flag in report.get("flags", ())],
        "granted": _granted(kind, report, grant),
        "metrics": list(metrics.items()),
        "members": [
            (phrase(name), stamp(told) if name.endswith("_at") else value(told))
            for name, told in report.items()
            if name not in _REPEATED and told is not None and not name.endswith("_input_hash")
        ],
    }


def _granted(kind: Kind, report: Mapping[str, Any], grant: int | None) -> int | None:
    """The position of the grant that an execution receipt comes behind; None where it is not in order by one."""
    in_order = kind is EXECUTIONS and grant is not None and grant < report["audit_chain"]["chain_position"]
    return grant if in_order and NOT_APPROVED not in report.get("flags", ()) else None


def reports_title(story: Story) -> str:
    """How much was reported, and how much of it contradicts the decision."""
    numbers = [
        f"{len(told.reports)}{'+' if told.more else ''} {one if len(told.reports) == 1 else many}"
        for told in told_of(story)
        for _, one, many in [CALLED[told.kind]]
        if told.reports
    ]
    if not numbers:
        unneeded = story.record["verdict"] == "no" or is_advisory(story.record)
        return f"Nothing was reported about it{', and nothing has to be' if unneeded else ' yet'}"
    flagged = sum(bool(report.get("flags")) for report in story.executions.reports)
    against = f"; {counted(flagged, 'receipt')} contradict{'s' if flagged == 1 else ''} the decision" if flagged else ""
    return (
        f"{joined(numbers)} {'was' if numbers[0].startswith('1 ') and len(numbers) == 1 else 'were'} reported{against}"
    )
