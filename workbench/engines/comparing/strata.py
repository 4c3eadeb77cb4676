"""Groups let-through decisions into like cases, by the facts that a policy's rulebooks test or that a history has.

Cases are alike if each of these facts lies in the same bin (`bins`). `choosing` selects the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson
import polars as pl

from gate.policy.effectiveness import LET_THROUGH, UNKNOWN, Footing, Standing
from gate.policy.standardization import Groups, design_effect
from gate.policy.versions import Cells
from workbench.engines.comparing.bins import Bins, Tested
from workbench.engines.comparing.choosing import SUCCEEDED, as_tested, one_by_one, shares
from workbench.engines.slicing import taken
from workbench.engines.wording import joined
from workbench.facts import find_typed, number_of, string_of, tests_of, type_of, with_fields
from workbench.kept import Kept
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

MAX_KNOWN: Final = 40
"""How many facts are looked at: those that the most rulebooks test, or, of imported cases, the first by name."""

_IS_LET_THROUGH: Final = pl.col("disposition") == LET_THROUGH
_IS_TERMINAL: Final = pl.col("outcome_status").is_in(Standing._fields[:4]).fill_null(value=False)
_MINUTE_MS: Final = 60_000
_MOST_CUTS: Final = 20


@dataclass(frozen=True, slots=True)
class Strata:
    """Let-through decisions with a terminal outcome, by version and stratum.

    Attributes:
        cells: The number of successes, and of cases.
        met: By version and stratum, the number of decisions that let the action through, out of all with known facts.
        footing: The facts that separate them.
        bins: The bins of the facts.
    """

    cells: Cells
    met: Cells
    footing: Footing
    bins: Mapping[str, Bins]

    def described(self, stratum: str) -> str:
        """What the cases of a stratum share: `amount above 100 and channel "web"`."""
        numbers = stratum.split(",") if self.footing.facts else []
        return joined([self.bins[field].holds(int(at)) for field, at in zip(self.footing.facts, numbers, strict=True)])


def tested_facts(snapshot: Snapshot, policy_id: str) -> dict[str, Tested]:
    """The facts that a policy's rulebooks test, those of the most rulebooks, sorted; of imported cases, which no
    rulebook decided, those that the set has.
    """
    if snapshot.imported is not None:
        return {field: Tested((), ()) for field in snapshot.fact_fields()[:MAX_KNOWN]}
    rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id).select("body").collect()
    testing: dict[str, int] = {}
    values: dict[str, set[object]] = {}
    for text in rulebooks["body"]:
        tests = list(tests_of(orjson.loads(text)))
        for field in {test["field"] for test in tests}:
            testing[field] = testing.get(field, 0) + 1
        for test in tests:
            values.setdefault(test["field"], set()).update(_compared_with(test.get("value")))
    chosen = sorted(testing, key=lambda field: (-testing[field], field))[:MAX_KNOWN]
    return {field: _tested(values[field]) for field in sorted(chosen)}


def _compared_with(value: object) -> Iterable[object]:
    each = value if isinstance(value, list) else [value]
    return [of for of in each if isinstance(of, int | float | str) and not isinstance(of, bool)]


def _tested(values: set[object]) -> Tested:
    numbers = sorted({float(value) for value in values if isinstance(value, int | float)})
    texts = sorted(value for value in values if isinstance(value, str))
    return Tested(tuple(numbers[:_MOST_CUTS]), tuple(texts[:_MOST_CUTS]))


def strata(
    snapshot: Snapshot, policy_id: str, cases: pl.DataFrame, one_of: int, kept: Kept, verdict: str | None = None
) -> Strata:
    """The decisions of a policy, by version and stratum.

    Args:
        snapshot: The scope's chain, with decisions of any verdict.
        policy_id: The policy.
        cases: The decisions: {position, created_at, policy_version, verdict, outcome_status, disposition}; of many,
            those that `slicing.taken` takes.
        one_of: Of so many decisions they are one.
        kept: What was read of the lake's files before.
        verdict: Only decisions with this verdict are compared. What a version lets through, and what it stops, is
            asked of all.
    """
    is_asked = pl.lit(value=True) if verdict is None else (pl.col("verdict") == verdict).fill_null(value=False)
    tested = tested_facts(snapshot, policy_id)
    rows = cases.select(
        "position",
        "policy_version",
        (pl.col("outcome_status") == "succeeded").alias(SUCCEEDED),
        (pl.col("created_at").cast(pl.Int64) // _MINUTE_MS).alias("minute"),
        _IS_LET_THROUGH.alias("let_through"),
        (pl.col("disposition") != UNKNOWN).alias("is_known"),
        (_IS_LET_THROUGH & _IS_TERMINAL & is_asked).alias("is_compared"),
    )
    wanted = rows.filter("is_compared").height
    if tested:
        rows = rows.join(_facts(snapshot, policy_id, tuple(tested), one_of, kept), on="position", how="inner")
    compared = rows.filter("is_compared")
    apart = as_tested(rows, tested) if snapshot.imported is None else one_by_one(rows, tested)
    footing = Footing(
        apart.facts,
        apart.left_out,
        decisions=compared.height,
        unknown=wanted - compared.height,
        strata=len({stratum for of in apart.cells.values() for stratum in of}),
        sampled_one_of=one_of,
        design_effect=design_effect(_groups(compared)),
        weaker=apart.weaker,
        ids=apart.ids,
        parting=apart.parting,
        pooled=tuple(field for field in apart.facts if apart.bins[field].pooled),
    )
    known = apart.binned.filter("is_known")
    met = shares(known, apart.facts, "let_through") if apart.facts else {}
    return Strata(apart.cells, met, footing, apart.bins)


def _facts(snapshot: Snapshot, policy_id: str, fields: tuple[str, ...], one_of: int, kept: Kept) -> pl.DataFrame:
    columns = [column for of in fields for column in (type_of(of), number_of(of), string_of(of))]

    def known(part: Snapshot) -> pl.LazyFrame:
        return part.facts(fields, policy_id).filter(pl.col("known") & taken(one_of))

    # Most lakes have every field in columns; to ask first whether this one does takes longer than to read them.
    rows = kept.of(
        snapshot, "facts", (policy_id, fields, one_of), lambda part: known(part).select("position", *columns)
    )
    if not any(rows.select(type_of(of)).to_series().null_count() for of in fields):
        return rows
    withheld = Personal.of(snapshot.manifest.personal).facts
    read = with_fields(known(snapshot), fields, withheld, typed=find_typed(known(snapshot), fields, pl.col("known")))
    return read.select("position", *columns).collect(engine="streaming")


def _groups(rows: pl.DataFrame) -> list[Groups]:
    """Of each version the groups of decisions that were made in the same minute."""
    part, whole = pl.col("part"), pl.col("whole")
    groups = rows.group_by("policy_version", "minute").agg(
        pl.col("succeeded").sum().cast(pl.Int64).alias("part"), pl.len().cast(pl.Int64).alias("whole")
    )
    sums = [whole.sum(), part.sum(), (whole * whole).sum(), (part * whole).sum(), (part * part).sum()]
    counted = groups.group_by("policy_version").agg(
        pl.len().cast(pl.Int64).alias("groups"), *(of.alias(str(at)) for at, of in enumerate(sums))
    )
    return [Groups(*row[1:]) for row in counted.sort("policy_version").iter_rows()]
