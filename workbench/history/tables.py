"""The rows of a stretch as tables of the lake: cases, metrics, and facts, in the columns that every engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson
import polars as pl

from gate.encoding.canonical import canonical
from gate.encoding.strict_json import MAX_SAFE_INTEGER
from workbench.columns import IMPORTED, schema
from workbench.facts import ABSENT, FACT_TYPE, WITHHELD, columns_of, is_withheld
from workbench.history.mapping import FACTS, METRICS, Map, Member
from workbench.lake.cases import unreported
from workbench.lake.entries import Personal

POSITION: Final = "position"
ROW_PREFIX: Final = "row:"
"""What the decision_id of an imported case begins with; its row's id follows."""

_OBSERVED: Final = "observed_metrics"
# What must be escaped within quotes in canonical JSON.
_ESCAPED: Final = r'["\\\x00-\x1f]'
# Between these bounds a double's digits are written out.
_PLAIN: Final = (1e-4, 1e15)


@dataclass(frozen=True, slots=True)
class Tables:
    """Makes the tables of a set.

    Attributes:
        map_: The map.
        scope_id: The scope.
        personal: What is left out.
    """

    map_: Map
    scope_id: str
    personal: Personal

    def of(self, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """The tables of typed rows, by name; those without rows are left out.

        Args:
            rows: The members of the map by name, and `position`.
        """
        found = {"cases": self._cases(rows), "metrics": self._metrics(rows), "facts": self._facts(rows)}
        return {name: frame for name, frame in found.items() if frame.height}

    def _decided(self) -> list[pl.Expr]:
        map_ = self.map_
        version = pl.lit(map_.policy_version, pl.String)
        if map_.has("policy_version"):
            version = pl.col("policy_version").fill_null(IMPORTED)
        return [
            pl.lit(self.scope_id).alias("scope_id"),
            pl.col(POSITION),
            pl.lit(map_.policy_id).alias("policy_id"),
            version.alias("policy_version"),
        ]

    def _or_null(self, name: str, dtype: pl.DataType) -> pl.Expr:
        return pl.col(name) if self.map_.has(name) else pl.lit(None, dtype)

    def _cases(self, rows: pl.DataFrame) -> pl.DataFrame:
        map_, types = self.map_, schema("cases")
        action = pl.col("action") if map_.has("action") else pl.lit(map_.action, pl.String)
        verdict = pl.col("verdict") if map_.has("verdict") else pl.lit(map_.verdict, types["verdict"])
        decided = rows.select(
            *self._decided(),
            (pl.lit(ROW_PREFIX) + pl.col("id")).alias("decision_id"),
            pl.col("occurred_at").alias("created_at"),
            verdict.alias("verdict"),
            action.alias("action"),
            self._or_null("reason", pl.String()).alias("reason_code"),
            pl.lit(IMPORTED).alias("rule"),
        )
        status = self._or_null("outcome", types["outcome_status"])
        known = self._or_null("outcome_at", types["created_at"])
        # With a column of the rows, so that constants are as long as these.
        outcome = rows.select(POSITION, status.alias("outcome_status"), known.alias("at"))
        reported = pl.col("outcome_status").is_not_null()
        once = reported.cast(pl.Int64)
        at = pl.when(reported).then(pl.col("at"))
        outcome = outcome.with_columns(decided["verdict"])
        outcome = outcome.with_columns(self._executed(rows, reported)).select(
            pl.col("outcome_status"),
            pl.col("action_executed"),
            pl.when(reported).then(pl.col(POSITION)).alias("outcome_position"),
            *(at.alias(name) for name in ("outcome_reported_at", "first_outcome_at", "last_outcome_at")),
            once.alias("outcomes"),
            (pl.col("outcome_status") == "succeeded").fill_null(value=False).cast(pl.Int64).alias("times_succeeded"),
        )
        return unreported(decided).with_columns(outcome).select(types.names()).cast(types)

    def _executed(self, rows: pl.DataFrame, reported: pl.Expr) -> pl.Expr | pl.Series:
        if self.map_.has("action_executed"):
            return rows["action_executed"]
        if self.map_.executed is not None:
            return pl.lit(self.map_.executed).alias("action_executed")
        # Nobody wrote down what was decided: a case that has an outcome happened.
        return pl.when(reported & pl.col("verdict").is_null()).then(True).alias("action_executed")

    def _metrics(self, rows: pl.DataFrame) -> pl.DataFrame:
        types = schema("metrics")
        members = [of for of in self.map_.members if of.name.startswith(METRICS)]
        if not members or _OBSERVED in self.personal.columns:
            return pl.DataFrame(schema=types)
        when = pl.col("occurred_at")
        if self.map_.has("outcome_at"):
            when = pl.coalesce("outcome_at", "occurred_at")
        parts = [
            rows.filter(pl.col(of.name).is_not_null()).select(
                *self._decided(),
                when.alias("reported_at"),
                pl.lit(of.name.removeprefix(METRICS)).alias("name"),
                pl.col(of.name).alias("value"),
            )
            for of in members
        ]
        joined = pl.concat(parts)
        missing = [pl.lit(None, dtype).alias(name) for name, dtype in types.items() if name not in joined.columns]
        return joined.with_columns(missing).select(types.names()).cast(types)

    def _facts(self, rows: pl.DataFrame) -> pl.DataFrame:
        types = schema("facts")
        members = {of.name.removeprefix(FACTS): of for of in self.map_.members if of.name.startswith(FACTS)}
        kept = {path: of for path, of in members.items() if not self._hidden(path)}
        columns = [column for path, of in members.items() for column in self._typed(path, of)]
        facts = rows.lazy().with_columns(
            *(_json(pl.col(of.name), of.kind).alias(f":json:{path}") for path, of in kept.items())
        )
        text = _object({tuple(path.split(".")): pl.col(f":json:{path}") for path in kept})
        facts = facts.select(
            *self._decided(),
            pl.col("occurred_at").alias("created_at"),
            pl.lit(value=True).alias("known"),
            pl.coalesce(text, pl.lit("{}")).alias("inputs"),
            *columns,
        )
        missing = [
            pl.lit(None, dtype).alias(name) for name, dtype in types.items() if name not in facts.collect_schema()
        ]
        all_types = {**types, **{name: of for path in members for name, of in columns_of(path).items()}}
        return facts.with_columns(missing).select(list(all_types)).collect().cast(pl.Schema(all_types))

    def _hidden(self, path: str) -> bool:
        return is_withheld(path, self.personal.facts)

    def _typed(self, path: str, member: Member) -> list[pl.Expr]:
        """The four columns of a fact, as `workbench.facts.fact_series` makes them."""
        value = pl.col(member.name)
        hidden = self._hidden(path)
        kind = "number" if member.kind in ("number", "integer") else member.kind
        there = WITHHELD if hidden else kind
        type_ = pl.when(value.is_null()).then(pl.lit(ABSENT, FACT_TYPE)).otherwise(pl.lit(there, FACT_TYPE))
        nothing = {name: pl.lit(None, dtype) for name, dtype in columns_of(path).items()}
        found: dict[str, pl.Expr] = {f"{path}:type": type_}
        if not hidden and kind in ("number", "boolean"):
            found[f"{path}:number"] = value.cast(pl.Float64)
        if not hidden and kind == "string":
            found[f"{path}:string"] = value
        return [expression.alias(name) for name, expression in (nothing | found).items()]


def _json(value: pl.Expr, kind: str) -> pl.Expr:
    """The canonical JSON of a column; null where it is null."""
    if kind == "boolean":
        return value.cast(pl.String)
    if kind == "string":
        quoted = pl.lit('"') + value + pl.lit('"')
        special = value.str.contains(_ESCAPED)
        return pl.when(special).then(_one_by_one(value, special)).otherwise(quoted)
    integral = (value == value.floor()) & (value.abs() <= MAX_SAFE_INTEGER)
    plain = value.abs().is_between(*_PLAIN, closed="left")
    other = ~integral & ~plain
    return (
        pl.when(integral)
        .then(pl.when(integral).then(value).cast(pl.Int64, strict=False).cast(pl.String))
        .when(plain)
        .then(value.cast(pl.String))
        .otherwise(_one_by_one(value, other))
    )


def _one_by_one(value: pl.Expr, which: pl.Expr) -> pl.Expr:
    """The canonical JSON of the few values that need it."""
    return pl.when(which).then(value).map_batches(_canonical, pl.String, is_elementwise=True)


def _canonical(values: pl.Series) -> pl.Series:
    if values.null_count() == len(values):
        return pl.repeat(None, len(values), dtype=pl.String, eager=True).alias(values.name)
    return pl.Series(values.name, [None if value is None else canonical(value).decode() for value in values], pl.String)


def _object(paths: Mapping[tuple[str, ...], pl.Expr]) -> pl.Expr:
    """The canonical JSON of an object whose members are columns of JSON; null where all of them are."""
    members: dict[str, pl.Expr] = {}
    for name in sorted({path[0] for path in paths}):
        within = {path[1:]: column for path, column in paths.items() if path[0] == name}
        members[name] = within[()] if () in within else _object(within)
    if not members:
        return pl.lit(None, pl.String)
    named = [pl.lit(f"{orjson.dumps(name).decode()}:") + value for name, value in members.items()]
    # Without `ignore_nulls` one absent member would make all of it null.
    text = pl.concat_str(named, separator=",", ignore_nulls=True)
    return pl.when(text != "").then(pl.lit("{") + text + pl.lit("}"))
