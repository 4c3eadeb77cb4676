"""The values that can be summed over decisions: metrics of their latest outcomes, and facts that are numbers.

    values_of(snapshot, "refund_policy", "refund_eur")             # a metric
    values_of(snapshot, "refund_policy", "inputs.order_total")     # a fact
    known_values(snapshot, "refund_policy", bodies)                # the names of both
    exact_sums(frame, ["verdict"])

Sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

import polars as pl
import pyarrow as pa

from gate.policy.means import Sums
from gate.rulebooks.documents import RulebookBody
from workbench.facts import find_typed, number_of, type_of, with_fields
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

FACT: Final = "inputs."
"""What the name of a value begins with where it is a fact."""


def known_values(snapshot: Snapshot, policy_id: str | None, bodies: Iterable[RulebookBody]) -> list[str]:
    """The names under which values can be summed: what outcomes measured, and facts that rulebooks declare as numbers.

    Args:
        snapshot: The chain.
        policy_id: The policy; None for all.
        bodies: The rulebooks.
    """
    names = snapshot.binding(policy_id).metrics(policy_id).select(pl.col("name").cast(pl.String).unique().sort())
    properties = {name: of for body in bodies for name, of in body["input_schema"]["properties"].items()}
    facts = [f"{FACT}{name}" for name, of in properties.items() if of.get("type") in ("number", "integer")]
    return [*names.collect(engine="streaming")["name"].to_list(), *facts]


def fact_value(name: str) -> pl.Expr:
    """The number that a fact is, named as a value; null where it is none."""
    field = name.removeprefix(FACT)
    return pl.when(type_of(field) == "number").then(number_of(field))


def values_of(snapshot: Snapshot, policy_id: str, name: str) -> pl.LazyFrame:
    """The values of a policy's decisions under a name: {position, value}, none of them null.

    Args:
        snapshot: The chain.
        policy_id: The policy.
        name: A metric of the latest outcomes, or a fact as `inputs.<path>`.
    """
    if not name.startswith(FACT):
        return snapshot.metrics(policy_id).filter(pl.col("name") == name).select("position", "value")
    field = name.removeprefix(FACT)
    facts = snapshot.facts([field], policy_id)
    withheld = Personal.of(snapshot.manifest.personal).facts
    read = with_fields(facts, [field], withheld, typed=find_typed(facts, [field], pl.col("known")))
    return read.select("position", fact_value(name).alias("value")).drop_nulls("value")


def exact_sums(rows: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[str, ...], Sums]:
    """The sums of `value` by keys; of fewer than a million finite numbers, none of them null.

    A double is a whole number times a power of two, so that whole numbers are summed, apart for each power.
    """
    bits = pl.Series("bits", pl.from_arrow(rows["value"].to_arrow().view(pa.int64())))
    size = pl.when(pl.col("bits") < 0).then(pl.col("bits") - pl.lit(-(2**63), pl.Int64)).otherwise(pl.col("bits"))
    power, rest = size // 2**52, size % 2**52
    whole = rest + pl.when(power > 0).then(pl.lit(2**52, pl.Int64)).otherwise(pl.lit(0, pl.Int64))
    signed = pl.when(pl.col("bits") < 0).then(-whole).otherwise(whole).cast(pl.Int128)
    parts = (
        rows.select(*keys)
        .with_columns(bits)
        .with_columns(power.alias("power"), signed.alias("whole"))
        .group_by(*keys, "power")
        .agg(pl.len(), pl.col("whole").sum().alias("sum"), (pl.col("whole") * pl.col("whole")).sum().alias("squares"))
    )
    found: dict[tuple[str, ...], Sums] = {}
    for *key, power_of, values, total, squares in parts.iter_rows():
        weight = Fraction(2) ** (max(power_of, 1) - 1075)
        named = tuple(map(str, key))
        found[named] = found.get(named, Sums()) + Sums(values, total * weight, squares * weight * weight)
    return found
