"""Frozen cohorts: what scopes that take part in benchmarks let others see of a month, a file for each month.

    keep_frozen(ledger, Path("var/lake"), personal, utc_now())
    latest(Path("var/lake")).others(scope_id, "refund_policy")

Of a scope the file holds what `gate.policy.peers.code` tells and nothing else: what is not in it, no report can give
away. It follows from the ledger alone. A file that was lost is made again, the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Final

import polars as pl

from gate.errors import OperatorError, ServiceUnavailable
from gate.ledger import Ledger
from gate.policy.peers import Coded, MonthCounts, beginning, code, decided_in, earlier, month_of
from workbench.columns import BENCHMARKS, schema
from workbench.lake.entries import Personal
from workbench.lake.files import scan
from workbench.lake.fresh import fresh
from workbench.lake.lease import unwritable
from workbench.lake.manifest import LakeFile, sync_directory, write_durably
from workbench.lake.reader import Snapshot

KEPT: Final = 24
"""How many months stay frozen."""

GRACE: Final = timedelta(hours=1)
"""How long after a month has begun it is frozen: what was dated before may be committed a little later."""

_FOLDER: Final = "benchmarks"
_NAME: Final = re.compile(r"([0-9]{4}-(?:0[1-9]|1[0-2]))\.parquet")
_SEAL: Final = b"sha256:"
_DIGEST_LENGTH: Final = 64
_SCHEMA: Final = pl.Schema({name: column.dtype for name, column in BENCHMARKS.items()})
_TERMINAL: Final = ("succeeded", "partial", "failed", "reverted")
_DECIDED: Final = ("position", "created_at", "policy_id", "policy_version", "verdict", "rule")
_REPORTED: Final = ("decision_position", "position", "policy_id", "outcome_status", "reported_at")


@dataclass(frozen=True, slots=True)
class Frozen:
    """What is frozen of a month.

    Attributes:
        month: The month that it was made for: who took part is as of its beginning.
        rows: A row for each member, without a policy, and one for each policy that it counts for.
    """

    month: str
    rows: pl.DataFrame

    def has_member(self, scope_id: str) -> bool:
        """Whether a scope took part."""
        return scope_id in self.rows["scope_id"]

    def others(self, scope_id: str, policy_id: str) -> list[Coded]:
        """The shared figures of all scopes but one that count for a policy."""
        found = self.rows.filter(pl.col("policy_id") == policy_id, pl.col("scope_id") != scope_id)
        return [Coded(*row) for row in found.select(Coded._fields).rows()]


def latest(lake: Path) -> Frozen | None:
    """The latest month that is frozen in a lake; None where none is.

    Raises:
        OperatorError: `LAKE_BENCHMARKS_INVALID`.
    """
    months = frozen_months(lake)
    return _read(lake, months[-1]) if months else None


def keep_frozen(ledger: Ledger, lake: Path, personal: Personal, now: datetime) -> str | None:
    """Freezes the month that has begun, if it is not frozen yet, and removes old ones. The caller must hold the lease.

    Args:
        ledger: The ledger.
        lake: The lake's directory.
        personal: The fields that the lake leaves out.
        now: The current moment.

    Returns:
        The month, if it was frozen now.

    Raises:
        ServiceUnavailable: `SVC_REPORT_UNAVAILABLE`: the lake lacks too much of a scope that takes part. No scope is
            frozen before all can be. `SVC_STORAGE_UNAVAILABLE`.
        OperatorError: `LAKE_UNWRITABLE`.
    """
    month = month_due(now)
    if is_frozen(lake, month):
        return None
    rows = frozen_rows(ledger, lake, personal, month)
    try:
        write(lake, month, rows)
        for found in frozen_months(lake):
            if found < earlier(month, KEPT - 1):
                _path(lake, found).unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(lake, error) from error
    return month


def month_due(now: datetime) -> str:
    """The latest month that is to be frozen."""
    return month_of(now - GRACE)


def is_frozen(lake: Path, month: str) -> bool:
    """Whether a month is frozen in a lake."""
    return _path(lake, month).exists()


def frozen_rows(ledger: Ledger, lake: Path, personal: Personal, month: str) -> pl.DataFrame:
    """What is to be frozen of a month, from the lake and what the ledger has beyond it.

    Raises:
        ServiceUnavailable: As `keep_frozen`.
    """
    members = ledger.benchmarks.members(beginning(month))
    return freeze((_chain(ledger, lake, personal, scope_id, month) for scope_id in members), month)


def freeze(members: Iterable[Snapshot], month: str) -> pl.DataFrame:
    """What is to be frozen of a month.

    Args:
        members: The chains of the scopes that took part when it began.
        month: The month.
    """
    rows: list[tuple[object, ...]] = []
    for snapshot in members:
        scope_id = snapshot.manifest.scope_id
        rows.append((scope_id, *[None] * (len(_SCHEMA) - 1)))
        counted = cases_at(snapshot.binding(), month).group_by("policy_id").agg(counts()).collect(engine="streaming")
        for policy_id, *numbers in counted.rows():
            if (coded := code(MonthCounts(*numbers))) is not None:
                rows.append((scope_id, policy_id, *coded))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").sort("scope_id", "policy_id")


def write(lake: Path, month: str, rows: pl.DataFrame) -> None:
    """Puts what is frozen of a month into its place, durably, in one step.

    Raises:
        OSError: It cannot be written.
    """
    file = _path(lake, month)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    content = BytesIO()
    rows.write_parquet(content, metadata={"benchmarks": _SEAL.decode() + "0" * _DIGEST_LENGTH})
    write_durably(file, _sealed(content.getvalue()))
    sync_directory(file.parent)
    sync_directory(lake)


def frozen_months(lake: Path) -> list[str]:
    """The months that are frozen in a lake, ascending."""
    names = (_NAME.fullmatch(file.name) for file in lake.glob(f"{_FOLDER}/*.parquet"))
    return sorted(found[1] for found in names if found)


def fault(lake: Path, month: str, ledger: Ledger | None, personal: Personal) -> str | None:
    """The fault of a frozen month, as a sentence; None without a fault.

    Args:
        lake: The lake's directory.
        month: A frozen month.
        ledger: The ledger to freeze it from again; None to check only the file.
        personal: The fields that the lake leaves out.

    Raises:
        ServiceUnavailable: As `keep_frozen`.
    """
    try:
        held = _read(lake, month)
    except OperatorError as error:
        return error.message
    if ledger is None or held.rows.equals(frozen_rows(ledger, lake, personal, month)):
        return None
    return (
        f"{_path(lake, month)} differs from what the ledger gives now. Either the file was changed, or a clock that "
        "was set wrong dated later entries before that month."
    )


def cases_at(snapshot: Snapshot, month: str, policy_id: str | None = None) -> pl.LazyFrame:
    """The decisions that the freeze of a month is about, each with its latest outcome reported before that month began.

    Args:
        snapshot: The scope's chain.
        month: The month of the freeze; the decisions are those of the month before last.
        policy_id: Only the decisions of this policy; of every policy where None.

    Returns:
        {position, created_at, policy_id, policy_version, verdict, rule, outcome_status}; the status is null without an
        outcome.
    """
    period = decided_in(month)
    made = [file for file in snapshot.manifest.of("decisions") if file.month == period]
    decisions = _rows(snapshot, "decisions", _DECIDED, made, policy_id).filter(
        pl.col("created_at").is_between(beginning(period), beginning(earlier(period, -1)), closed="left")
    )
    decisions = snapshot.within(decisions)
    # An outcome stands after its decision in the chain, whatever its date.
    after = min((file.first_position for file in made), default=snapshot.manifest.position)
    told = [file for file in snapshot.manifest.of("outcomes") if file.month < month and file.last_position > after]
    outcomes = _rows(snapshot, "outcomes", _REPORTED, told, policy_id).filter(pl.col("reported_at") < beginning(month))
    last = outcomes.group_by("decision_position").agg(
        pl.col("outcome_status").sort_by("position").last().alias("outcome_status")
    )
    return decisions.join(last, left_on="position", right_on="decision_position", how="left")


def counts() -> list[pl.Expr]:
    """The members of `MonthCounts`, counted over rows of `cases_at`."""
    status = pl.col("outcome_status")
    counted = (
        pl.len(),
        (pl.col("verdict") == "yes").sum(),
        status.is_in(_TERMINAL).sum(),
        (status == "succeeded").sum(),
    )
    return [of.cast(pl.Int64).alias(name) for name, of in zip(MonthCounts._fields, counted, strict=True)]


def _chain(ledger: Ledger, lake: Path, personal: Personal, scope_id: str, month: str) -> Snapshot:
    try:
        return fresh(ledger, lake, scope_id, personal, facts=False)
    except ServiceUnavailable as error:
        # All the others wait for this scope, so the operator must learn which it is.
        raise ServiceUnavailable(
            error.code,
            f"The benchmarks of {month} cannot be frozen until the scope {scope_id} can be read. {error.message}",
            details=error.details,
        ) from error


def _rows(
    snapshot: Snapshot, table: str, columns: tuple[str, ...], files: list[LakeFile], policy_id: str | None
) -> pl.LazyFrame:
    parts = [scan([snapshot.lake / file.path for file in files], schema(table, columns))]
    if table in snapshot.tail:
        parts.append(snapshot.tail[table].lazy().select(columns))
    rows = pl.concat(parts)
    return rows if policy_id is None else rows.filter(pl.col("policy_id") == policy_id)


def _path(lake: Path, month: str) -> Path:
    return lake / _FOLDER / f"{month}.parquet"


def _read(lake: Path, month: str) -> Frozen:
    file = _path(lake, month)
    try:
        content = file.read_bytes()
        # Before anything else reads it: a flipped bit may be another rate, or a length that takes all memory.
        if _SEAL in content and content == _sealed(content):
            rows = pl.read_parquet(BytesIO(content))
            if rows.schema == _SCHEMA:
                return Frozen(month, rows)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _invalid(file) from error
    raise _invalid(file)


def _sealed(content: bytes) -> bytes:
    """A file with the SHA-256 of all the rest of it at the place that was left for that in its metadata."""
    # The last occurrence: earlier ones may be in the names of policies.
    before, seal, after = content.rpartition(_SEAL)
    rest = after[_DIGEST_LENGTH:]
    return before + seal + hashlib.sha256(before + seal + rest).hexdigest().encode() + rest


def _invalid(file: Path) -> OperatorError:
    return OperatorError(
        "LAKE_BENCHMARKS_INVALID",
        f"{file} was damaged or edited; remove it. `gate lake export` creates the latest month again from the "
        "ledger, identically.",
    )
