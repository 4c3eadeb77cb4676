"""The lake's tables, and the name, type, and meaning of each column. Nothing else defines them.

Times are UTC with milliseconds. Hashes are lower-case hex SHA-256. Positions are those of the scope's chain. If a
caller may send any JSON value, the column holds its text. A value that the caller did not send is null.
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
    "leaf_hash": Column(pl.String, "The hash of the entry's leaf in the chain."),
    "merkle_root": Column(pl.String, "The Merkle root of the chain up to this position."),
    "link_hash": Column(pl.String, "The hash of the entry's link."),
}
_OF_POLICY: Final[Table] = {
    "policy_id": Column(
        pl.String, "The policy that decided: the id of the rulebook, or `advisory.<mode>` for an advisory decision."
    ),
    "policy_version": Column(pl.String, "The version of that policy."),
}
_ABOUT: Final[Table] = {
    "decision_id": Column(pl.String, "The id of the decision that the entry is about."),
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
    "evidence_refs": Column(pl.List(pl.String), "References to evidence that is stored elsewhere.", personal=True),
    "executed_at": Column(TIME, "When the action was performed, as the caller reported it."),
    "reported_at": Column(TIME, "When the entry was recorded."),
}

_DECIDED: Final[Table] = {
    "decision_id": Column(pl.String, "The id of the decision."),
    "created_at": Column(TIME, "When the decision was made."),
    "occurred_at": Column(
        TIME,
        "When the event behind the decision happened, as the caller sent it. Null if it was not sent or was erased.",
    ),
    **_OF_POLICY,
    "policy_hash": Column(
        pl.String, "The hash of the rulebook that decided. For an advisory decision, the hash of the prompt template."
    ),
    "verdict": Column(VERDICT, "The verdict: `yes`, `no` or `review`."),
    "application_verdict": Column(pl.String, "The rulebook's own word for the verdict."),
    "action": Column(pl.String, "The action that the decision is about, by its label."),
    "reason_code": Column(pl.String, "The reason code of the decision."),
    "rule": Column(
        pl.String,
        "What decided, from the evidence in the record: `rule:<id>`, `rule:default` or `schema:failed`. "
        "`advisory` for an advisory decision.",
    ),
}

DECISIONS: Final[Table] = {
    **_OF_ENTRY,
    **_DECIDED,
    "target_system": Column(pl.String, "`action_binding.system` of the record.", personal=True),
    "target_object_id": Column(pl.String, "`action_binding.resource` of the record.", personal=True),
    "proposed_action": Column(pl.String, "`action_binding.proposed_action` of the record.", personal=True),
    "mutation": Column(pl.String, "`action_binding.mutation` of the record.", personal=True),
    "actor": Column(pl.String, "`action_binding.actor` of the record, as JSON.", personal=True),
    "subject": Column(pl.String, "`action_binding.subject` of the record, as JSON.", personal=True),
    "amount": Column(pl.Float64, "`action_binding.amount` of the record, if it is a number.", personal=True),
    "currency": Column(pl.String, "`action_binding.currency` of the record, if it is text.", personal=True),
    "request_id": Column(pl.String, "The id of the request in the service's log."),
    "idempotency_key": Column(pl.String, "The idempotency key that the caller sent.", personal=True),
    "input_hash": Column(pl.String, "The hash of the request."),
    "output_hash": Column(pl.String, "The hash of the answer."),
    "adapter": Column(
        pl.String,
        "The trusted adapter that made the facts, as `<adapter_id>@<version>`. Null if the caller sent the facts.",
    ),
    "adapter_manifest_hash": Column(pl.String, "The hash of the adapter's manifest."),
    "adapter_input_hash": Column(pl.String, "The hash of the adapter's input."),
    "confidence_score": Column(pl.Float64, "`decision_confidence.score` of the record."),
    "confidence_level": Column(pl.String, "`decision_confidence.level` of the record."),
    "receipt_hash": Column(pl.String, "`receipt_hash` of the record."),
    **_OF_CHAIN,
}

EXECUTIONS: Final[Table] = {
    **_OF_ENTRY,
    "execution_receipt_id": Column(pl.String, "The id of the execution receipt."),
    **_ABOUT,
    **_OF_POLICY,
    "execution_status": Column(EXECUTION_STATUS, "What happened to the action."),
    "execution_result": Column(pl.String, "The result in the caller's words.", personal=True),
    **_TARGET,
    "execution_id": Column(pl.String, "The caller's own id of the execution.", personal=True),
    "executor": Column(pl.String, "The person or system that executed the action, as JSON.", personal=True),
    "action_binding_match": Column(pl.Boolean, "Whether the executed action is the one that was decided."),
    "not_approved": Column(
        pl.Boolean,
        "Flag `DECISION_NOT_APPROVED`: the verdict was not `yes` and no owner had granted the action, or"
        " the decision was advisory.",
    ),
    "binding_mismatch": Column(
        pl.Boolean, "Flag `ACTION_BINDING_MISMATCH`: the receipt states another target than the decision."
    ),
    "action_mismatch": Column(
        pl.Boolean,
        "Flag `ACTION_TAKEN_MISMATCH`: the receipt states another action than the decision. Also true "
        "for such receipts of earlier releases, which do not carry the flag.",
    ),
    "other_action": Column(
        pl.Boolean,
        "Like `action_mismatch`, but false if `not_approved` is true and the receipt states the proposed"
        " action, or none was proposed. The caller then broke the hold, but did not do something else.",
    ),
    "state_mismatch": Column(
        pl.Boolean,
        "Whether the state hashes contradict the status: the status is `executed` or `reverted` and "
        "nothing changed, or the status is another one and something changed. Null if a hash is missing "
        "or the status is `queued`.",
    ),
    "state_before_hash": Column(pl.String, "The hash of the target's state before the action.", personal=True),
    "state_after_hash": Column(pl.String, "The hash of the target's state after the action.", personal=True),
    "state_before_ref": Column(pl.String, "Where the state before the action is stored.", personal=True),
    "state_after_ref": Column(pl.String, "Where the state after the action is stored.", personal=True),
    **_EVIDENCE,
    **_OF_CHAIN,
}

OUTCOMES: Final[Table] = {
    **_OF_ENTRY,
    "outcome_id": Column(pl.String, "The id of the outcome."),
    **_ABOUT,
    **_OF_POLICY,
    "outcome_status": Column(
        OUTCOME_STATUS, "The result. `succeeded`, `partial`, `failed` and `reverted` are terminal."
    ),
    "action_executed": Column(pl.Boolean, "Whether the action was executed."),
    **_TARGET,
    "observed_metrics": Column(OBSERVED, "The measured values: names and numbers.", personal=True),
    **_EVIDENCE,
    "occurred_at": Column(
        TIME, "When the outcome happened, as the caller reported it. Null if it was not sent or was erased."
    ),
    **_OF_CHAIN,
}

CRM_SYNCS: Final[Table] = {
    **_OF_ENTRY,
    "sync_id": Column(pl.String, "The id of the sync record."),
    **_ABOUT,
    **_OF_POLICY,
    "sync_status": Column(pl.Enum(["written", "pending", "failed", "skipped"]), "The result of the sync."),
    "sync_direction": Column(pl.Enum(["writeback", "inbound"]), "`writeback`: into the CRM. `inbound`: from the CRM."),
    "crm_provider": Column(pl.String, "The CRM."),
    "crm_object_type": Column(pl.String, "The type of the object in the CRM."),
    "crm_object_id": Column(pl.String, "The id of the object in the CRM.", personal=True),
    "crm_record_url": Column(pl.String, "The URL that shows the object.", personal=True),
    "mapped_fields": Column(pl.String, "The mapped fields and their values, as JSON.", personal=True),
    "reported_at": Column(TIME, "When the entry was recorded."),
    **_OF_CHAIN,
}

_OF_ACT: Final[Table] = {
    "actor": Column(pl.String, "Who did it, as JSON: `{type, id}`."),
    "note": Column(pl.String, "The note of that person. Null if there is none.", personal=True),
    "recorded_at": Column(TIME, "When the entry was recorded."),
    **_OF_CHAIN,
}

RESOLUTIONS: Final[Table] = {
    **_OF_ENTRY,
    "resolution_entry_id": Column(pl.String, "The id of the resolution."),
    **_ABOUT,
    **_OF_POLICY,
    "resolution": Column(
        RESOLUTION, "The owner's answer, `granted` or `refused`. `expired` if no answer came in time."
    ),
    "expires_at": Column(
        TIME, "For a grant, when it ends. For an expired review, when its time limit ended. Null for a refusal."
    ),
    "resolved_by": Column(pl.String, "Who resolved the review, as the caller reported it.", personal=True),
    "evidence_refs": Column(pl.List(pl.String), "References to evidence that is stored elsewhere.", personal=True),
    "idempotency_key": Column(pl.String, "The idempotency key that the caller sent.", personal=True),
    "key_id": Column(pl.String, "The id of the key that signed the resolution. Null if receipt signing was off."),
    **_OF_ACT,
}

ERASURES: Final[Table] = {
    **_OF_ENTRY,
    "erasure_id": Column(pl.String, "The id of the erasure."),
    **_ABOUT,
    **_OF_POLICY,
    "reason": Column(pl.String, "The operator's reason.", personal=True),
    "erased": Column(pl.List(pl.String), "The parts of the decision that were erased."),
    "erased_at": Column(TIME, "When the entry was recorded."),
    **_OF_CHAIN,
}

MIGRATIONS: Final[Table] = {
    **_OF_ENTRY,
    "migration_entry_id": Column(pl.String, "The id of the entry."),
    "migration_id": Column(pl.String, "The id of the migration."),
    "event": Column(pl.Enum(["proposed", "approved", "rejected", "superseded"]), "What happened to the migration."),
    "manifest_hash": Column(pl.String, "The hash of the migration's manifest."),
    "evidence_hash": Column(pl.String, "The hash of the evidence that the event is based on."),
    "candidates": Column(
        pl.List(pl.Struct({"rulebook_id": pl.String, "version": pl.String, "hash": pl.String})),
        "The rulebook versions that the migration proposes.",
    ),
    **_OF_ACT,
}

ROUTES: Final[Table] = {
    **_OF_ENTRY,
    "route_entry_id": Column(pl.String, "The id of the entry."),
    "policy_id": Column(pl.String, "The rulebook id whose route changes at this position."),
    "policy_version": Column(pl.String, "The version that the route leads to from here on."),
    "policy_hash": Column(pl.String, "The hash of that version."),
    "from_version": Column(pl.String, "The version that the route led to before. Null for the first route."),
    "from_hash": Column(pl.String, "The hash of that version."),
    "cause": Column(
        pl.Enum(["apply", "rollback"]), "`apply`: a migration was applied. `rollback`: it was rolled back."
    ),
    "migration_id": Column(pl.String, "The migration that was applied, or the one that the rollback returns to."),
    "approval_hash": Column(pl.String, "The hash of the approval that the change is based on. Null if it needs none."),
    "evidence_hash": Column(pl.String, "The hash of the evidence that the change is based on."),
    **_OF_ACT,
}

FACTS: Final[Table] = {
    **_OF_ENTRY,
    "created_at": Column(TIME, "When the decision was made."),
    "occurred_at": Column(TIME, "`occurred_at` of the decision."),
    **_OF_POLICY,
    "policy_hash": Column(pl.String, "The hash of the rulebook that decided."),
    "known": Column(pl.Boolean, "Whether the facts are still stored. False if they were erased."),
    "inputs": Column(pl.String, "All facts as canonical JSON. Null if they are not stored."),
}
"""And four columns for each field that the deciding rulebooks declare or test; `workbench.facts` says which. Advisory
decisions have no facts, and no row here.
"""

RULEBOOKS: Final[Table] = {
    **_OF_ENTRY,
    **_OF_POLICY,
    "policy_hash": Column(pl.String, "The hash of the rulebook's body."),
    "first_used_at": Column(TIME, "When the rulebook first decided."),
    "body": Column(pl.String, "The rulebook, as canonical JSON."),
}
"""The rulebooks that decided, each at the position of its first decision."""

_OF_OUTCOME: Final[Table] = {
    "outcome_position": Column(pl.Int64, "The chain position of the latest outcome."),
    "outcome_id": Column(pl.String, "The id of the latest outcome."),
    "outcome_status": Column(OUTCOME_STATUS, "The status of the latest outcome. Null if there is no outcome."),
    "action_executed": Column(pl.Boolean, "Whether the action was executed, according to the latest outcome."),
    "outcome_reported_at": Column(TIME, "When the latest outcome was reported."),
    "outcome_occurred_at": Column(TIME, "`occurred_at` of the latest outcome."),
    "outcomes": Column(pl.Int64, "The number of reported outcomes."),
    "first_outcome_at": Column(TIME, "The earliest `reported_at` of the outcomes."),
    "last_outcome_at": Column(TIME, "The latest `reported_at` of the outcomes."),
    "first_outcome_event_at": Column(
        TIME, "The earliest event time of the outcomes: `occurred_at`, or `reported_at` if that is missing."
    ),
    "last_outcome_event_at": Column(TIME, "The latest event time of the outcomes."),
    "times_succeeded": Column(pl.Int64, "The number of outcomes with the status `succeeded`."),
}
_OF_RESOLUTION: Final[Table] = {
    "resolution_position": Column(pl.Int64, "The chain position of the resolution."),
    "resolution": Column(
        RESOLUTION, "`granted`, `refused` or `expired`. Null if the decision was not held or is still held."
    ),
    "resolved_at": Column(TIME, "When the review was resolved."),
    "grant_ends_at": Column(TIME, "When the grant ends: its `expires_at`. Null without a grant."),
    "waiting_seconds": Column(
        pl.Int64, "The whole seconds between the decision and its resolution, by the times they were recorded."
    ),
}
_OF_EXECUTION: Final[Table] = {
    "execution_position": Column(pl.Int64, "The chain position of the latest execution receipt."),
    "execution_receipt_id": Column(pl.String, "The id of the latest execution receipt."),
    "execution_status": Column(EXECUTION_STATUS, "The status of the latest receipt. Null if there is no receipt."),
    "action_binding_match": Column(pl.Boolean, "Whether the latest receipt states the action that was decided."),
    "not_approved": Column(pl.Boolean, "Flag `DECISION_NOT_APPROVED` of the latest receipt."),
    "binding_mismatch": Column(pl.Boolean, "Flag `ACTION_BINDING_MISMATCH` of the latest receipt."),
    "action_mismatch": Column(pl.Boolean, "Whether the latest receipt states another action than the decision."),
    "execution_reported_at": Column(TIME, "When the latest receipt was reported."),
    "execution_event_at": Column(
        TIME,
        "`executed_at` of the latest receipt. Null if it is missing, or more than 5 minutes after the "
        "receipt was reported.",
    ),
    "executions": Column(pl.Int64, "The number of reported receipts."),
    "first_executed_at": Column(TIME, "When a receipt with the status `executed` was first reported."),
    "first_executed_event_at": Column(
        TIME,
        "The earliest event time of receipts with the status `executed`: `executed_at`, or `reported_at`"
        " if that is missing.",
    ),
    "times_executed": Column(pl.Int64, "The number of receipts with the status `executed`."),
    "times_reverted": Column(pl.Int64, "The number of receipts with the status `reverted`."),
    "times_unapproved": Column(
        pl.Int64,
        "The number of receipts with the status `executed` or `queued` and the flag `DECISION_NOT_APPROVED`.",
    ),
    "executed_against": Column(
        pl.Boolean, "Whether one of those receipts follows a resolution that was `refused` or `expired`."
    ),
    "executed_late": Column(
        pl.Boolean,
        "True if the action was executed more than 5 minutes after its grant ended, and was not queued before. False "
        "if it was queued in time. Null otherwise.",
    ),
    "times_mismatched": Column(pl.Int64, "The number of receipts with the flag `ACTION_BINDING_MISMATCH`."),
    "times_other_action": Column(
        pl.Int64,
        "The number of receipts with the status `executed` or `queued` that state another action "
        "(`other_action` of executions).",
    ),
    "times_contradicted": Column(pl.Int64, "The number of receipts whose state hashes contradict their status."),
}

CASES: Final[Table] = {
    **_OF_ENTRY,
    **_DECIDED,
    "week": Column(pl.Date, "The Monday of the week of the decision, in UTC."),
    **_OF_RESOLUTION,
    **_OF_OUTCOME,
    **_OF_EXECUTION,
}
"""A decision with the latest of what was reported about it."""

METRICS: Final[Table] = {
    "scope_id": _OF_ENTRY["scope_id"],
    "position": Column(pl.Int64, "The chain position of the decision."),
    **_OF_POLICY,
    "reported_at": Column(TIME, "When the latest outcome was reported."),
    "occurred_at": Column(TIME, "`occurred_at` of that outcome."),
    "name": Column(pl.String, "The name of the measured value."),
    "value": Column(pl.Float64, "The measured value."),
}
"""A row for each metric of the latest outcome of a decision."""

_ROUNDED: Final = "rounded to 0.05, from 0.05 to 0.95. Null in the row that each member has for itself."
BENCHMARKS: Final[Table] = {
    "scope_id": Column(pl.String, "A scope that took part when the month began."),
    "policy_id": Column(
        pl.String, "A policy in whose benchmark the scope counts. Null in the row that each member has for itself."
    ),
    "decisions": Column(pl.Int64, "The number of decisions, rounded down to 1, 2 or 5 times a power of ten."),
    "success_rate": Column(pl.Float64, f"The success rate, {_ROUNDED}"),
    "approval_rate": Column(pl.Float64, f"The approval rate, {_ROUNDED}"),
    "terminal_coverage": Column(pl.Float64, f"The terminal coverage, {_ROUNDED}"),
}
"""The frozen figures of a month, of all scopes that took part: one file for each month, next to the scopes' tables."""

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

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "decisions": "One row for each decision.",
        "executions": "One row for each execution receipt.",
        "outcomes": "One row for each outcome.",
        "crm_syncs": "One row for each CRM sync.",
        "resolutions": "One row for each resolution of a held decision.",
        "erasures": "One row for each erasure.",
        "migrations": "One row for each event of a migration.",
        "routes": "One row for each change of a route.",
        "facts": "One row with the facts of each decision that a rulebook made. Advisory decisions have no row.",
        "rulebooks": "One row for each rulebook that decided, at the position of its first decision.",
        "cases": "One row for each decision, with its resolution, its latest outcome and its latest execution receipt.",
        "metrics": "One row for each metric of the latest outcome of a decision.",
        "benchmarks": "One file for each month: what scopes that take part in benchmarks share of that month.",
    }
)
"""What the rows of each table are, those of `BENCHMARKS` included."""

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
    """The columns that an operator may mark as personal, in addition to `inputs.<path>` for facts."""
    return frozenset(name for table in TABLES.values() for name, column in table.items() if column.personal)
