"""Searches decisions in the lake, lists the held ones, and lists the names to search by.

    found = find_decisions(snapshot, Criteria(policy_id="refund_policy", state="held"))
    found.total, found.frame
    find_decisions(snapshot, Criteria(policy_id="refund_policy", state="held"), before=found.next_before)   # older ones
    held_decisions(snapshot, now=utc_now()).ages
    decision_names(snapshot).policies

`workbench.lake.cases` defines the states of a decision, and `docs/guides/find-decisions.md` explains them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import polars as pl

from gate.policy.bounds import Bound, OneOf, Text, Whole, moment, refusal, require, shown, span
from gate.policy.effectiveness import Standing
from gate.policy.questions import VERDICTS
from workbench.columns import CASES, IS_ADVISORY, schema
from workbench.engines.arguments import require_snapshot
from workbench.lake.cases import STATES, has_state, state
from workbench.lake.reader import Snapshot, at_positions

__all__ = [
    "AGES",
    "STATES",
    "Criteria",
    "HeldSummary",
    "Listing",
    "Names",
    "decision_names",
    "find_decisions",
    "held_decisions",
    "held_for",
]

MAX_ROWS: Final = 200
"""The most rows of a summary, and the most names of a list."""

MAX_PAGE: Final = 1000
"""The most decisions of a page."""

AGES: Final = ("under 1 day", "1 to 7 days", "1 to 4 weeks", "4 to 13 weeks", "over 13 weeks")
"""The ranges of how long a decision has been held."""

_TICK: Final = timedelta(milliseconds=1)
_YOUNGER: Final = (timedelta(days=1), timedelta(days=7), timedelta(weeks=4), timedelta(weeks=13))

_EQUAL: Final = ("policy_version", "reason_code", "rule")
"""The criteria that compare with a column of cases."""

SHORTEST_REF: Final = 8
"""The number of characters of a decision's id that are enough to find it. Tables show as many."""

_FROM_DECISIONS: Final = ("request_id", "target_system", "target_object_id")
_SCHEMA: Final[Mapping[str, pl.DataType | type[pl.DataType]]] = MappingProxyType(
    {
        **schema("cases", ("position", "decision_id")),
        **schema("decisions", ("request_id",)),
        **schema("cases", ("created_at", "policy_id", "policy_version", "verdict", "application_verdict", "action")),
        **schema("cases", ("reason_code", "rule")),
        **schema("decisions", ("target_system", "target_object_id")),
        **schema("cases", ("execution_status", "outcome_status")),
        "state": pl.String,
        "erased": pl.Boolean,
    }
)
_FROM_CASES: Final = tuple(name for name in _SCHEMA if name in CASES)

_BOUNDS: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        **dict.fromkeys(("policy_id", "policy_version", "reason_code", "rule", "target", "ref"), Text()),
        "verdict": OneOf(VERDICTS),
        "state": OneOf(STATES),
        "outcome_status": OneOf(Standing._fields),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """The criteria that a decision must meet to be found. None allows any value.

    Attributes:
        policy_id: Its policy.
        policy_version: Its policy version.
        verdict: `yes`, `no`, or `review`.
        reason_code: Its reason code.
        rule: What decided, as in the evidence: `rule:<id>`, `rule:default`, `schema:failed`, or `advisory`.
        since: It was made at this moment or later. A date, or a datetime without a time zone, is in UTC.
        until: It was made before this moment. A date includes its whole day.
        state: One of `STATES`.
        outcome_status: The status of its latest outcome; `unreported` without an outcome.
        target: Its complete target_object_id.
        ref: Its complete decision_id or request_id; or the beginning or end of its decision_id, with at least
            `SHORTEST_REF` characters.
        erased: Whether its facts were erased.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`: no decision can have the value of a criterion.
    """

    policy_id: str | None = None
    policy_version: str | None = None
    verdict: str | None = None
    reason_code: str | None = None
    rule: str | None = None
    since: date | None = None
    until: date | None = None
    state: str | None = None
    outcome_status: str | None = None
    target: str | None = None
    ref: str | None = None
    erased: bool | None = None

    def __post_init__(self) -> None:
        for name, bound in _BOUNDS.items():
            require(name, getattr(self, name), bound, optional=True)
        span(self.since, self.until)
        if not isinstance(self.erased, bool | None):
            raise refusal(f"erased is {shown(self.erased)}: give True or False, or None for all.")


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the decisions that meet some criteria.

    Attributes:
        frame: The page, latest decisions first unless asked otherwise, `{position, decision_id, request_id, created_at,
            policy_id, policy_version, verdict, application_verdict, action, reason_code, rule, target_system,
            target_object_id, execution_status, outcome_status, state, erased}`. Columns that the lake leaves out are
            null.
        total: The number of decisions that meet the criteria, on all pages.
        next_before: `before` of the page with older decisions; None if there are none.
        next_after: `after` of the page with newer decisions; None if there are none.
        newer: The number of matching decisions that are newer than the page.
        targets_kept: Whether the lake holds target_object_id. If it does not, `target` finds nothing.
    """

    frame: pl.DataFrame
    total: int
    next_before: int | None
    next_after: int | None
    newer: int
    targets_kept: bool


@dataclass(frozen=True, slots=True)
class HeldSummary:
    """The held decisions: their verdict is `review`, they are not advisory, and no execution receipt was reported.

    Attributes:
        frame: `{policy_id, reason_code, decisions, oldest_at, newest_at}`, most decisions first, at most 200 rows.
        ages: The number of decisions in each of `AGES`.
        decisions: The number of held decisions, also those of omitted rows.
        left_out: The number of omitted rows.
        outcomes: The number of held decisions that already have an outcome, by the status of the latest; most first.
    """

    frame: pl.DataFrame
    ages: Mapping[str, int]
    decisions: int
    left_out: int
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Names:
    """The names that occur in a scope's decisions, at most 200 of each kind, those with the most decisions first.

    Attributes:
        policies: The policies.
        versions: The versions of each policy and of `advisory`, in the order of their first decisions.
        reason_codes: The reason codes.
        rules: What decided.
        review_reasons: The reason codes of decisions with the verdict `review`, without advisory ones.
        advisory: The policy_ids of advisory decisions.
    """

    policies: Sequence[str]
    versions: Mapping[str, Sequence[str]]
    reason_codes: Sequence[str]
    rules: Sequence[str]
    review_reasons: Sequence[str]
    advisory: Sequence[str] = ()


def find_decisions(
    snapshot: Snapshot,
    criteria: Criteria,
    limit: int = 50,
    before: int | None = None,
    *,
    after: int | None = None,
    oldest_first: bool = False,
    among: pl.Series | None = None,
) -> Listing:
    """Finds a page of the decisions that meet some criteria, latest first.

    Args:
        snapshot: The scope's chain.
        criteria: The criteria.
        limit: The number of decisions of a page, 1 to 1,000.
        before: Only decisions before this chain position, the latest of them: `next_before` of a page.
        after: Only decisions after this chain position, the earliest of them: `next_after` of a page.
        oldest_first: Whether to list the earliest decisions first.
        among: Only decisions at these chain positions; None for all.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require_snapshot(snapshot)
    require("limit", limit, Whole(1, MAX_PAGE))
    for name, position in (("before", before), ("after", after)):
        require(name, position, Whole(1, 2**63 - 1), optional=True)
    cases = _cases(snapshot, criteria)
    wanted = cases if among is None else cases.filter(pl.col("position").is_in(among.implode()))
    matched = _matched(snapshot, wanted, criteria).select("position").collect(engine="streaming")["position"]
    page = _page(matched, limit, before, after, oldest_first=oldest_first)
    first, last = (None, None) if page.is_empty() else (int(page.min()), int(page.max()))  # type: ignore[arg-type]
    newer = 0 if last is None else int((matched > last).sum())
    return Listing(
        _rows(snapshot, cases, page, oldest_first=oldest_first),
        matched.len(),
        first if first is not None and (matched < first).any() else None,
        last if newer else None,
        newer,
        "target_object_id" not in snapshot.manifest.personal,
    )


def _page(matched: pl.Series, limit: int, before: int | None, after: int | None, *, oldest_first: bool) -> pl.Series:
    """The positions of a page: those next to the position that it continues from, or the first of the list."""
    if before is not None:
        matched = matched.filter(matched < before)
    if after is not None:
        matched = matched.filter(matched > after)
    from_oldest = oldest_first if before is None and after is None else before is None
    return matched.bottom_k(limit) if from_oldest else matched.top_k(limit)


def held_for(age: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """The period in which the decisions were made that have been held for a given time: its start, and its end
    (excluded).

    Args:
        age: One of `AGES`.
        now: The moment to which ages are measured, as for `held_decisions`. Without a time zone, it is in UTC.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require("age", age, OneOf(AGES))
    at = _taken_at(now)
    # Times have milliseconds, and what is as old as the longest age belongs to the next.
    ends = [None, *(_whole(at - younger) + _TICK for younger in _YOUNGER), None]
    index = AGES.index(age)
    return ends[index + 1], ends[index]


def held_decisions(snapshot: Snapshot, criteria: Criteria | None = None, *, now: datetime) -> HeldSummary:
    """Summarizes the held decisions by policy and reason.

    Args:
        snapshot: The scope's chain.
        criteria: Further criteria, as for `find_decisions`. Its `state` is always `held`. None for all.
        now: The moment to which ages are measured. Without a time zone, it is in UTC.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require_snapshot(snapshot)
    at = _taken_at(now)
    asked = replace(criteria or Criteria(), state="held")
    made = pl.col("created_at")
    younger = [pl.lit(value=False), *(made > at - age for age in _YOUNGER), pl.lit(value=True)]
    ages = [(within & ~less).sum().alias(name) for name, (less, within) in zip(AGES, pairwise(younger), strict=True)]
    groups = (
        _matched(snapshot, _cases(snapshot, asked), asked)
        .group_by("policy_id", "reason_code", "outcome_status")
        .agg(
            pl.len().cast(pl.Int64).alias("decisions"),
            made.min().alias("oldest_at"),
            made.max().alias("newest_at"),
            *ages,
        )
        .collect(engine="streaming")
    )
    rows = (
        groups.group_by("policy_id", "reason_code")
        .agg(pl.col("decisions").sum(), pl.col("oldest_at").min(), pl.col("newest_at").max())
        .sort("decisions", "policy_id", "reason_code", descending=[True, False, False])
    )
    ended = groups.drop_nulls("outcome_status").group_by("outcome_status").agg(pl.col("decisions").sum())
    return HeldSummary(
        rows.head(MAX_ROWS),
        {name: int(groups[name].sum()) for name in AGES},
        int(rows["decisions"].sum()),
        max(rows.height - MAX_ROWS, 0),
        dict(ended.sort("decisions", "outcome_status", descending=[True, False]).iter_rows()),
    )


def _taken_at(now: datetime) -> datetime:
    at = moment("now", now)
    if at is None:
        raise refusal("now is None: give a datetime, the moment to which ages are measured.")
    return at


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def decision_names(snapshot: Snapshot) -> Names:
    """Lists the names to search by.

    Args:
        snapshot: The scope's chain.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    require_snapshot(snapshot)
    groups = (
        snapshot.cases()
        .group_by("policy_id", "policy_version", "reason_code", "rule", "verdict")
        .agg(pl.len().alias("decisions"), pl.col("position").min().alias("first"))
        .collect(engine="streaming")
    )
    binding = groups.filter(~IS_ADVISORY)
    policies, advisory = _most(binding, "policy_id"), _most(groups.filter(IS_ADVISORY), "policy_id")
    named = list(dict.fromkeys([*policies, *advisory]))
    kept = groups.filter(pl.col("policy_id").is_in(named))
    by_policy = {str(key[0]): part for key, part in kept.partition_by("policy_id", as_dict=True).items()}
    return Names(
        policies,
        {policy_id: _by_first_use(by_policy[policy_id]) for policy_id in named},
        # Imported cases need not have one.
        _most(groups.drop_nulls("reason_code"), "reason_code"),
        _most(groups, "rule"),
        _most(binding.filter(pl.col("verdict") == "review").drop_nulls("reason_code"), "reason_code"),
        advisory,
    )


def _cases(snapshot: Snapshot, criteria: Criteria) -> pl.LazyFrame:
    """The cases of some criteria's policy, period and verdict, which need the fewest files."""
    return snapshot.slice(criteria.since, criteria.until, criteria.verdict).cases(criteria.policy_id)


def _matched(snapshot: Snapshot, cases: pl.LazyFrame, criteria: Criteria) -> pl.LazyFrame:
    for name in _EQUAL:
        if (value := getattr(criteria, name)) is not None:
            cases = cases.filter(pl.col(name) == value)
    if criteria.state is not None:
        cases = cases.filter(has_state(criteria.state))
    if criteria.outcome_status is not None:
        status = pl.col("outcome_status")
        unreported = criteria.outcome_status == "unreported"
        cases = cases.filter(status.is_null() if unreported else status == criteria.outcome_status)
    if criteria.erased is not None:
        erasures = snapshot.table("erasures").select(pl.col("decision_position").alias("position"))
        cases = cases.join(erasures, on="position", how="semi" if criteria.erased else "anti")
    if criteria.target is None and criteria.ref is None:
        return cases
    positions = _decisions_with(snapshot, criteria)
    named = pl.DataFrame({"position": positions}).lazy()
    return cases.filter(at_positions(positions)).join(named, on="position", how="semi")


def _decisions_with(snapshot: Snapshot, criteria: Criteria) -> pl.Series:
    """The positions of the decisions with a target and a reference, which cases do not hold."""
    decisions = snapshot.table("decisions")
    if criteria.policy_id is not None:
        decisions = decisions.filter(pl.col("policy_id") == criteria.policy_id)
    if criteria.target is not None:
        decisions = decisions.filter(pl.col("target_object_id") == criteria.target)
    if criteria.ref is not None:
        decisions = decisions.filter(_refers(criteria.ref))
    return decisions.select("position").collect(engine="streaming")["position"]


def _refers(ref: str) -> pl.Expr:
    """Whether a decision has a reference."""
    decision_id = pl.col("decision_id")
    named = (decision_id == ref) | (pl.col("request_id") == ref)
    if len(ref) < SHORTEST_REF:
        return named
    return named | decision_id.str.ends_with(ref) | decision_id.str.starts_with(ref)


def _rows(snapshot: Snapshot, cases: pl.LazyFrame, page: pl.Series, *, oldest_first: bool) -> pl.DataFrame:
    """The decisions at the positions of a page, in its order."""
    if page.is_empty():
        return pl.DataFrame(schema=dict(_SCHEMA))
    erasures = snapshot.table("erasures").filter(pl.col("decision_position").is_in(page.implode()))
    told, decisions, erased = pl.collect_all(
        [
            cases.filter(at_positions(page)).select(*_FROM_CASES, state().alias("state")),
            snapshot.at("decisions", page).select("position", *_FROM_DECISIONS),
            erasures.select("decision_position"),
        ],
        engine="streaming",
    )
    return (
        told.join(decisions, on="position", how="left")
        .with_columns(pl.col("position").is_in(erased["decision_position"].implode()).alias("erased"))
        .select(list(_SCHEMA))
        .sort("position", descending=not oldest_first)
    )


def _most(groups: pl.DataFrame, name: str) -> list[str]:
    """The names in a column that the most decisions have."""
    counted = groups.drop_nulls(name).group_by(name).agg(pl.col("decisions").sum())
    return counted.sort("decisions", name, descending=[True, False])[name].head(MAX_ROWS).to_list()


def _by_first_use(groups: pl.DataFrame) -> list[str]:
    """The versions that the most decisions have, in the order of their first decisions."""
    kept = groups.filter(pl.col("policy_version").is_in(_most(groups, "policy_version")))
    first = kept.group_by("policy_version").agg(pl.col("first").min())
    return first.sort("first")["policy_version"].to_list()
