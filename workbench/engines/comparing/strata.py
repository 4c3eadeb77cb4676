"""Like cases: let-through decisions, told apart by the facts that a policy's rulebooks test, or that a history has.

Cases are alike where each of these facts lies in one bin. Numbers are cut where a rulebook compares them, and at their
fifths, which takes away nine tenths of what one such fact distorts (W. G. Cochran, "The effectiveness of adjustment by
subclassification in removing bias in observational studies", Biometrics 24, 1968); texts have a bin for each of the
commonest, and for each that a rulebook names. Where so fine strata leave too few cases with a like one of another
version, numbers are cut only where a rulebook compares them, and texts told apart only where one names them.

No rulebook decided imported cases, so that none says where to cut and which facts matter. There the facts are left out
one by one instead: first those in which, taken alone, the fewest cases have a like one of another version, then those
of the most values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson
import polars as pl

from gate.policy.anomalies.statistics import Share
from gate.policy.effectiveness import LET_THROUGH, UNKNOWN, Footing, Standing
from gate.policy.standardization import Groups, design_effect
from gate.policy.versions import Cells
from workbench.engines.slicing import lower_quantiles, taken
from workbench.facts import ABSENT, WITHHELD, find_typed, number_of, string_of, tests_of, type_of, with_fields
from workbench.kept import Kept
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

MAX_FACTS: Final = 6
"""By how many facts cases are told apart, those that the most rulebooks test."""

MAX_KNOWN: Final = 40
"""Among how many facts of imported cases these are found, the first by name."""

LEAST_COMMON: Final = 0.8
"""The least share of cases with a like one of another version, where strata are as fine as they can be."""

MAX_CELLS: Final = 20_000
"""How many combinations of version and stratum are compared, at most, where strata are as fine as they can be."""

_SUCCEEDED: Final = "succeeded"
_IS_LET_THROUGH: Final = pl.col("disposition") == LET_THROUGH
_IS_TERMINAL: Final = pl.col("outcome_status").is_in(Standing._fields[:4]).fill_null(value=False)
_FIFTHS: Final = 5
_MINUTE_MS: Final = 60_000
_TEXTS: Final = 9
_MOST_CUTS: Final = 20


class Tested(NamedTuple):
    """What rulebooks compare a fact with.

    Attributes:
        numbers: Numbers, sorted.
        texts: Texts, sorted.
    """

    numbers: tuple[float, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Strata:
    """Let-through decisions with a terminal outcome, by version and stratum.

    Attributes:
        cells: How many succeeded, of how many.
        met: By version and stratum, how many decisions let the action through, of all those whose facts are known.
        footing: What they are told apart by.
    """

    cells: Cells
    met: Cells
    footing: Footing


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
    chosen = sorted(testing, key=lambda field: (-testing[field], field))[:MAX_FACTS]
    return {field: _tested(values[field]) for field in sorted(chosen)}


def _compared_with(value: object) -> Iterable[object]:
    each = value if isinstance(value, list) else [value]
    return [of for of in each if isinstance(of, int | float | str) and not isinstance(of, bool)]


def _tested(values: set[object]) -> Tested:
    numbers = sorted({float(value) for value in values if isinstance(value, int | float)})
    texts = sorted(value for value in values if isinstance(value, str))
    return Tested(tuple(numbers[:_MOST_CUTS]), tuple(texts[:_MOST_CUTS]))


def strata(snapshot: Snapshot, policy_id: str, cases: pl.DataFrame, one_of: int, kept: Kept) -> Strata:
    """The decisions of a policy, by version and stratum.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        cases: The decisions: {position, created_at, policy_version, outcome_status, disposition}; of many, those that
            `slicing.taken` takes.
        one_of: Of so many decisions they are one.
        kept: What was read of the lake's files before.
    """
    tested = tested_facts(snapshot, policy_id)
    rows = cases.select(
        "position",
        "policy_version",
        (pl.col("outcome_status") == "succeeded").alias(_SUCCEEDED),
        (pl.col("created_at").cast(pl.Int64) // _MINUTE_MS).alias("minute"),
        _IS_LET_THROUGH.alias("let_through"),
        (pl.col("disposition") != UNKNOWN).alias("is_known"),
        (_IS_LET_THROUGH & _IS_TERMINAL).alias("is_compared"),
    )
    wanted = rows.filter("is_compared").height
    if tested:
        rows = rows.join(_facts(snapshot, policy_id, tuple(tested), one_of, kept), on="position", how="inner")
    compared = rows.filter("is_compared")
    apart = _as_tested(rows, tested) if snapshot.imported is None else _one_by_one(rows, tested)
    footing = Footing(
        apart.facts,
        apart.left_out,
        decisions=compared.height,
        unknown=wanted - compared.height,
        strata=len({stratum for of in apart.cells.values() for stratum in of}),
        sampled_one_of=one_of,
        design_effect=design_effect(_groups(compared)),
    )
    known = apart.binned.filter("is_known")
    return Strata(apart.cells, _shares(known, apart.facts, "let_through") if apart.facts else {}, footing)


class _Apart(NamedTuple):
    """Cases, told apart by some facts and not by others."""

    facts: tuple[str, ...]
    left_out: tuple[str, ...]
    cells: Cells
    binned: pl.DataFrame


def _as_tested(rows: pl.DataFrame, tested: Mapping[str, Tested]) -> _Apart:
    """By fine bins of each fact, or, where these leave too few like cases, as rulebooks test the facts."""
    fine = _binned(rows, tested, fine=True)
    telling = _telling(fine, tested)
    cells = _cells(fine, telling)
    if _is_enough(cells):
        return _Apart(telling, (), cells, fine)
    coarse = _binned(rows, tested, fine=False)
    kept = _telling(coarse, tested)
    return _Apart(kept, tuple(field for field in telling if field not in kept), _cells(coarse, kept), coarse)


def _one_by_one(rows: pl.DataFrame, known: Mapping[str, Tested]) -> _Apart:
    """By fine bins of as many facts as leave enough like cases."""
    binned = _binned(rows, known, fine=True)
    telling = _telling(binned, known)
    kept = sorted(telling, key=lambda field: _rank(binned, field))[:MAX_FACTS]
    cells = _cells(binned, sorted(kept))
    while kept and not _is_enough(cells):
        kept.pop()
        cells = _cells(binned, sorted(kept))
    return _Apart(tuple(sorted(kept)), tuple(field for field in telling if field not in kept), cells, binned)


def _rank(binned: pl.DataFrame, field: str) -> tuple[int, int, str]:
    """The order of choice: the facts in which most cases have a like one first, then those of the fewest values."""
    compared = binned.filter("is_compared")
    versions = pl.col("policy_version").n_unique()
    alike = compared.group_by(_bin_of(field)).agg(versions.alias("versions"), pl.len().alias("cases"))
    common = int(alike.filter(pl.col("versions") > 1)["cases"].sum())
    values = sum(compared.select(of(field)).to_series().n_unique() for of in (number_of, string_of))
    return -common, values, field


def _binned(rows: pl.DataFrame, tested: Mapping[str, Tested], *, fine: bool) -> pl.DataFrame:
    """All decisions, with the bins of each fact; where these lie, the compared ones say."""
    compared = rows.filter("is_compared")
    return rows.with_columns(_bin(compared, field, of, fine=fine).alias(_bin_of(field)) for field, of in tested.items())


def _telling(binned: pl.DataFrame, fields: Iterable[str]) -> tuple[str, ...]:
    """The facts that are not alike in all compared cases."""
    compared = binned.filter("is_compared")
    return tuple(field for field in fields if compared[_bin_of(field)].n_unique() > 1)


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


def _cells(binned: pl.DataFrame, facts: Sequence[str]) -> Cells:
    return _shares(binned.filter("is_compared"), facts, _SUCCEEDED)


def _shares(rows: pl.DataFrame, facts: Sequence[str], part: str) -> Cells:
    stratum = pl.concat_str([pl.col(_bin_of(field)) for field in facts], separator=",") if facts else pl.lit("")
    counted = rows.group_by("policy_version", stratum.alias("stratum")).agg(
        pl.col(part).sum().cast(pl.Int64), pl.len().cast(pl.Int64)
    )
    cells: dict[str, dict[str, Share]] = {}
    for version, name, *share in counted.iter_rows():
        cells.setdefault(version, {})[name] = Share(*share)
    return cells


def _is_enough(cells: Cells) -> bool:
    """Whether enough cases have a like one of another version, and not too many are to be compared."""
    versions: dict[str, int] = {}
    for of in cells.values():
        for stratum in of:
            versions[stratum] = versions.get(stratum, 0) + 1
    sizes = [(share.whole, versions[stratum] > 1) for of in cells.values() for stratum, share in of.items()]
    common = sum(whole for whole, is_common in sizes if is_common)
    return len(sizes) <= MAX_CELLS and common >= LEAST_COMMON * sum(whole for whole, _ in sizes)


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


def _bin_of(field: str) -> str:
    """The column with a fact's bins; no field's name has a colon, so that it is never a column of the cases."""
    return f"{field}:bin"


def _bin(rows: pl.DataFrame, field: str, tested: Tested, *, fine: bool) -> pl.Expr:
    """The number of a fact's bin."""
    kind, number, text = type_of(field), number_of(field), string_of(field)
    cuts = list(tested.numbers)
    texts = list(tested.texts)
    if fine:
        numbers = rows.filter(kind == "number").select(number).to_series()
        cuts = sorted({*cuts, *(lower_quantiles(numbers, _FIFTHS) if numbers.len() else ())})
        texts = sorted({*texts, *_common(rows.filter(kind == "string").select(text).to_series())})
    # A number at a cut lies with neither side: `lte 10` and `lt 10` part it differently.
    above = pl.sum_horizontal(
        pl.lit(0, pl.Int32), *((number > cut).cast(pl.Int32) + (number >= cut).cast(pl.Int32) for cut in cuts)
    )
    named = {name: at for at, name in enumerate(texts, 1)}
    of_text = text.replace_strict(named, default=0, return_dtype=pl.Int32) if named else pl.lit(0, pl.Int32)
    first = 1000
    return (
        pl.when(kind == "number")
        .then(first + above)
        .when(kind == "string")
        .then(2 * first + of_text)
        .when(kind == "boolean")
        .then(number.cast(pl.Int32))
        .when(kind.is_in([ABSENT, WITHHELD]))
        .then(pl.lit(2, pl.Int32))
        .otherwise(pl.lit(3, pl.Int32))
    )


def _common(texts: pl.Series) -> list[str]:
    """The commonest texts."""
    counted = texts.drop_nulls().alias("text").value_counts(name="values")
    return counted.sort("values", "text", descending=[True, False])["text"].head(_TEXTS).to_list()
