"""What a dry run counts, a stretch of the chain at a time: groups of decisions alike, with the latest of each.

A figure is a sum over groups, and the latest decisions of a sum are among the latest of its groups. So ten positions a
group are all that has to be kept of the decisions themselves, however many there are. Groups are bounded too: names
that callers choose, such as versions and texts, are kept apart up to a number of them, those that occur first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from gate.policy.confidence import Counts
from gate.policy.means import Sums
from gate.policy.questions import VERDICTS
from workbench.migration.deciding import APPROVED, BLOCKED, CHANGED, SAME, Told, alike
from workbench.migration.source import OUTCOME
from workbench.values import exact_sums

EXAMPLES: Final = 10
"""How many decisions stand behind a figure at most."""

MAX_NAMES: Final = 10_000
"""How many names of one kind are kept apart, those that occur first: versions, or the texts of a field."""

MAX_OUTCOMES: Final = 1_000
"""How many outcomes of past decisions are kept apart where there is no base, those that occur first."""

_POSITIONS: Final = pl.List(pl.Int64)
_COUNTED: Final = {"decisions": pl.Int64(), "positions": _POSITIONS}
FATES: Final = 8
"""More than there are fates."""

_STATUSES: Final = 8
_WAS: Final = 4


def grouped(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Decisions in the order of the chain, by keys: how many, and the positions of the latest."""
    return rows.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias("decisions"), pl.col("position").tail(EXAMPLES).alias("positions")
    )


def together(groups: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Groups that have their keys in common as one."""
    return groups.group_by(keys).agg(pl.col("decisions").sum(), latest())


def latest(holds: pl.Expr | None = None) -> pl.Expr:
    """The latest positions of some groups together, of those alone for which something holds."""
    positions = pl.col("positions") if holds is None else pl.col("positions").filter(holds)
    return positions.explode(empty_as_null=False, keep_nulls=False).sort().tail(EXAMPLES).alias("positions")


class Groups:
    """Decisions by a whole number and by what becomes of them, the two in one key: a group is then found twice as fast.

    Attributes:
        frame: `key`, `decisions` and `positions`; each key once.
    """

    def __init__(self) -> None:
        """Begins with none."""
        self.frame = pl.DataFrame(schema={"key": pl.Int64, **_COUNTED})

    def add(self, rows: pl.DataFrame) -> None:
        """Takes the decisions of a stretch: `key` and `position`, in the order of the chain."""
        found = grouped(rows, "key").with_columns(pl.col("key").cast(pl.Int64))
        self.frame = together(pl.concat([self.frame, found]), "key")

    def told(self) -> pl.DataFrame:
        """The groups as `of`, `fate`, `decisions` and `positions`."""
        of = pl.col("key") // FATES
        return self.frame.select(of.alias("of"), (pl.col("key") - of * FATES).alias("fate"), *_COUNTED)


def keyed(of: pl.Expr) -> pl.Expr:
    """The key of `Groups` for rows with `fate`."""
    return (of.cast(pl.Int32) * FATES + pl.col("fate").cast(pl.Int32)).alias("key")


class Names:
    """Decisions by a name and a small number, with a bound on how many names there are: those that occur first.

    Attributes:
        beyond: `number`, `decisions` and `positions` of the names that are not kept apart.
    """

    def __init__(self, most: int = MAX_NAMES) -> None:
        """Takes how many names are kept apart."""
        self.beyond = pl.DataFrame(schema={"number": pl.UInt8, **_COUNTED})
        self._groups = pl.DataFrame(schema={"name": pl.String, "number": pl.UInt8, **_COUNTED})
        self._admitted = pl.DataFrame(schema={"name": pl.String})
        self._most: Final = most

    @property
    def frame(self) -> pl.DataFrame:
        """`name`, `number`, `decisions` and `positions`; each pair once."""
        return self._groups

    def add(self, rows: pl.DataFrame) -> None:
        """Takes the decisions of a stretch, in the order of the chain: name, number, and position."""
        found = rows.group_by("name", "number").agg(
            pl.len().cast(pl.Int64).alias("decisions"),
            pl.col("position").tail(EXAMPLES).alias("positions"),
            pl.col("position").first().alias("first"),
        )
        new = found.join(self._admitted, on="name", how="anti", nulls_equal=True)
        if not new.is_empty():
            order = new.group_by("name").agg(pl.col("first").min()).sort("first").select("name")
            self._admitted = pl.concat([self._admitted, order.head(self._most - self._admitted.height)])
            others = new.join(self._admitted, on="name", how="anti", nulls_equal=True)
            self.beyond = together(pl.concat([self.beyond, others.select(self.beyond.columns)]), "number")
            found = found.join(self._admitted, on="name", how="semi", nulls_equal=True)
        self._groups = together(pl.concat([self._groups, found.select(self._groups.columns)]), "name", "number")


class Outcomes:
    """The outcomes of past decisions as numbers, in the order in which they first occur.

    Beyond `most` of them, only their verdicts are kept apart.
    """

    def __init__(self, most: int = MAX_OUTCOMES) -> None:
        """Begins with none."""
        self._most: Final = most
        self._known = pl.DataFrame(schema={**dict.fromkeys(OUTCOME, pl.String), "left": pl.UInt32})

    def numbers(self, rows: pl.DataFrame) -> pl.Series:
        """The numbers of the outcomes of some decisions, in the order of the chain."""
        named = rows.select(pl.col(name).cast(pl.String) for name in OUTCOME)
        first = named.with_row_index("at").unique(OUTCOME, keep="first", maintain_order=True)
        new = first.join(self._known, on=OUTCOME, how="anti", nulls_equal=True).sort("at")
        new = new.head(self._most - self._known.height)
        numbered = new.drop("at").with_row_index("left", offset=self._known.height).select(self._known.columns)
        self._known = pl.concat([self._known, numbered.cast(self._known.schema)])
        found = named.join(self._known, on=OUTCOME, how="left", nulls_equal=True, maintain_order="left")
        others = pl.col("verdict").replace_strict(
            {verdict: self._most + at for at, verdict in enumerate(VERDICTS)}, return_dtype=pl.UInt32
        )
        return found.select(pl.coalesce("left", others)).to_series().alias("left")

    @property
    def told(self) -> list[Told]:
        """The outcomes by their numbers; None for the members of those that are not kept apart."""
        known: list[Told] = [alike(row[:-1]) for row in self._known.iter_rows()]
        unused: list[Told] = [(None,) * len(OUTCOME)] * (self._most - len(known))
        others: list[Told] = [(verdict, *(None,) * (len(OUTCOME) - 1)) for verdict in VERDICTS]
        return [*known, *unused, *others]


@dataclass(slots=True)
class Latest:
    """Some decisions: how many, and the positions of the latest."""

    decisions: int = 0
    positions: list[int] = field(default_factory=list)

    def add(self, positions: pl.Series, decisions: int) -> None:
        """Takes how many decisions of a stretch there are, and the positions of some, the latest among them."""
        self.decisions += decisions
        self.positions = [*self.positions, *positions.tail(EXAMPLES).to_list()][-EXAMPLES:]


@dataclass(slots=True)
class Money:
    """The values of the metric of some decisions."""

    sums: Sums = field(default_factory=Sums)
    latest: Latest = field(default_factory=Latest)


class Cells:
    """The decisions by the outcomes of both rulebooks, the verdict as it was, what came of them, and what becomes."""

    def __init__(self, thens: int) -> None:
        """Takes how many outcomes the candidate has."""
        self._thens: Final = thens
        self._groups: Final = Groups()

    def add(self, rows: pl.DataFrame) -> None:
        """Takes the decisions of a stretch: cell (null if it cannot be decided again), outcome_status, verdict, fate,
        and position.
        """
        key = pl.col("cell").fill_null(0)
        parts = (
            (_STATUSES, pl.col("outcome_status").to_physical().fill_null(len(Counts._fields))),
            (_WAS, pl.col("verdict").to_physical().fill_null(len(VERDICTS))),
            (FATES, pl.col("fate")),
        )
        for size, part in parts:
            key = key * size + part.cast(pl.UInt32)
        self._groups.add(rows.select(key.alias("key"), "position"))

    @property
    def frame(self) -> pl.DataFrame:
        """The groups: left, then, outcome_status, was_verdict, fate, decisions, and positions.

        `was_verdict` is null if the original decision of an imported case is unknown. `left` and `then` mean nothing if
        the decision cannot be decided again.
        """
        key = pl.col("key")
        columns = []
        for name, size in (("fate", FATES), ("was", _WAS), ("status", _STATUSES), ("then", self._thens)):
            columns.append((key % size).alias(name))
            key = key // size
        return self._groups.frame.select(key.alias("left"), *columns, *_COUNTED).with_columns(
            pl.lit(pl.Series([*Counts._fields, "unreported"])).gather(pl.col("status")).alias("outcome_status"),
            pl.lit(pl.Series([*VERDICTS, None])).gather(pl.col("was")).alias("was_verdict"),
        )


DIFFERS: Final = FATES
"""What is added to the number of a fate where the decision was decided otherwise than the base decides it."""


@dataclass(slots=True, eq=False)
class Tally:
    """What was counted so far.

    Attributes:
        cells: The decisions by outcomes.
        versions: By the version that decided; the number is that of the fate, with `DIFFERS`.
        weeks: By the week in which they were decided, in days since 1970.
        regions: By region of the difference.
        missing: By field of the candidate, the decisions that lack it.
        money: By the verdicts of base and candidate, the values of the metric.
        reviews: By the candidate's verdict and the resolution, `held` without one, the decisions that were held and on
            whose verdict base and candidate differ.
        known: How many decisions have facts that are known.
    """

    cells: Cells
    versions: Names = field(default_factory=Names)
    weeks: Groups = field(default_factory=Groups)
    regions: dict[int, Latest] = field(default_factory=dict)
    missing: dict[str, Latest] = field(default_factory=dict)
    money: dict[tuple[str, str], Money] = field(default_factory=dict)
    reviews: Counter[tuple[str, str]] = field(default_factory=Counter)
    known: int = 0

    def add_reviews(self, rows: pl.DataFrame) -> None:
        """Takes decisions of a stretch that were held: then_verdict and resolution."""
        for then, resolution, decisions in rows.group_by("then_verdict", "resolution").len().iter_rows():
            self.reviews[then, resolution or "held"] += decisions

    def add_money(self, rows: pl.DataFrame) -> None:
        """Takes the values of a stretch, none of them null: base_verdict, then_verdict, value, and position."""
        pairs = ("base_verdict", "then_verdict")
        for (before, after), sums in exact_sums(rows, pairs).items():
            found = self.money.setdefault((before, after), Money())
            found.sums += sums
        for (before, after), part in rows.select(*pairs, "position").partition_by(pairs, as_dict=True).items():
            self.money[str(before), str(after)].latest.add(part["position"], part.height)


REDECIDED: Final = pl.col("fate") >= SAME
"""Whether a decision can be decided again."""

IS_CHANGED: Final = pl.col("fate") >= CHANGED
"""Whether the candidate decides it otherwise."""

TO_YES: Final = pl.col("fate") == APPROVED
"""Whether the candidate newly approves it."""

FROM_YES: Final = pl.col("fate") == BLOCKED
"""Whether the candidate approves it no more."""
