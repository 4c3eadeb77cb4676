r"""The history dry run for analysts: a policy's past decisions, by the active version and by a candidate.

    run = migration_dry_run(lake.scope("acme"), "refund_policy", Path("candidate.yaml"))
    print(*run.lines, sep="\n")

Nothing is proposed or stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeAlias

import polars as pl

from gate.encoding.strict_json import parse_document
from gate.errors import OperatorError
from gate.migration.folder import read_rulebook
from gate.policy.bounds import refusal, shown
from gate.rulebooks.rulebook import Rulebook, load
from workbench.engines.arguments import require_decided, require_snapshot
from workbench.lake.names import choices
from workbench.lake.reader import Snapshot
from workbench.migration.history import HistoryRun, LakeHistory, dry_run

Named: TypeAlias = str | Path | Mapping[str, Any]
"""A rulebook: one of the policy's versions in the lake, a file in JSON or YAML, or a body."""

_BODIES: Final = ("policy_version", "body")


def migration_dry_run(
    snapshot: Snapshot,
    policy_id: str,
    candidate: Named,
    *,
    base: str | None = None,
    metric: str | None = None,
    by: Sequence[str] | None = None,
    since: date | None = None,
    until: date | None = None,
) -> HistoryRun:
    """Decides the past decisions of a policy again with a candidate, and compares it with the active version.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        candidate: The candidate.
        base: The version to compare with; None for `version_in_force`.
        metric: As for `workbench.migration.history.dry_run`, like all arguments below.
        by: The fields whose values break the figures down.
        since: Only decisions from this moment on.
        until: Only decisions before this moment.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`, `LAKE_POLICY_UNKNOWN`, `LAKE_MOVED_ON`, or `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID` or `YAML_INVALID`: the file is not JSON or YAML.
        RulebookRefused: `RULEBOOK_INVALID`.
    """
    require_snapshot(snapshot)
    require_decided(snapshot, policy_id)
    snapshot = snapshot.binding(policy_id)
    before = version_in_force(snapshot, policy_id) if base is None else base
    against = None if before is None else _rulebook(snapshot, policy_id, before)
    return dry_run(
        LakeHistory(snapshot, policy_id),
        _rulebook(snapshot, policy_id, candidate),
        against,
        metric=metric,
        by=by,
        since=since,
        until=until,
        adapter_manifest_hash=_adapter(snapshot, policy_id, before),
    )


def versions(snapshot: Snapshot, policy_id: str) -> list[str]:
    """The versions by which a policy has decided, in the order of their first decisions."""
    decided = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id).sort("position")
    return decided.select("policy_version").collect()["policy_version"].to_list()


def version_in_force(snapshot: Snapshot, policy_id: str) -> str | None:
    """The active version: the one that the policy's route leads to, as far as the lake has come.

    Without a route, or if that version has not decided yet and the lake lacks its rulebook, it is the one that decided
    last. None if none decided.
    """
    decided = versions(snapshot, policy_id)
    snapshot = snapshot.binding(policy_id)
    for table in ("routes", "decisions"):
        of = snapshot.table(table).filter(pl.col("policy_id") == policy_id)
        found = of.select(pl.col("policy_version").sort_by("position").last()).collect().item()
        if found in decided:
            return str(found)
    return None


def _rulebook(snapshot: Snapshot, policy_id: str, named: Named) -> Rulebook:
    if isinstance(named, Path):
        return read_rulebook(named)
    if isinstance(named, Mapping):
        return load(named)
    if not isinstance(named, str):
        raise refusal(f"The rulebook is {shown(named)}: give a version, a file as a Path, or a rulebook's body.")
    of = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id)
    bodies = dict(of.select(_BODIES).collect().iter_rows())
    if named not in bodies:
        raise OperatorError(
            "LAKE_POLICY_UNKNOWN",
            f"Policy {policy_id} has no decision by version {shown(named)}. {choices(named, bodies)}",
        )
    return load(parse_document(bodies[named].encode()))


def _adapter(snapshot: Snapshot, policy_id: str, version: str | None) -> str | None:
    """The adapter that made the facts of a version's last decision."""
    decisions = snapshot.table("decisions").filter(pl.col("policy_id") == policy_id)
    if version is not None:
        decisions = decisions.filter(pl.col("policy_version") == version)
    found: str | None = decisions.select(pl.col("adapter_manifest_hash").sort_by("position").last()).collect().item()
    return found
