"""What lies in the lake: its tables, each column's name, type and meaning. Nothing else defines them.

Times are UTC with milliseconds, hashes lower-case hex SHA-256, positions those of the scope's chain. Where a caller may
send any JSON value, the column holds its text. What a caller left out is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import polars as pl

from gate.policy.confidence import Counts
from gate.records.reports.resolution import ANSWERS

DataType: TypeAlias = pl.DataType | type[pl.DataType]

TIME: Final = pl.Datetime("ms", "UTC")
VERDICT: Final = pl.Enum(["yes", "no", "review"])
OUTCOME_STATUS: Final = pl.Enum(Counts._fields)
EXECUTION_STATUS: Final = pl.Enum(["executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted"])
RESOLUTION: Final = pl.Enum(ANSWERS)
ADVISORY: Final = "advisory"
"""The `rule` of every advisory decision: evidence of a rulebook's decision never reads so."""

IMPORTED: Final = "imported"
"""The `rule` of every imported case: nobody knows what decided it, and its verdict may be null."""

NO_VERDICT: Final = "none"
"""What reports call the verdict of imported cases that have none."""

IS_ADVISORY: Final = pl.col("rule").eq_missing(ADVISORY)
"""Whether a row of decisions or cases is of an advisory one."""

OBSERVED: Final = pl.List(pl.Struct({"name": pl.String, "value": pl.Float64}))


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        dtype: Its Polars type.
        meaning: What it holds, for people.
        personal: Whether an operator may mark it as personal, so that the lake leaves it empty.
    """

    dtype: DataType
    meaning: str
    personal: bool = False


Table: TypeAlias = Mapping[str, Column]

_OF_ENTRY: Final[Table] = {
    "scope_id": Column(pl.String, "The scope whose chain holds the entry."),
    "position": Column(pl.Int64, "The entry's position in the chain, from 1."),
}
_OF_CHAIN: Final[Table] = {
    "record_hash": Column(pl.String, "The hash of the record or report."),
    "leaf_hash": Column(pl.String, "The leaf that stands for the entry in the chain."),
    "merkle_root": Column(pl.String, "The chain's rolling root at this position."),
    "link_hash": Column(pl.String, "The hash of the entry's link."),
}
_OF_POLICY: Final[Table] = {
    "policy_id": Column(
        pl.String, "The policy that decided: the rulebook's id; `advisory.<mode>` for an advisory decision."
    ),
    "policy_version": Column(pl.String, "Its version."),
}
_ABOUT: Final[Table] = {
    "decision_id": Column(pl.String, "The decision that it is about."),
    "decision_position": Column(pl.Int64, "The chain position of that decision."),
}
_TARGET: Final[Table] = {
    "action_taken": Column(pl.String, "The action that was performed, by its label.", personal=True),
    "target_system": Column(pl.String, "The system that was changed.", personal=True),
    "target_object_id": Column(pl.String, "The object that was changed.", personal=True),
    "mutation": Column(pl.String, "The change, in the caller's terms.", personal=True),
    "external_ref": Column(pl.String, "The caller's reference to the transaction.", personal=True),
}
_EVIDENCE: Final[Table] = {
    "evidence_refs": Column(pl.List(pl.String), "References to evidence that is kept elsewhere.", personal=True),
    "executed_at": Column(TIME, "When the action was performed, as the caller told it."),
    "reported_at": Column(TIME, "When it was reported."),
}

_DECIDED: Final[Table] = {
    "decision_id": Column(pl.String, "The decision's id."),
    "created_at": Column(TIME, "When it was decided."),
    "occurred_at": Column(
        TIME, "When what it is about happened, as its request told it; null where it was not sent, or was erased."
    ),
    **_OF_POLICY,
    "policy_hash": Column(
        pl.String, "The hash of the rulebook that decided, or of the prompt template of an advisory decision."
    ),
    "verdict": Column(VERDICT, "yes, no or review."),
    "application_verdict": Column(pl.String, "The rulebook's own word for it."),
    "action": Column(pl.String, "The action label."),
    "reason_code": Column(pl.String, "The reason code."),
    "rule": Column(
        pl.String,
        "What decided, as the record's evidence says: rule:<id>, rule:default, schema:failed; `advisory` for an "
        "advisory decision, which no rulebook made.",
    ),
}

DECISIONS: Final[Table] = {
    **_OF_ENTRY,
    **_DECIDED,
    "target_system": Column(pl.String, "action_binding.system.", personal=True),
    "target_object_id": Column(pl.String, "action_binding.resource.", personal=True),
    "proposed_action": Column(pl.String, "action_binding.proposed_action.", personal=True),
    "mutation": Column(pl.String, "action_binding.mutation.", personal=True),
    "actor": Column(pl.String, "action_binding.actor, as JSON.", personal=True),
    "subject": Column(pl.String, "action_binding.subject, as JSON.", personal=True),
    "amount": Column(pl.Float64, "action_binding.amount, where it is a number.", personal=True),
    "currency": Column(pl.String, "action_binding.currency, where it is text.", personal=True),
    "request_id": Column(pl.String, "The handle of the request in the service's log."),
    "idempotency_key": Column(pl.String, "The caller's retry handle.", personal=True),
    "input_hash": Column(pl.String, "The hash of the request."),
    "output_hash": Column(pl.String, "The hash of the answer."),
    "adapter": Column(pl.String, "The adapter that made its facts, as <adapter_id>@<version>; null without one."),
    "adapter_manifest_hash": Column(pl.String, "The hash of the adapter's manifest."),
    "adapter_input_hash": Column(pl.String, "The hash of what the adapter was given."),
    "confidence_score": Column(pl.Float64, "decision_confidence.score of the record."),
    "confidence_level": Column(pl.String, "decision_confidence.level of the record."),
    "receipt_hash": Column(pl.String, "The record's receipt_hash."),
    **_OF_CHAIN,
}

EXECUTIONS: Final[Table] = {
    **_OF_ENTRY,
    "execution_receipt_id": Column(pl.String, "The receipt's id."),
    **_ABOUT,
    **_OF_POLICY,
    "execution_status": Column(EXECUTION_STATUS, "What became of the action."),
    "execution_result": Column(pl.String, "The result in the caller's words.", personal=True),
    **_TARGET,
    "execution_id": Column(pl.String, "The caller's own id of the execution.", personal=True),
    "executor": Column(pl.String, "Who or what executed, as JSON.", personal=True),
    "action_binding_match": Column(pl.Boolean, "Whether what was executed is what was decided."),
    "not_approved": Column(
        pl.Boolean,
        "Flag DECISION_NOT_APPROVED: the verdict was not yes and no owner had granted the action, or the decision was "
        "advisory.",
    ),
    "binding_mismatch": Column(pl.Boolean, "Flag ACTION_BINDING_MISMATCH: the receipt names another target."),
    "action_mismatch": Column(
        pl.Boolean,
        "Flag ACTION_TAKEN_MISMATCH: the receipt names another action than the decision's. It is true of receipts of "
        "earlier releases too, which do not have the flag.",
    ),
    "other_action": Column(
        pl.Boolean,
        "As action_mismatch, but false with not_approved where the receipt names the proposed action, or none was "
        "proposed: then the hold was breached, and by no other action.",
    ),
    "state_mismatch": Column(
        pl.Boolean,
        "Whether the state hashes contradict the status: executed or reverted and nothing changed, or else and "
        "something did; null where one of them is missing, or it is queued.",
    ),
    "state_before_hash": Column(pl.String, "The hash of the state before.", personal=True),
    "state_after_hash": Column(pl.String, "The hash of the state after.", personal=True),
    "state_before_ref": Column(pl.String, "Where the state before is kept.", personal=True),
    "state_after_ref": Column(pl.String, "Where the state after is kept.", personal=True),
    **_EVIDENCE,
    **_OF_CHAIN,
}

OUTCOMES: Final[Table] = {
    **_OF_ENTRY,
    "outcome_id": Column(pl.String, "The outcome's id."),
    **_ABOUT,
    **_OF_POLICY,
    "outcome_status": Column(OUTCOME_STATUS, "The result; succeeded, partial, failed and reverted are terminal."),
    "action_executed": Column(pl.Boolean, "Whether the action was executed at all."),
    **_TARGET,
    "observed_metrics": Column(OBSERVED, "What was measured: names and numbers.", personal=True),
    **_EVIDENCE,
    "occurred_at": Column(
        TIME, "When it came about, as the caller told it; null where it was not sent, or was erased."
    ),
    **_OF_CHAIN,
}

CRM_SYNCS: Final[Table] = {
    **_OF_ENTRY,
    "sync_id": Column(pl.String, "The sync record's id."),
    **_ABOUT,
    **_OF_POLICY,
    "sync_status": Column(pl.Enum(["written", "pending", "failed", "skipped"]), "What became of the sync."),
    "sync_direction": Column(pl.Enum(["writeback", "inbound"]), "Into the CRM, or from it."),
    "crm_provider": Column(pl.String, "Which CRM."),
    "crm_object_type": Column(pl.String, "What kind of object it is there."),
    "crm_object_id": Column(pl.String, "Which object.", personal=True),
    "crm_record_url": Column(pl.String, "Where the object is shown.", personal=True),
    "mapped_fields": Column(pl.String, "The mapped fields and their values, as JSON.", personal=True),
    "reported_at": Column(TIME, "When it was reported."),
    **_OF_CHAIN,
}

_OF_ACT: Final[Table] = {
    "actor": Column(pl.String, "Who did it, as JSON: {type, id}."),
    "note": Column(pl.String, "What they said about it; null where nothing.", personal=True),
    "recorded_at": Column(TIME, "When."),
    **_OF_CHAIN,
}

RESOLUTIONS: Final[Table] = {
    **_OF_ENTRY,
    "resolution_entry_id": Column(pl.String, "The resolution's id."),
    **_ABOUT,
    **_OF_POLICY,
    "resolution": Column(RESOLUTION, "The answer of the owner: granted or refused; expired where none came in time."),
    "expires_at": Column(
        TIME, "Until when a grant opens the action, or when the time limit was over; null for a refusal."
    ),
    "resolved_by": Column(pl.String, "Who resolved it, as the caller told it.", personal=True),
    "evidence_refs": Column(pl.List(pl.String), "References to evidence that is kept elsewhere.", personal=True),
    "idempotency_key": Column(pl.String, "The caller's retry handle.", personal=True),
    "key_id": Column(pl.String, "The key that signed it; null where receipt signing was off."),
    **_OF_ACT,
}

ERASURES: Final[Table] = {
    **_OF_ENTRY,
    "erasure_id": Column(pl.String, "The erasure's id."),
    **_ABOUT,
    **_OF_POLICY,
    "reason": Column(pl.String, "Why, in the operator's words.", personal=True),
    "erased": Column(pl.List(pl.String), "What was erased of the decision."),
    "erased_at": Column(TIME, "When."),
    **_OF_CHAIN,
}

MIGRATIONS: Final[Table] = {
    **_OF_ENTRY,
    "migration_entry_id": Column(pl.String, "The entry's own id."),
    "migration_id": Column(pl.String, "The migration that it is about."),
    "event": Column(pl.Enum(["proposed", "approved", "rejected", "superseded"]), "What became of it."),
    "manifest_hash": Column(pl.String, "The hash of its manifest."),
    "evidence_hash": Column(pl.String, "The hash of the evidence that the event rests on."),
    "candidates": Column(
        pl.List(pl.Struct({"rulebook_id": pl.String, "version": pl.String, "hash": pl.String})),
        "The versions that it proposes.",
    ),
    **_OF_ACT,
}

ROUTES: Final[Table] = {
    **_OF_ENTRY,
    "route_entry_id": Column(pl.String, "The entry's own id."),
    "policy_id": Column(pl.String, "The rulebook id that leads elsewhere from this position on."),
    "policy_version": Column(pl.String, "The version that it leads to."),
    "policy_hash": Column(pl.String, "The hash of that version."),
    "from_version": Column(pl.String, "The version that it led to before; null for the first route."),
    "from_hash": Column(pl.String, "The hash of that version."),
    "cause": Column(pl.Enum(["apply", "rollback"]), "Whether a migration was applied, or taken back."),
    "migration_id": Column(pl.String, "The migration that was applied, or that it goes back to."),
    "approval_hash": Column(pl.String, "The approval that it rests on; null where none was needed."),
    "evidence_hash": Column(pl.String, "The evidence that it rests on."),
    **_OF_ACT,
}

FACTS: Final[Table] = {
    **_OF_ENTRY,
    "created_at": Column(TIME, "When it was decided."),
    "occurred_at": Column(TIME, "occurred_at of its decision."),
    **_OF_POLICY,
    "policy_hash": Column(pl.String, "The hash of the rulebook that decided."),
    "known": Column(pl.Boolean, "Whether the facts are kept; false where they were erased."),
    "inputs": Column(pl.String, "All facts as canonical JSON; null where they are not kept."),
}
"""And four columns for each field that the deciding rulebooks declare or test; `workbench.facts` says which. Advisory
decisions have no facts, and no row here.
"""

RULEBOOKS: Final[Table] = {
    **_OF_ENTRY,
    **_OF_POLICY,
    "policy_hash": Column(pl.String, "The rulebook's hash: that of its body."),
    "first_used_at": Column(TIME, "When it first decided."),
    "body": Column(pl.String, "The rulebook, as canonical JSON."),
}
"""The rulebooks that decided, each at the position of its first decision."""

_OF_OUTCOME: Final[Table] = {
    "outcome_position": Column(pl.Int64, "The chain position of its latest outcome."),
    "outcome_id": Column(pl.String, "That outcome's id."),
    "outcome_status": Column(OUTCOME_STATUS, "Its status; null without any outcome."),
    "action_executed": Column(pl.Boolean, "Whether the action was executed, as the latest outcome says."),
    "outcome_reported_at": Column(TIME, "When the latest outcome was reported."),
    "outcome_occurred_at": Column(TIME, "occurred_at of the latest outcome."),
    "outcomes": Column(pl.Int64, "How many outcomes were reported."),
    "first_outcome_at": Column(TIME, "The earliest date of them."),
    "last_outcome_at": Column(TIME, "The latest date of them."),
    "first_outcome_event_at": Column(
        TIME, "The earliest of them by event: each at its occurred_at, or when it was reported where it has none."
    ),
    "last_outcome_event_at": Column(TIME, "The latest of them by event."),
    "times_succeeded": Column(pl.Int64, "How many of them said succeeded."),
}
_OF_RESOLUTION: Final[Table] = {
    "resolution_position": Column(pl.Int64, "The chain position of its resolution."),
    "resolution": Column(RESOLUTION, "granted, refused or expired; null where it was not held, or is held still."),
    "resolved_at": Column(TIME, "When it was resolved."),
    "grant_ends_at": Column(TIME, "expires_at of its grant: until when that opens the action; null without a grant."),
    "waiting_seconds": Column(
        pl.Int64, "For how many whole seconds it was held, as the decision and its resolution were recorded."
    ),
}
_OF_EXECUTION: Final[Table] = {
    "execution_position": Column(pl.Int64, "The chain position of its latest execution receipt."),
    "execution_receipt_id": Column(pl.String, "That receipt's id."),
    "execution_status": Column(EXECUTION_STATUS, "Its status; null without any receipt."),
    "action_binding_match": Column(pl.Boolean, "Whether what it says was executed is what was decided."),
    "not_approved": Column(pl.Boolean, "Its flag DECISION_NOT_APPROVED."),
    "binding_mismatch": Column(pl.Boolean, "Its flag ACTION_BINDING_MISMATCH."),
    "action_mismatch": Column(pl.Boolean, "Whether it names another action than the decision's."),
    "execution_reported_at": Column(TIME, "When it was reported."),
    "execution_event_at": Column(
        TIME, "Its executed_at; null where it has none, or one more than 5 minutes after it was reported."
    ),
    "executions": Column(pl.Int64, "How many receipts were reported."),
    "first_executed_at": Column(TIME, "When a receipt first said executed."),
    "first_executed_event_at": Column(
        TIME, "The earliest of these by event: each at its executed_at, or when it was reported where it has none."
    ),
    "times_executed": Column(pl.Int64, "How many receipts said executed."),
    "times_reverted": Column(pl.Int64, "How many said reverted."),
    "times_unapproved": Column(
        pl.Int64,
        "How many said executed or queued, and had the flag DECISION_NOT_APPROVED: no yes and no grant before.",
    ),
    "executed_against": Column(
        pl.Boolean, "Whether one of these receipts stands after its resolution, which was refused or expired then."
    ),
    "executed_late": Column(
        pl.Boolean,
        "Whether it was executed more than 5 minutes after its grant had ended, by the latest date of a receipt behind "
        "the grant; null where none is late or queued in time.",
    ),
    "times_mismatched": Column(pl.Int64, "How many had the flag ACTION_BINDING_MISMATCH."),
    "times_other_action": Column(
        pl.Int64, "How many said executed or queued, and named another action: other_action of executions."
    ),
    "times_contradicted": Column(pl.Int64, "How many had state hashes that contradict their status."),
}

CASES: Final[Table] = {
    **_OF_ENTRY,
    **_DECIDED,
    "week": Column(pl.Date, "The Monday of the week in which it was decided, UTC."),
    **_OF_RESOLUTION,
    **_OF_OUTCOME,
    **_OF_EXECUTION,
}
"""A decision with the latest of what was reported about it."""

METRICS: Final[Table] = {
    "scope_id": _OF_ENTRY["scope_id"],
    "position": Column(pl.Int64, "The chain position of the decision."),
    **_OF_POLICY,
    "reported_at": Column(TIME, "When its latest outcome was reported."),
    "occurred_at": Column(TIME, "occurred_at of that outcome."),
    "name": Column(pl.String, "What that outcome measured."),
    "value": Column(pl.Float64, "The number."),
}
"""A row for each metric of the latest outcome of a decision."""

_TOLD: Final = "one of 0.05, 0.1, ... 0.95; null in the row of a member."
BENCHMARKS: Final[Table] = {
    "scope_id": Column(pl.String, "A scope that took part when the month began."),
    "policy_id": Column(pl.String, "A policy for which it counts; null in the row that each member has for itself."),
    "decisions": Column(pl.Int64, "How many decisions it made, rounded down to 1, 2 or 5 times a power of ten."),
    "success_rate": Column(pl.Float64, f"Its success rate as it is told: {_TOLD}"),
    "approval_rate": Column(pl.Float64, f"Its approval rate as it is told: {_TOLD}"),
    "terminal_coverage": Column(pl.Float64, f"Its terminal coverage as it is told: {_TOLD}"),
}
"""What is frozen of a month, of all scopes that took part; a file for each month, beside the scopes' tables."""

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "decisions": DECISIONS,
        "executions": EXECUTIONS,
        "outcomes": OUTCOMES,
        "crm_syncs": CRM_SYNCS,
        "resolutions": RESOLUTIONS,
        "erasures": ERASURES,
        "migrations": MIGRATIONS,
        "routes": ROUTES,
        "facts": FACTS,
        "rulebooks": RULEBOOKS,
        "cases": CASES,
        "metrics": METRICS,
    }
)

ENTRY_TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "decision": "decisions",
        "execution": "executions",
        "outcome": "outcomes",
        "crm_sync": "crm_syncs",
        "resolution": "resolutions",
        "erasure": "erasures",
        "migration": "migrations",
        "route": "routes",
    }
)
"""The table of each type of entry."""

CHANGE_IDS: Final[Mapping[str, str]] = MappingProxyType(
    {"migrations": "migration_entry_id", "routes": "route_entry_id"}
)
"""The tables of entries that are about no decision, with the column of their own id, which their leaf has instead."""


TIME_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "decisions": "created_at",
        "executions": "reported_at",
        "outcomes": "reported_at",
        "crm_syncs": "reported_at",
        "resolutions": "recorded_at",
        "erasures": "erased_at",
        "migrations": "recorded_at",
        "routes": "recorded_at",
        "facts": "created_at",
        "rulebooks": "first_used_at",
        "cases": "created_at",
        "metrics": "reported_at",
    }
)
"""The column that says when a row came to be, and to which month it belongs."""


def schema(table: str, columns: Iterable[str] | None = None) -> pl.Schema:
    """The types of a table's columns, or of some of them, by name."""
    defined = TABLES[table]
    return pl.Schema({name: defined[name].dtype for name in (defined if columns is None else columns)})


def personal_columns() -> frozenset[str]:
    """The names that an operator may mark as personal, beside `inputs.<path>` for facts."""
    return frozenset(name for table in TABLES.values() for name, column in table.items() if column.personal)
