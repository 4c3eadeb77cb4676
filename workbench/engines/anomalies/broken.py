"""The decisions whose life went otherwise than the protocol asks: which they are, how many, and when they broke."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import polars as pl

from gate.ids import timestamp
from gate.policy.anomalies import breaks
from gate.policy.anomalies.anomaly import MOST_IDS
from gate.policy.anomalies.breaks import Broken
from gate.policy.anomalies.counted import TERMINAL
from gate.records.advisory import ADVISORY_POLICIES
from gate.records.reports.resolution import ANSWERS, GRANTED
from workbench.columns import IS_ADVISORY
from workbench.engines.anomalies.choice import Choice

YES: Final = pl.col("verdict") == "yes"
"""Whether a decision was let through."""

ENDED: Final = pl.col("outcome_status").is_in(TERMINAL).fill_null(value=False)
"""Whether a decision's latest outcome is terminal."""

ACTED: Final = pl.coalesce("action_executed", YES | (pl.col("resolution") == GRANTED).fill_null(value=False))
"""Whether a decision's action was carried out, as far as anybody says."""

_BROKE_AT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "executed_without_yes",
            "executed_though_refused",
            "executed_though_expired",
            "executed_before_grant",
            "executed_after_grant_ended",
            "duplicate_execution",
            "binding_mismatch",
            "action_mismatch",
            "state_mismatch",
        ),
        "execution_reported_at",
    ),
    "outcome_reversed": "outcome_reported_at",
}
"""The date of what broke a decision; of the other breaks, that of the decision."""

_EXECUTED: Final = pl.col("times_executed") > 0


def break_conditions(as_of: datetime, policy_id: str) -> Mapping[str, tuple[pl.Expr, pl.Expr]]:
    """Of each kind of break the decisions that have it, and those that could. Of advice nothing is promised, but that
    nobody acts on it.
    """
    advisory = IS_ADVISORY if policy_id in ADVISORY_POLICIES else pl.lit(value=False)
    receipt_due = YES & (pl.lit(as_of) - pl.col("created_at") > breaks.RECEIPT_DUE)
    standing = _EXECUTED & (pl.col("times_reverted") < pl.col("times_executed"))
    outcome_due = standing & (pl.lit(as_of) - pl.col("first_executed_at") > breaks.OUTCOME_DUE)
    told = pl.col("executions") > 0
    succeeded = pl.col("times_succeeded") > 0
    of_binding = {
        "duplicate_execution": (pl.col("times_executed") - pl.col("times_reverted") > 1, _EXECUTED),
        "binding_mismatch": (pl.col("times_mismatched") > 0, told),
        "action_mismatch": (pl.col("times_other_action") > 0, told),
        "state_mismatch": (pl.col("times_contradicted") > 0, told),
        "approved_without_receipt": (
            receipt_due & ~told & pl.col("action_executed").fill_null(value=True),
            receipt_due,
        ),
        "outcome_overdue": (outcome_due & ~ENDED, outcome_due),
        "outcome_reversed": (succeeded & pl.col("outcome_status").is_in(["failed", "reverted"]), succeeded),
    }
    return {
        **_unapproved(~YES | advisory),
        **{kind: (has & ~advisory, could & ~advisory) for kind, (has, could) in of_binding.items()},
    }


def _unapproved(could: pl.Expr) -> Mapping[str, tuple[pl.Expr, pl.Expr]]:
    """The breaks of actions that were carried out without a yes, and without a grant that held; a decision has one of
    them.

    Args:
        could: The decisions that could be carried out so.
    """
    unapproved, resolution = pl.col("times_unapproved") > 0, pl.col("resolution")
    against = pl.col("executed_against")
    granted, refused, expired = ((resolution == answer).fill_null(value=False) for answer in ANSWERS)
    return {
        "executed_without_yes": (unapproved & ~against & ~granted, could),
        "executed_though_refused": (against & refused, refused),
        "executed_though_expired": (against & expired, expired),
        "executed_before_grant": (unapproved & granted, granted),
        "executed_after_grant_ended": (pl.col("executed_late").fill_null(value=False) & ~unapproved, granted),
    }


def breaks_of_advice(choice: Choice, as_of: datetime | None) -> Sequence[Broken]:
    """The breaks where all decisions with the policy_id are advisory; none where there are none."""
    if as_of is None or choice.question.policy_id not in ADVISORY_POLICIES:
        return ()
    return broken_in(choice, as_of)


def broken_in(choice: Choice, as_of: datetime) -> list[Broken]:
    """Each kind of break that there is: how often, of how many, when, and where its latest decisions stand."""
    conditions = break_conditions(as_of, choice.question.policy_id)
    could = choice.kept.select(could.sum().alias(kind) for kind, (_, could) in conditions.items())
    has = [has.alias(kind) for kind, (has, _) in conditions.items()]
    broken = choice.kept.select("position", "created_at", *set(_BROKE_AT.values()), *has)
    told = [
        expression.alias(f"{kind}:{name}")
        for kind in conditions
        for name, expression in (
            ("count", pl.col(kind).sum()),
            ("first", pl.col("created_at").filter(pl.col(kind)).min()),
            ("last", pl.col(_BROKE_AT.get(kind, "created_at")).filter(pl.col(kind)).max()),
            ("positions", pl.col("position").filter(pl.col(kind)).top_k(MOST_IDS).implode()),
        )
    ]
    # Together, so that the cases are read once; dates and positions are taken of the broken ones alone.
    of, found = (
        rows.row(0, named=True)
        for rows in pl.collect_all(
            [could, broken.filter(pl.any_horizontal(*conditions)).select(told)], engine="streaming"
        )
    )
    return [
        Broken(
            kind=kind,
            count=found[f"{kind}:count"],
            of=of[kind],
            first=timestamp(found[f"{kind}:first"]),
            last=timestamp(found[f"{kind}:last"]),
            positions=tuple(sorted(found[f"{kind}:positions"], reverse=True)),
        )
        for kind in breaks.RULES
        if found[f"{kind}:count"]
    ]
