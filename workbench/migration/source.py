"""Where past decisions come from: the lake of a scope, or whatever else gives the rows of a chain.

    history = LakeHistory(snapshot, "refund_policy")
    history.decisions().filter(pl.col("verdict") == "no")

Nothing that a history gives depends on how its files are laid out: the same ledger gives the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import polars as pl

from gate.encoding.strict_json import parse_document
from workbench.facts import (
    FACT_TYPE,
    WITHHELD,
    columns_of,
    fields_of,
    find_typed,
    is_withheld,
    type_of,
    with_fields,
)
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot

OUTCOME: Final = ("verdict", "application_verdict", "action", "reason_code", "rule")
"""The members by which outcomes are compared."""

_DECISION: Final = (
    "position",
    "decision_id",
    "created_at",
    "week",
    "policy_version",
    *OUTCOME,
    "outcome_status",
    "resolution",
)


class History(Protocol):
    """Past decisions of one rulebook id, in the order of a chain. No two of them have one position."""

    @property
    def rulebook_id(self) -> str:
        """The rulebook id."""

    @property
    def read_at(self) -> Mapping[str, object]:
        """The identity of the history: `{chain_id, chain_position, merkle_root}`, or for an imported one `{history,
        history_hash, rows}`.
        """

    @property
    def size(self) -> int:
        """The last position."""

    def decisions(self) -> pl.LazyFrame:
        """Every decision.

        The columns are `position`, `decision_id`, `created_at`, `week`, `policy_version`, and the five fields of its
        result under their names in records (`rule` as in evidence codes). `outcome_status` is null without an outcome.
        `resolution` is null unless a held decision was resolved.
        """

    def facts(self, fields: Sequence[str]) -> pl.LazyFrame:
        """The facts of the decisions: position, known, and the columns of the fields as `workbench.facts` has them,
        whose types are null only where the facts are not known.
        """

    def adapters(self) -> pl.LazyFrame:
        """What made the facts of the decisions: position and adapter_manifest_hash, null where callers sent them."""

    def values(self, metric: str) -> pl.LazyFrame:
        """What the latest outcomes measured under a name: position and value."""

    def ids(self, positions: pl.Series) -> Mapping[int, str]:
        """The decision ids at some positions."""


@dataclass(frozen=True, slots=True)
class LakeHistory:
    """The decisions of a rulebook id in a scope's lake.

    Attributes:
        snapshot: The scope's chain; a slice of it by date is a history as well.
        rulebook_id: The rulebook id.
    """

    snapshot: Snapshot
    rulebook_id: str

    def __post_init__(self) -> None:
        # No rulebook can decide advice again, not even one that has its policy_id.
        object.__setattr__(self, "snapshot", self.snapshot.binding(self.rulebook_id))

    @property
    def read_at(self) -> Mapping[str, object]:
        """As `History.read_at`."""
        of = self.snapshot
        if of.imported is not None:
            found = of.imported
            return {"history": found.name, "history_hash": found.history_hash, "rows": found.rows}
        return {"chain_id": of.manifest.chain_id, "chain_position": of.position, "merkle_root": of.merkle_root}

    @property
    def size(self) -> int:
        """As `History.size`."""
        return self.snapshot.position

    def decisions(self) -> pl.LazyFrame:
        """As `History.decisions`."""
        return self.snapshot.cases(self.rulebook_id).select(_DECISION)

    def facts(self, fields: Sequence[str]) -> pl.LazyFrame:
        """As `History.facts`. A personal fact is withheld of every decision whose rulebook does not read it."""
        facts = self.snapshot.facts(fields, self.rulebook_id)
        withheld = Personal.of(self.snapshot.manifest.personal).facts
        typed = find_typed(facts, fields, pl.col("known"))
        facts = with_fields(facts, fields, withheld, typed=typed)
        hidden = [field for field in fields if is_withheld(field, withheld)]
        if hidden:
            facts = facts.with_columns(self._kept_from_all(hidden))
        names = [name for field in fields for name in columns_of(field)]
        return facts.select("position", "known", *names)

    def _kept_from_all(self, hidden: Sequence[str]) -> list[pl.Expr]:
        """The types of personal fields as the rulebook of each decision decides them.

        Of a field that it does not read, whether it was there is in the lake or not, as the files happen to be cut.
        """
        rulebooks = self.snapshot.table("rulebooks").filter(pl.col("policy_id") == self.rulebook_id)
        reading: dict[str, list[str]] = {field: [] for field in hidden}
        for hash_, body in rulebooks.select("policy_hash", "body").collect().iter_rows():
            for field in set(fields_of(parse_document(body.encode()))) & reading.keys():
                reading[field].append(hash_)
        return [
            pl.when(pl.col("policy_hash").is_in(hashes) | ~pl.col("known"))
            .then(type_of(field))
            .otherwise(pl.lit(WITHHELD, FACT_TYPE))
            .alias(f"{field}:type")
            for field, hashes in reading.items()
        ]

    def adapters(self) -> pl.LazyFrame:
        """As `History.adapters`."""
        decisions = self.snapshot.table("decisions").filter(pl.col("policy_id") == self.rulebook_id)
        return decisions.select("position", "adapter_manifest_hash")

    def values(self, metric: str) -> pl.LazyFrame:
        """As `History.values`."""
        measured = self.snapshot.metrics(self.rulebook_id).filter(pl.col("name") == metric)
        return measured.select("position", "value")

    def ids(self, positions: pl.Series) -> Mapping[int, str]:
        """As `History.ids`."""
        rows = self.snapshot.at("decisions", positions).select("position", "decision_id").collect(engine="streaming")
        return dict(rows.iter_rows())
