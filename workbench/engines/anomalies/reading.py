"""What the anomaly report reads of the lake, in queries whose results over unchanged files are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import polars as pl

from workbench.engines.anomalies.broken import ACTED, ENDED
from workbench.engines.anomalies.choice import Choice
from workbench.engines.anomalies.groups import age_in_days, grouped
from workbench.engines.anomalies.minutes import by_minute, minute_of
from workbench.engines.slicing import taken
from workbench.facts import find_typed, number_of, string_of, type_of, with_fields
from workbench.kept import Asked, Kept, Query
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

_BY: Final = ("week", "policy_version", "verdict", "reason_code", "outcome_status", "age")
_TERMINAL: Final = ENDED & ACTED
_COUNTED: Final = (
    pl.len().cast(pl.Int64).alias("decisions"),
    pl.col("created_at").min().alias("first"),
    pl.col("created_at").max().alias("last"),
)
_ENDS: Final = (pl.col("minute").min().alias("low"), pl.col("minute").max().alias("high"))
_ADDED: Final = (pl.col("decisions").sum(), pl.col("first").min(), pl.col("last").max())


class Totals(NamedTuple):
    """The counts of all decisions.

    Attributes:
        counts: {week, policy_version, verdict, reason_code, outcome_status, age, decisions, first, last}. For
            let-through actions, `age` is the number of days from the decision to a terminal outcome. For others, status
            and age are null.
        minutes: The decisions of each minute, and the number dated to a whole quarter of an hour.
        names: For each metric, the number of its values and the smallest one.
    """

    counts: pl.DataFrame
    minutes: pl.DataFrame
    names: pl.DataFrame


class Samples(NamedTuple):
    """The sample of decisions.

    Attributes:
        grouped: The decisions of sampled minutes, from `groups.grouped`.
        made: The dates of decisions whose metrics are examined by week: {position, created_at, week, minute}.
        values: The values of their outcomes.
        facts: Their facts: the week, the minute, the version, and the columns of some fields.
    """

    grouped: pl.DataFrame
    made: pl.DataFrame
    values: pl.DataFrame
    facts: pl.DataFrame


class Reading:
    """The decisions that are looked at, and what is known of them."""

    def __init__(self, snapshot: Snapshot, choice: Choice, kept: Kept) -> None:
        """Takes the chain, with the decisions of other policies, the choice, and what was counted before."""
        self._snapshot = snapshot
        self._choice = choice
        self._policy_id = choice.question.policy_id
        # Where a limit begins moves with each decision.
        self._kept = kept if choice.after is None else Kept(0)

    def totals(self) -> Totals:
        """What is counted of all decisions."""
        said = (
            pl.when(_TERMINAL).then(pl.col("outcome_status")).alias("outcome_status"),
            pl.when(_TERMINAL).then(age_in_days()).alias("age"),
        )
        least = (pl.len().cast(pl.Int64).alias("values"), pl.col("value").min().alias("least"))
        counts, minutes, names = self._kept.several(
            self._snapshot,
            [
                self._of_cases("counts", lambda cases: cases.with_columns(said).group_by(_BY).agg(_COUNTED)),
                self._of_cases("minutes", lambda cases: by_minute(cases).with_columns(_ENDS)),
                self._of_metrics("names", lambda metrics: metrics.group_by("name").agg(least)),
            ],
        )
        return Totals(
            counts=counts.group_by(_BY).agg(_ADDED),
            minutes=_together(minutes),
            names=names.group_by("name").agg(pl.col("values").sum(), pl.col("least").min()),
        )

    def samples(self, fields: Sequence[str], one_of: int, *, untimed: bool) -> Samples:
        """What is taken of one of so many decisions.

        Args:
            fields: The fields of facts.
            one_of: Of how many decisions one is taken.
            untimed: Whether minutes are not known.
        """
        minute = minute_of(untimed=untimed)
        made = ("position", "created_at", "week", minute)
        measured = ("position", "name", "value", "reported_at", "policy_version")
        columns = [column for of in fields for column in (type_of(of), number_of(of), string_of(of))]
        week = pl.col("created_at").dt.truncate("1w").dt.date().alias("week")

        def known(part: Snapshot) -> pl.LazyFrame:
            return self._choice.of(part.facts(fields, self._policy_id)).filter(pl.col("known") & taken(one_of))

        # Most lakes have every field in columns; to ask first whether this one does takes longer than to read them.
        grouped_, made_, values, facts = self._kept.several(
            self._snapshot,
            [
                self._of_cases(("grouped", one_of, untimed), lambda cases: grouped(cases, one_of, untimed=untimed)),
                self._of_cases(("made", one_of, untimed), lambda cases: cases.filter(taken(one_of)).select(made)),
                self._of_metrics(("values", one_of), lambda metrics: metrics.filter(taken(one_of)).select(measured)),
                self._asked(
                    "facts",
                    (tuple(fields), one_of, untimed),
                    lambda part: known(part).select(week, minute, "policy_version", *columns),
                ),
            ],
        )
        if any(facts.select(type_of(of)).to_series().null_count() for of in fields):
            # Which columns a decision's facts have depends on the rulebooks of those that it was exported with; what
            # was not extracted is read from their JSON.
            withheld = Personal.of(self._snapshot.manifest.personal).facts
            every = known(self._snapshot)
            read = with_fields(every, fields, withheld, typed=find_typed(every, fields, pl.col("known")))
            facts = read.select(week, minute, "policy_version", *columns).collect(engine="streaming")
        return Samples(grouped_, made_, values, facts)

    def _of_cases(self, name: Hashable, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Asked:
        return self._asked("cases", name, lambda part: query(self._choice.of(part.cases(self._policy_id))))

    def _of_metrics(self, name: Hashable, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Asked:
        return self._asked("metrics", name, lambda part: query(self._choice.of(part.metrics(self._policy_id))))

    def _asked(self, table: str, name: Hashable, query: Query) -> Asked:
        return Asked(table, ("anomalies", self._policy_id, self._choice.question.policy_version, table, name), query)


def _together(minutes: pl.DataFrame) -> pl.DataFrame:
    """The decisions of each minute, of the minutes of several files: only those where two of them overlap are added."""
    ends = sorted(minutes.select("low", "high").unique().iter_rows())
    shared = [(of[0], before[1]) for before, of in pairwise(_reaching(ends)) if of[0] <= before[1]]
    columns = ("minute", "decisions", "round")
    if not shared:
        return minutes.select(columns)
    inside = pl.any_horizontal(*(pl.col("minute").is_between(low, high) for low, high in shared))
    twice = minutes.filter(inside).group_by("minute").agg(pl.col("decisions", "round").sum())
    return pl.concat([minutes.filter(~inside).select(columns), twice.select(columns)])


def _reaching(ends: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where each begins, and how far it and those before it reach."""
    reached = None
    for low, high in ends:
        reached = high if reached is None else max(reached, high)
        yield low, reached
