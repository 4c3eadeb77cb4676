"""Cases: each decision with the latest of what was reported about it; and metrics: what its latest outcome measured.
The latest is the last in chain order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import polars as pl

from gate.ids import AHEAD
from gate.records.reports.resolution import GRANTED
from workbench.columns import ADVISORY, CASES, DECISIONS, EXECUTION_STATUS, IS_ADVISORY, RESOLUTION, schema

WEEK: Final = pl.col("created_at").dt.truncate("1w").dt.date().alias("week")
"""The week of a case, by the date that it has."""

_OCCURRED: Final = pl.coalesce("occurred_at", "reported_at")

# Clocks go back; nothing was held for less than no time.
_WAITED: Final = (pl.col("resolved_at") - pl.col("created_at")).dt.total_seconds().clip(0).alias("waiting_seconds")

# The members that a case takes from the latest outcome and execution receipt, with their names there.
_FROM_OUTCOME: Final = {
    "outcome_position": "position",
    "outcome_id": "outcome_id",
    "outcome_status": "outcome_status",
    "action_executed": "action_executed",
    "outcome_reported_at": "reported_at",
    "outcome_occurred_at": "occurred_at",
}
_FROM_RESOLUTION: Final = {
    "resolution_position": "position",
    "resolution": "resolution",
    "resolved_at": "recorded_at",
    "grant_ends_at": "grant_ends_at",
}
_FROM_EXECUTION: Final = {
    "execution_position": "position",
    "execution_receipt_id": "execution_receipt_id",
    "execution_status": "execution_status",
    "action_binding_match": "action_binding_match",
    "not_approved": "not_approved",
    "binding_mismatch": "binding_mismatch",
    "action_mismatch": "action_mismatch",
    "execution_reported_at": "reported_at",
    "execution_event_at": "event_at",
}

_UNAPPROVED_AT: Final = "unapproved_position"
_ACTED_AT: Final = "acted_at"
_QUEUED_AT: Final = "queued_at"
# A receipt after a grant is approved, and a resolution is final.
_AGAINST: Final = (pl.col(f"{_UNAPPROVED_AT}:new") > pl.col("resolution_position")).fill_null(value=False)

_GRANT_ENDS_AT: Final = pl.when(pl.col("resolution") == GRANTED).then(pl.col("expires_at")).alias("grant_ends_at")
_IN_TIME_UNTIL: Final = pl.col("grant_ends_at") + AHEAD
# False, as the lesser, stays: what was queued in time may be executed at any time. Without a grant this is null.
_LATE: Final = (
    pl.when(pl.col(f"{_QUEUED_AT}:new") <= _IN_TIME_UNTIL)
    .then(statement=False)
    .when(pl.col(f"{_ACTED_AT}:new") > _IN_TIME_UNTIL)
    .then(statement=True)
)

_UNTOLD: Final[Mapping[str, object]] = {
    **{name: 0 for name in CASES if name in ("outcomes", "executions") or name.startswith("times_")},
    "executed_against": False,
}
"""What is not null where nothing was reported."""

DECISION_COLUMNS: Final = tuple(name for name in DECISIONS if name in CASES and name not in _FROM_EXECUTION)
"""What of decisions `unreported` needs."""

_WITHOUT_RECEIPT: Final = {"review": "held", "yes": "approved", "no": "refused"}

STATES: Final = (
    *dict.fromkeys((*_WITHOUT_RECEIPT.values(), *RESOLUTION.categories)),
    ADVISORY,
    *EXECUTION_STATUS.categories,
)
"""The states of a case."""

_UNDER_WAY: Final = pl.col("execution_status").is_in(["executed", "queued"])

_TIMES: Final[Mapping[str, pl.Expr]] = {
    "times_executed": pl.col("execution_status") == "executed",
    "times_reverted": pl.col("execution_status") == "reverted",
    "times_unapproved": pl.col("not_approved") & _UNDER_WAY,
    "times_mismatched": pl.col("binding_mismatch"),
    "times_other_action": pl.col("other_action") & _UNDER_WAY,
    "times_contradicted": pl.col("state_mismatch"),
}
"""What receipts are counted by."""

RESOLUTION_COLUMNS: Final = (
    "decision_position",
    *(name for name in _FROM_RESOLUTION.values() if name != "grant_ends_at"),
    "expires_at",
)
"""What of resolutions `updated` needs."""

OUTCOME_COLUMNS: Final = ("decision_position", *dict.fromkeys(_FROM_OUTCOME.values()))
"""What of outcomes `updated` needs."""

MEASURED_COLUMNS: Final = (
    "scope_id",
    "decision_position",
    "position",
    "policy_id",
    "policy_version",
    "reported_at",
    "occurred_at",
    "observed_metrics",
)
"""What of outcomes `measured` needs."""

EXECUTION_COLUMNS: Final = (
    "decision_position",
    *(name for name in dict.fromkeys(_FROM_EXECUTION.values()) if name != "event_at"),
    "executed_at",
    "other_action",
    "state_mismatch",
)
"""What of execution receipts `updated` needs."""


Reports: TypeAlias = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
"""Outcomes, execution receipts and resolutions."""


def state() -> pl.Expr:
    """The state of a case: the status of its latest execution receipt, or else the resolution of a held case, or else
    its verdict.

    An advisory decision has a state of its own, because its verdict approves, refuses, and holds nothing.
    """
    untold = pl.col("verdict").cast(pl.String).replace_strict(_WITHOUT_RECEIPT, return_dtype=pl.String)
    untold = pl.coalesce(pl.col("resolution").cast(pl.String), untold)
    untold = pl.when(IS_ADVISORY).then(pl.lit(ADVISORY)).otherwise(untold)
    return pl.coalesce(pl.col("execution_status").cast(pl.String), untold)


def has_state(name: str) -> pl.Expr:
    """Whether a case has a state: as `state() == name`, for a tenth of the time, as it makes no text for each case."""
    told, resolved = pl.col("execution_status"), pl.col("resolution")
    if name == ADVISORY:
        return told.is_null() & IS_ADVISORY
    if name in EXECUTION_STATUS.categories:
        return told == name
    by_verdict = (pl.col("verdict") == verdict for verdict, of in _WITHOUT_RECEIPT.items() if of == name)
    ways = [resolved.is_null() & of & ~IS_ADVISORY for of in by_verdict]
    ways += [resolved == name] if name in RESOLUTION.categories else []
    return told.is_null() & pl.any_horizontal(ways)


def performed_at() -> pl.Expr:
    """When the action of an execution receipt was performed, as it says; null where it says nothing, or what had not
    happened when it was reported.
    """
    return pl.when(pl.col("executed_at") <= pl.col("reported_at") + AHEAD).then(pl.col("executed_at"))


def reported_on(reports: Reports) -> pl.Series:
    """The chain positions of the decisions that some reports are about."""
    return pl.concat([of["decision_position"] for of in reports]).unique()


def unreported(decisions: pl.DataFrame) -> pl.DataFrame:
    """The cases of decisions about which nothing is known yet."""
    return decisions.with_columns(
        WEEK,
        *(
            pl.lit(_UNTOLD.get(name), column.dtype).alias(name)
            for name, column in CASES.items()
            if name not in decisions.columns and name != "week"
        ),
    ).select(schema("cases").names())


def updated(
    cases: pl.DataFrame, outcomes: pl.DataFrame, executions: pl.DataFrame, resolutions: pl.DataFrame
) -> pl.DataFrame:
    """Cases with what was reported since; reports about other decisions are passed over.

    Args:
        cases: The cases.
        outcomes: Outcomes at later chain positions than those that the cases know of, with `OUTCOME_COLUMNS`.
        executions: Execution receipts likewise, with `EXECUTION_COLUMNS`.
        resolutions: Resolutions likewise, with `RESOLUTION_COLUMNS`.
    """
    if not resolutions.is_empty():
        resolutions = resolutions.with_columns(_GRANT_ENDS_AT)
        cases = _taken(cases, _latest(resolutions, _FROM_RESOLUTION), _FROM_RESOLUTION)
        cases = cases.with_columns(_WAITED)
    if not outcomes.is_empty():
        latest = _latest(outcomes, _FROM_OUTCOME).join(
            outcomes.group_by("decision_position").agg(
                pl.len().cast(pl.Int64).alias("outcomes"),
                pl.col("reported_at").min().alias("first_outcome_at"),
                pl.col("reported_at").max().alias("last_outcome_at"),
                _OCCURRED.min().alias("first_outcome_event_at"),
                _OCCURRED.max().alias("last_outcome_event_at"),
                (pl.col("outcome_status") == "succeeded").sum().cast(pl.Int64).alias("times_succeeded"),
            ),
            on="decision_position",
        )
        cases = _taken(
            cases,
            latest,
            _FROM_OUTCOME,
            *map(_earliest, ("first_outcome_at", "first_outcome_event_at")),
            *map(_last_of, ("last_outcome_at", "last_outcome_event_at")),
            *map(_added, ("outcomes", "times_succeeded")),
        )
    if not executions.is_empty():
        cases = _taken(
            cases,
            _received(executions),
            _FROM_EXECUTION,
            *map(_earliest, ("first_executed_at", "first_executed_event_at")),
            *map(_added, ("executions", *_TIMES)),
            (pl.col("executed_against") | _AGAINST).alias("executed_against"),
            pl.min_horizontal("executed_late", _LATE).alias("executed_late"),
        )
    return cases


def measured(outcomes: pl.DataFrame) -> pl.DataFrame:
    """The metrics of the latest of some outcomes of each decision; none where the latest measured nothing.

    Args:
        outcomes: Outcomes, with `MEASURED_COLUMNS`.
    """
    last = _last(outcomes).select(
        "scope_id",
        pl.col("decision_position").alias("position"),
        "policy_id",
        "policy_version",
        "reported_at",
        "occurred_at",
        "observed_metrics",
    )
    unfolded = last.explode("observed_metrics", empty_as_null=False, keep_nulls=False).unnest("observed_metrics")
    return unfolded.select(schema("metrics").names())


def _received(executions: pl.DataFrame) -> pl.DataFrame:
    """Of each decision its latest execution receipt, and what all of them say together."""
    executions = executions.with_columns(performed_at().alias("event_at"))
    position, dated, executed = pl.col("position"), pl.coalesce("event_at", "reported_at"), _TIMES["times_executed"]
    opened = _UNDER_WAY & ~pl.col("not_approved")
    together = executions.group_by("decision_position").agg(
        pl.len().cast(pl.Int64).alias("executions"),
        pl.col("reported_at").filter(executed).min().alias("first_executed_at"),
        dated.filter(executed).min().alias("first_executed_event_at"),
        *(counts.sum().cast(pl.Int64).alias(name) for name, counts in _TIMES.items()),
        position.filter(_TIMES["times_unapproved"]).max().alias(_UNAPPROVED_AT),
        dated.filter(opened).max().alias(_ACTED_AT),
        dated.filter(opened & (pl.col("execution_status") == "queued")).min().alias(_QUEUED_AT),
    )
    return _latest(executions, _FROM_EXECUTION).join(together, on="decision_position")


def _new(name: str) -> pl.Expr:
    return pl.col(f"{name}:new")


def _earliest(name: str) -> pl.Expr:
    return pl.min_horizontal(name, _new(name)).alias(name)


def _last_of(name: str) -> pl.Expr:
    return pl.max_horizontal(name, _new(name)).alias(name)


def _added(name: str) -> pl.Expr:
    """A count, and what came to it."""
    return (pl.col(name) + _new(name).fill_null(0)).alias(name)


def _latest(reports: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    return _last(reports).select("decision_position", *(pl.col(of).alias(name) for name, of in names.items()))


def _last(reports: pl.DataFrame) -> pl.DataFrame:
    return reports.sort("position").unique("decision_position", keep="last", maintain_order=True)


def _taken(cases: pl.DataFrame, latest: pl.DataFrame, names: dict[str, str], *others: pl.Expr) -> pl.DataFrame:
    """Cases with the members of their latest report, all of it or nothing of it."""
    latest = latest.rename({name: f"{name}:new" for name in latest.columns if name != "decision_position"})
    joined = cases.join(latest, left_on="position", right_on="decision_position", how="left", maintain_order="left")
    reported = _new(next(iter(names))).is_not_null()
    expressions: Sequence[pl.Expr] = [
        pl.when(reported).then(_new(name)).otherwise(pl.col(name)).alias(name) for name in names
    ]
    return joined.with_columns(*expressions, *others).select(cases.columns)
