"""Builds large lakes directly: compacted files of cases and metrics, and a manifest, without a ledger of that size.

The cases are drawn at random. Each policy has decisions over a whole year, with successive versions, rules, outcomes of
every status with one or two metrics, and execution receipts. The product's own code makes cases from them and writes
the files with its usual number of rows. NumPy counts the drawn values, so that reports over the lake can be compared
with the counts. For searches, the decisions are written too. Their hashes, which no report reads, are all equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl
import pyarrow as pa

from gate.ledger.reads.tail import FollowedScope
from gate.policy.confidence import Counts
from gate.policy.effectiveness import Standing
from gate.records.reports.resolution import ANSWERS
from workbench.columns import (
    EXECUTION_STATUS,
    OBSERVED,
    OUTCOME_STATUS,
    RESOLUTION,
    TIME,
    TIME_COLUMNS,
    VERDICT,
    schema,
)
from workbench.facts import columns_of
from workbench.lake.cases import measured, unreported, updated
from workbench.lake.compaction import FULL, Compactor
from workbench.lake.files import Files, by_month
from workbench.lake.manifest import LakeFile, Manifest, directory_of, save

Numbers: TypeAlias = npt.NDArray[np.int64]

_YEAR: Final = 2025
_MONTHS: Final = 12
# Positions that the ledger's own chain does not reach, so that what it gains meets none of these rows.
_UNREACHED: Final = 100_000_000_000
# A decision, its receipt and its outcome.
_ENTRIES_A_DECISION: Final = 3

_UNREPORTED_OF: Final = 20
_STATUSES: Final = len(Standing._fields)
_STATUS_SHARES: Final = (0.7, 0.06, 0.12, 0.04, 0.05, 0.03)

VERSIONS: Final = tuple(f"{_YEAR}-{month:02d}-01" for month in range(1, _MONTHS + 1, 2))
"""The versions of every policy, each of two months."""

_MONTHS_OF_A_VERSION: Final = 2
_EARLIER_VERSION: Final = 0.1

# What decided, the verdict, the rulebook's word for it, the action, the reason code, and how often.
_RULES: Final = (
    ("rule:within_limits", "yes", "approve", "approve_discount", "WITHIN_LIMITS", 0.44),
    ("rule:loyal_customer", "yes", "approve", "approve_discount", "LOYAL_CUSTOMER", 0.16),
    ("rule:small_amount", "yes", "approve", "approve_discount", "SMALL_AMOUNT", 0.12),
    ("rule:margin_too_low", "no", "block", "block_discount", "MARGIN_TOO_LOW", 0.1),
    ("rule:discount_too_high", "review", "review", "route_to_finance", "DISCOUNT_TOO_HIGH", 0.08),
    ("rule:new_customer", "review", "review", "route_to_sales", "NEW_CUSTOMER", 0.05),
    ("rule:default", "review", "review", "route_to_finance", "NO_RULE_MATCHED", 0.04),
    ("schema:failed", "no", "block", "block_discount", "FACTS_MISSING", 0.01),
)
# No report evaluates it.
_CONDITION: Final = {"field": "discount_percent", "operator": "gte", "value": 0}
_OF_POLICY: Final = ("policy_id", "policy_version")
_METRICS: Final = ("hours_to_close", "revenue_eur")
# Callers send all facts.
_OF_ADAPTERS: Final = ("adapter_manifest_hash", "adapter_input_hash")
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_TOKEN_BYTES: Final = 10
_MOMENT_BYTES: Final = 6
_DAY_MS: Final = 24 * 60 * 60 * 1000
_SEGMENTS: Final = ("small_business", "mid_market", "enterprise")

INCIDENT: Final = (date(_YEAR, 9, 8), date(_YEAR, 9, 22))
"""From when until when many decisions went wrong that would have succeeded, in every policy."""

_INCIDENT_MS: Final = tuple(
    int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000 for day in INCIDENT
)
_INCIDENT_SHARE: Final = 0.5
_SUCCEEDED, _FAILED = (Counts._fields.index(status) for status in ("succeeded", "failed"))


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of a lake.

    Attributes:
        policy_id: Its id.
        outcomes: The number of its decisions with an outcome. For every 20 of them, it has one decision without.
    """

    policy_id: str
    outcomes: int

    @property
    def unreported(self) -> int:
        """How many of its decisions have no outcome."""
        return self.outcomes // _UNREPORTED_OF


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected numbers of an effectiveness report on a policy.

    Attributes:
        standing: The results of all its decisions.
        parts: The same by version, verdict, rule, and week, as `versions`, `verdicts`, `rules` and `weeks`.
        metrics: For each metric, the number of decisions, the minimum, the lower median, and the maximum.
        statuses: The status of each decision in chain order, as an index into `Standing`.
    """

    standing: Standing
    parts: Mapping[str, Mapping[str, Standing]]
    metrics: Mapping[str, tuple[int, float, float, float]]
    statuses: Numbers

    def latest(self, limit: int) -> Standing:
        """What came of so many decisions, the latest in the chain."""
        return _standing(np.bincount(self.statuses[-limit:], minlength=_STATUSES))


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a lake.

    Attributes:
        standings: The results of the decisions of each policy.
        watched: The expected numbers of reports on some policies.
        rows: The number of cases.
        files: The number of files with the cases and their metrics.
        bytes: The size of these files.
    """

    standings: Mapping[str, Standing]
    watched: Mapping[str, Expected]
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The decisions of one file, in chain order; codes are indexes into what they name."""

    position: Numbers
    created: Numbers
    policy: Numbers
    version: Numbers
    rule: Numbers
    status: Numbers
    has_hours: npt.NDArray[np.bool_]
    hours: npt.NDArray[np.float64]
    revenue: npt.NDArray[np.float64]

    @property
    def reported(self) -> npt.NDArray[np.bool_]:
        return self.status < len(Counts._fields)

    def where(self, chosen: npt.NDArray[np.bool_]) -> _Drawn:
        return _Drawn(*(getattr(self, name)[chosen] for name in self.__slots__))


def entries_of(policies: Sequence[Policy]) -> int:
    """How many chain positions the decisions of some policies take, with what is reported about them."""
    return _ENTRIES_A_DECISION * sum(policy.outcomes + policy.unreported for policy in policies)


def write_cases(
    lake: Path,
    scope: FollowedScope,
    policies: Sequence[Policy],
    *,
    seed: int,
    watched: Sequence[str] = (),
    first: int = _UNREACHED,
    searched: bool = False,
) -> Contents:
    """Writes the part of a lake for a scope: the cases of these policies, up to the head of its chain.

    Args:
        lake: The lake's directory.
        scope: The scope, with the chain's head for the manifest.
        policies: The policies.
        seed: The seed; another seed draws other cases.
        watched: The policies whose reports are compared, and whose facts are written.
        first: The chain position of the first decision, after the rulebooks.
        searched: Whether to write the table of decisions, which searches read.
    """
    head = scope.head
    manifest = Manifest(scope.scope_id, scope.name, head.chain_id)
    directory_of(lake, scope.scope_id).mkdir(mode=0o700, parents=True)
    writer = Files(lake, manifest, head.size, str(head.merkle_root))
    random = np.random.default_rng(seed)
    written: list[LakeFile] = []
    counts = np.zeros((len(policies), _STATUSES), np.int64)
    kept: dict[str, list[_Drawn]] = {name: [] for name in watched}
    numbers = {policy.policy_id: number for number, policy in enumerate(policies)}
    for month, drawn in _draw(policies, first, random):
        decisions = _decisions(scope.scope_id, policies, drawn, random)
        cases, metrics = _resolved(decisions, drawn, random)
        facts = _facts(
            scope.scope_id, policies, drawn.where(np.isin(drawn.policy, [numbers[of] for of in watched])), random
        )
        if facts.height:
            written.append(writer.write("facts", f"{_YEAR}-{month + 1:02d}", facts))
        if searched:
            written.append(writer.write("decisions", f"{_YEAR}-{month + 1:02d}", _whole(decisions)))
        written.append(writer.write("cases", f"{_YEAR}-{month + 1:02d}", cases))
        written += [writer.write("metrics", when, rows) for when, rows in by_month(metrics, TIME_COLUMNS["metrics"])]
        counts += _counted(drawn.policy, drawn.status, len(policies))
        for name, parts in kept.items():
            parts.append(drawn.where(drawn.policy == numbers[name]))
    for at, policy_id in enumerate(watched, 1):
        rulebooks = _rulebooks(scope.scope_id, policy_id, first - at * len(VERSIONS))
        written.append(writer.write("rulebooks", f"{_YEAR}-01", rulebooks))
    writer.sync()
    manifest = replace(
        manifest,
        generation=1,
        position=head.size,
        merkle_root=head.merkle_root,
        link_hash=head.link_hash,
        compacted=head.size,
        files=tuple(written),
    )
    save(lake, manifest)
    manifest = [manifest, *Compactor(lake).compact(manifest)][-1]
    return Contents(
        {policy.policy_id: _standing(row) for policy, row in zip(policies, counts, strict=True)},
        {name: _expected(parts) for name, parts in kept.items()},
        sum(file.rows for file in manifest.of("cases")),
        len(manifest.files),
        sum(file.bytes for file in manifest.files),
    )


def _draw(policies: Sequence[Policy], position: int, random: np.random.Generator) -> Iterator[tuple[int, _Drawn]]:
    """The decisions of the year, in parts of at most a full file, each of one month, counted from 0."""
    for month in range(_MONTHS):
        owners: list[Numbers] = []
        statuses: list[Numbers] = []
        for number, policy in enumerate(policies):
            reported, rest = _share(policy.outcomes, month), _share(policy.unreported, month)
            statuses.append(random.choice(len(_STATUS_SHARES), reported, p=_STATUS_SHARES))
            statuses.append(np.full(rest, len(Counts._fields)))
            owners.append(np.full(reported + rest, number))
        order = random.permutation(sum(map(len, owners)))
        owner, status = np.concatenate(owners)[order], np.concatenate(statuses)[order]
        created = np.sort(random.integers(_month_ms(month), _month_ms(month + 1), len(order)))
        went_wrong = (created >= _INCIDENT_MS[0]) & (created < _INCIDENT_MS[1]) & (status == _SUCCEEDED)
        status[went_wrong & (random.random(len(order)) < _INCIDENT_SHARE)] = _FAILED
        for start in range(0, len(order), FULL):
            part = slice(start, start + FULL)
            size = len(owner[part])
            positions = position + _ENTRIES_A_DECISION * np.arange(size)
            position += _ENTRIES_A_DECISION * size
            yield (
                month,
                _Drawn(
                    position=positions,
                    created=created[part],
                    policy=owner[part],
                    version=_drawn_versions(month, size, random),
                    rule=random.choice(len(_RULES), size, p=[rule[-1] for rule in _RULES]),
                    status=status[part],
                    has_hours=random.random(size) < 0.5,
                    hours=random.integers(1, 500, size).astype(np.float64),
                    revenue=np.round(random.lognormal(6, 1, size), 2),
                ),
            )


def _drawn_versions(month: int, size: int, random: np.random.Generator) -> Numbers:
    """The version that is in force, and of some the one before."""
    earlier = random.random(size) < _EARLIER_VERSION
    versions: Numbers = np.maximum(month // _MONTHS_OF_A_VERSION - earlier.astype(np.int64), 0)
    return versions


def _share(total: int, month: int) -> int:
    """How many of a year's cases a month has."""
    return total * (month + 1) // _MONTHS - total * month // _MONTHS


def _month_ms(month: int) -> int:
    start = datetime(_YEAR + month // _MONTHS, month % _MONTHS + 1, 1, tzinfo=UTC)
    return int(start.timestamp()) * 1000


def _decisions(scope_id: str, policies: Sequence[Policy], drawn: _Drawn, random: np.random.Generator) -> pl.DataFrame:
    """The decisions, as far as cases take from them."""
    names = [policy.policy_id for policy in policies]
    hashes = [_rulebook_hash(name, version) for name in names for version in VERSIONS]
    told, verdicts, words, actions, reasons, _ = zip(*_RULES, strict=True)
    return pl.DataFrame(
        [
            _picked("scope_id", [scope_id], np.zeros_like(drawn.policy)),
            pl.Series("position", drawn.position),
            _ids("decision_id", "dec", drawn.created, random),
            pl.Series("created_at", drawn.created).cast(TIME),
            _picked("policy_id", names, drawn.policy),
            _picked("policy_version", VERSIONS, drawn.version),
            _picked("policy_hash", hashes, drawn.policy * len(VERSIONS) + drawn.version),
            _picked("verdict", verdicts, drawn.rule, VERDICT),
            _picked("application_verdict", words, drawn.rule),
            _picked("action", actions, drawn.rule),
            _picked("reason_code", reasons, drawn.rule),
            _picked("rule", told, drawn.rule),
        ]
    )


def _whole(decisions: pl.DataFrame) -> pl.DataFrame:
    """The rows of the table of decisions: each about an object of its own, by a request of its own."""
    types = schema("decisions")
    number, token = pl.col("position").cast(pl.String), pl.col("decision_id").str.strip_prefix("dec")
    filled = {
        "target_system": pl.lit("crm"),
        "target_object_id": pl.concat_str(pl.lit("deal-"), number),
        "request_id": pl.concat_str(pl.lit("req"), token),
        **{name: pl.lit("0" * 64) for name in types if _is_hashed(name)},
    }
    missing = [
        filled.get(name, pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in types.items()
        if name not in decisions.columns
    ]
    return decisions.with_columns(missing).select(types.names())


def _is_hashed(name: str) -> bool:
    """Whether a column of decisions holds a hash; none of them was made from an adapter's facts."""
    return name.endswith(("_hash", "_root")) and not name.startswith("adapter_")


def _resolved(decisions: pl.DataFrame, drawn: _Drawn, random: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cases and metrics, made of decisions, outcomes and execution receipts as compaction makes them."""
    of_policy = decisions.select("scope_id", pl.col("position").alias("decision_position"), *_OF_POLICY)
    outcomes = _outcomes(drawn, random).join(of_policy, on="decision_position", maintain_order="left")
    cases = updated(unreported(decisions), outcomes, _executions(drawn, random), _resolutions(drawn))
    return cases, measured(outcomes)


def _facts(scope_id: str, policies: Sequence[Policy], drawn: _Drawn, random: np.random.Generator) -> pl.DataFrame:
    """Two numbers with a digit, one with a long tail, a text and a boolean for each decision."""
    size = len(drawn.position)
    names = [policy.policy_id for policy in policies]
    numbers = {
        "discount_percent": np.round(random.uniform(0, 40, size), 1),
        "margin_percent": np.round(random.normal(24, 6, size), 1),
        "deal_size_eur": np.round(random.lognormal(8, 1, size), 2),
    }
    known = random.random(size) < 0.7
    segments = pl.Series(_SEGMENTS).gather(pl.Series(random.choice(len(_SEGMENTS), size, p=(0.6, 0.3, 0.1))))
    typed: list[pl.Series] = []
    for field, values in numbers.items():
        typed += _typed(field, "number", {":number": pl.Series(values)}, size)
    typed += _typed("segment", "string", {":string": segments}, size)
    typed += _typed("known_customer", "boolean", {":number": pl.Series(known.astype(np.float64))}, size)
    frame = pl.DataFrame(
        [
            _picked("scope_id", [scope_id], np.zeros_like(drawn.policy)),
            pl.Series("position", drawn.position),
            pl.Series("created_at", drawn.created).cast(TIME),
            _picked("policy_id", names, drawn.policy),
            _picked("policy_version", VERSIONS, drawn.version),
            pl.repeat("0" * 64, size, eager=True).alias("policy_hash"),
            pl.repeat(value=True, n=size, eager=True).alias("known"),
            *typed,
        ]
    )
    told = [pl.col(f"{field}:number").cast(pl.String) for field in numbers]
    inputs = pl.concat_str(
        pl.lit('{"deal_size_eur":'),
        told[2],
        pl.lit(',"discount_percent":'),
        told[0],
        pl.lit(',"known_customer":'),
        pl.when(pl.col("known_customer:number") == 1).then(pl.lit("true")).otherwise(pl.lit("false")),
        pl.lit(',"margin_percent":'),
        told[1],
        pl.lit(',"segment":"'),
        pl.col("segment:string"),
        pl.lit('"}'),
    )
    return frame.with_columns(inputs.alias("inputs"))


def _typed(field: str, kind: str, values: Mapping[str, pl.Series], size: int) -> list[pl.Series]:
    """The four columns of a fact that is of one type everywhere."""
    given = {f"{field}{suffix}": column for suffix, column in values.items()}
    given[f"{field}:type"] = pl.repeat(kind, size, dtype=pl.String, eager=True)
    return [
        given.get(name, pl.Series([None] * size, dtype=dtype)).cast(dtype).alias(name)
        for name, dtype in columns_of(field).items()
    ]


def _rulebooks(scope_id: str, policy_id: str, position: int) -> pl.DataFrame:
    """The rulebooks that declare those facts, one for each version."""
    types = dict.fromkeys(("discount_percent", "margin_percent", "deal_size_eur"), "number")
    types |= {"segment": "string", "known_customer": "boolean"}
    declared = {field: {"type": kind} for field, kind in types.items()}
    rules = [told.removeprefix("rule:") for told in _told() if told.startswith("rule:") and told != "rule:default"]
    body = {
        "rulebook_id": policy_id,
        "input_schema": {"required": list(types), "properties": declared},
        "rules": [{"rule_id": rule_id, "condition": dict(_CONDITION)} for rule_id in rules],
    }
    rows = [
        {
            "scope_id": scope_id,
            "position": position + at,
            "policy_id": policy_id,
            "policy_version": version,
            "policy_hash": _rulebook_hash(policy_id, version),
            "first_used_at": datetime.fromisoformat(version).replace(tzinfo=UTC),
            "body": orjson.dumps({**body, "version": version}).decode(),
        }
        for at, version in enumerate(VERSIONS)
    ]
    return pl.DataFrame(rows, schema=schema("rulebooks"))


def _rulebook_hash(policy_id: str, version: str) -> str:
    return hashlib.sha256(f"{policy_id} {version}".encode()).hexdigest()


def _outcomes(drawn: _Drawn, random: np.random.Generator) -> pl.DataFrame:
    """The latest outcome of each: what was approved was done, as far as the outcome tells how it went."""
    drawn = drawn.where(drawn.reported)
    reported_at = drawn.created + random.integers(1, 14 * _DAY_MS, len(drawn.created))
    return pl.DataFrame(
        [
            pl.Series("decision_position", drawn.position),
            pl.Series("position", drawn.position + 2),
            _ids("outcome_id", "out", reported_at, random),
            _picked("outcome_status", Counts._fields, drawn.status, OUTCOME_STATUS),
            pl.Series("action_executed", _approved(drawn) & (drawn.status != Counts._fields.index("review"))),
            _metrics(drawn),
            pl.Series("reported_at", reported_at).cast(TIME),
            pl.Series("occurred_at", [None] * len(reported_at), TIME),
        ]
    )


def _metrics(drawn: _Drawn) -> pl.Series:
    """One or two metrics for each row, by name."""
    ends = np.concatenate([[0], np.cumsum(1 + drawn.has_hours)])
    last = ends[1:] - 1
    codes, values = np.ones(ends[-1], np.int64), np.empty(ends[-1])
    values[last] = drawn.revenue
    codes[last[drawn.has_hours] - 1] = 0
    values[last[drawn.has_hours] - 1] = drawn.hours[drawn.has_hours]
    named = _picked("name", _METRICS, codes).to_arrow(compat_level=pl.CompatLevel.oldest())
    structs = pa.StructArray.from_arrays([named, pa.array(values)], ["name", "value"])
    return pl.Series(
        "observed_metrics", pl.from_arrow(pa.LargeListArray.from_arrays(pa.array(ends), structs)), OBSERVED
    )


def _executions(drawn: _Drawn, random: np.random.Generator) -> pl.DataFrame:
    """A receipt for most of what was approved."""
    drawn = drawn.where(_approved(drawn) & (random.random(len(drawn.rule)) < 0.9))
    size = len(drawn.created)
    reported_at = drawn.created + random.integers(1, _DAY_MS, size)
    return pl.DataFrame(
        [
            pl.Series("decision_position", drawn.position),
            pl.Series("position", drawn.position + 1),
            _ids("execution_receipt_id", "exe", reported_at, random),
            _picked("execution_status", ("executed", "failed"), (random.random(size) < 0.05) * 1, EXECUTION_STATUS),
            pl.Series("action_binding_match", random.random(size) < 0.99),
            pl.Series("not_approved", np.zeros(size, np.bool_)),
            pl.Series("binding_mismatch", np.zeros(size, np.bool_)),
            pl.Series("action_mismatch", np.zeros(size, np.bool_)),
            pl.Series("other_action", np.zeros(size, np.bool_)),
            pl.Series("state_mismatch", [None] * size, pl.Boolean),
            pl.Series("reported_at", reported_at).cast(TIME),
            pl.Series("executed_at", [None] * size, TIME),
        ]
    )


def _resolutions(drawn: _Drawn) -> pl.DataFrame:
    """A resolution for four of five held decisions, most of them grants; each within a day."""
    drawn = drawn.where(_has_verdict(drawn, "review") & (drawn.position % 5 != 0))
    codes = (drawn.position % 8 == 0) * 1 + (drawn.position % 16 == 0)
    return pl.DataFrame(
        [
            pl.Series("decision_position", drawn.position),
            pl.Series("position", drawn.position + 1),
            _picked("resolution", ANSWERS, codes, RESOLUTION),
            pl.Series("recorded_at", drawn.created + drawn.position % _DAY_MS).cast(TIME),
            pl.Series("expires_at", drawn.created + drawn.position % _DAY_MS + _DAY_MS).cast(TIME),
        ]
    )


def _approved(drawn: _Drawn) -> npt.NDArray[np.bool_]:
    return _has_verdict(drawn, "yes")


def _has_verdict(drawn: _Drawn, verdict: str) -> npt.NDArray[np.bool_]:
    return np.array([rule[1] == verdict for rule in _RULES])[drawn.rule]


def _picked(name: str, values: Sequence[str], codes: Numbers, dtype: Any = pl.String) -> pl.Series:
    return pl.Series(name, values, dtype).gather(pl.Series(codes))


def _ids(name: str, prefix: str, moments: Numbers, random: np.random.Generator) -> pl.Series:
    """Ids as `gate.ids.new_id` makes them."""
    size, begin = len(moments), len(prefix) + 1
    drawn = random.integers(0, 256, (size, _TOKEN_BYTES), np.uint8)
    moment = moments.astype(">i8").view(np.uint8).reshape(size, 8)[:, -_MOMENT_BYTES:]
    raw = np.concatenate([moment, drawn], axis=1)
    text = np.empty((size, begin + 2 * raw.shape[1]), np.uint8)
    text[:, :begin] = np.frombuffer(f"{prefix}_".encode(), np.uint8)
    text[:, begin::2] = _HEX[raw >> 4]
    text[:, begin + 1 :: 2] = _HEX[raw & 15]
    ends = np.arange(size + 1, dtype=np.int64) * text.shape[1]
    return pl.Series(
        name, pl.from_arrow(pa.LargeStringArray.from_buffers(size, pa.py_buffer(ends), pa.py_buffer(text)))
    )


def _counted(codes: Numbers, status: Numbers, size: int) -> Numbers:
    """How many decisions have which code and status."""
    return np.bincount(codes * _STATUSES + status, minlength=size * _STATUSES).reshape(size, _STATUSES)


def _standing(row: Numbers) -> Standing:
    return Standing(*row.tolist())


def _expected(parts: Sequence[_Drawn]) -> Expected:
    drawn = _Drawn(*(np.concatenate([getattr(part, name) for part in parts]) for name in _Drawn.__slots__))
    versions, rules = (_by(VERSIONS, drawn.version, drawn.status), _by(_told(), drawn.rule, drawn.status))
    verdict_of = np.array([_VERDICTS.index(rule[1]) for rule in _RULES])
    monday = date(_YEAR, 1, 1) - timedelta(days=date(_YEAR, 1, 1).weekday())
    monday_ms = int(datetime(monday.year, monday.month, monday.day, tzinfo=UTC).timestamp()) * 1000
    week = (drawn.created - monday_ms) // (7 * _DAY_MS)
    weeks = [(monday + timedelta(weeks=number)).isoformat() for number in range(int(week.max(initial=0)) + 1)]
    reported = drawn.reported
    return Expected(
        _standing(np.bincount(drawn.status, minlength=_STATUSES)),
        {
            "versions": versions,
            "verdicts": _by(_VERDICTS, verdict_of[drawn.rule], drawn.status),
            "rules": rules,
            "weeks": _by(weeks, week, drawn.status),
        },
        {
            "hours_to_close": _measured(drawn.hours[reported & drawn.has_hours]),
            "revenue_eur": _measured(drawn.revenue[reported]),
        },
        drawn.status,
    )


_VERDICTS: Final = ("yes", "no", "review")


def _told() -> Sequence[str]:
    return [rule[0] for rule in _RULES]


def _by(names: Sequence[str], codes: Numbers, status: Numbers) -> dict[str, Standing]:
    """What came of the decisions of each name; one that has none is left out."""
    counts = _counted(codes, status, len(names))
    return {name: _standing(row) for name, row in zip(names, counts, strict=True) if row.any()}


def _measured(values: npt.NDArray[np.float64]) -> tuple[int, float, float, float]:
    ordered = np.sort(values)
    size = len(ordered)
    return size, float(ordered[0]), float(ordered[(size - 1) // 2]), float(ordered[-1])


def judged(what: str, figure: float, goal: float, *, unit: str, least: bool = False) -> dict[str, Any]:
    """A figure with its goal, for the results.

    Args:
        what: The name of the measurement.
        figure: The figure.
        goal: The maximum that it should have.
        unit: The unit of both.
        least: Whether the goal is a minimum instead.
    """
    met = figure >= goal if least else figure <= goal
    return {"what": what, "figure": round(figure, 4), "unit": unit, "least": least, "goal": goal, "met": met}


def goal_lines(goals: Sequence[Mapping[str, Any]]) -> str:
    """A line for each goal: what, the figure, the goal, and whether it is met."""
    return "\n".join(
        f"{goal['what']}: {_number(goal['figure'])} {goal['unit']}, "
        f"goal at {'least' if goal['least'] else 'most'} {_number(goal['goal'])}: {'met' if goal['met'] else 'MISSED'}"
        for goal in goals
    )


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 10 else f"{figure:.2f}"
