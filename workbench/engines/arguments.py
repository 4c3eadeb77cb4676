"""Checks that an engine was given a lake, or a scope of one. The question checks everything else
(`gate.policy.questions`).

A wrong argument is refused with a sentence, before anything is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson
import polars as pl

from gate.errors import OperatorError
from gate.policy import bounds
from gate.policy.bounds import refusal
from gate.rulebooks.documents import RulebookBody
from workbench.lake.names import choices, shown
from workbench.lake.reader import Lake, Snapshot
from workbench.values import FACT, known_values, values_of

_SCOPES: Final = 20


def require_snapshot(value: object) -> None:
    """Refuses anything but a scope of a lake.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if isinstance(value, Snapshot):
        return
    if isinstance(value, Lake):
        named = ", ".join(value.scopes[:_SCOPES]) or "none yet"
        more = f" and {len(value.scopes) - _SCOPES:,} more" if len(value.scopes) > _SCOPES else ""
        raise refusal(f"A lake is not a scope: give a scope, lake.scope(...). This lake has {named}{more}.")
    raise refusal(f"snapshot is {bounds.shown(value)}: give a scope, open_lake(...).scope(...).")


def require_decided(snapshot: Snapshot, policy_id: str, policy_version: str | None = None) -> None:
    """Refuses a policy, or a version of one, without any decision in the scope. Its name is probably misspelled.

    A scope without any decision has no names to compare with, so it refuses none.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        policy_version: One of its versions; None for all.

    Raises:
        OperatorError: `LAKE_POLICY_UNKNOWN`. The message lists the known names.
    """
    # Imported cases have no rulebooks, and each names its policy.
    table = "rulebooks" if snapshot.imported is None else "cases"
    used = snapshot.table(table).select("policy_id", "policy_version").unique().collect()
    versions = used.filter(pl.col("policy_id") == policy_id)["policy_version"]
    if used.is_empty() or (versions.len() and policy_version in (None, *versions)):
        return
    if not versions.len() and snapshot.binding(policy_id).cases(policy_id).limit(1).collect().height:
        return
    if versions.len():
        told = f"{shown(policy_id)} in scope {shown(snapshot.scope)} has no version {shown(str(policy_version))}"
        raise OperatorError("LAKE_POLICY_UNKNOWN", f"{told}. {choices(str(policy_version), versions.drop_nulls())}")
    told = f"Scope {shown(snapshot.scope)} has no decision of policy {shown(policy_id)}"
    if snapshot.count_advisory(policy_id):
        told = (
            f"All decisions of {shown(policy_id)} in scope {shown(snapshot.scope)} are advisory, so no policy made them"
        )
    raise OperatorError("LAKE_POLICY_UNKNOWN", f"{told}. {choices(policy_id, used['policy_id'])}")


def require_known_values(
    snapshot: Snapshot, policy_id: str, names: Sequence[str], rulebook: RulebookBody | None
) -> None:
    """Refuses to sum a value that no decision of a policy has. Its name is probably misspelled.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        names: Metrics by name, and facts as `inputs.<path>`.
        rulebook: Another rulebook that will decide; None for the policy's own.

    Raises:
        OperatorError: `METRIC_UNKNOWN`. The message lists the known names.
    """
    if not names:
        return
    bodies = snapshot.table("rulebooks").filter(pl.col("policy_id") == policy_id).select("body").collect()["body"]
    own: list[RulebookBody] = [orjson.loads(text) for text in bodies]
    known = known_values(snapshot, policy_id, own if rulebook is None else [rulebook, *own])
    for name in names:
        is_fact = name.startswith(FACT)
        if name in known or (is_fact and values_of(snapshot, policy_id, name).limit(1).collect().height):
            continue
        raise OperatorError(
            "METRIC_UNKNOWN",
            f"No outcome has the metric {shown(name)}, and it is not a fact in the form inputs.NAME. "
            f"{choices(name, known)}",
        )


def require_measured(snapshot: Snapshot, policy_id: str, metric: str) -> None:
    """Refuses a metric that no outcome of a policy's decisions has. Its name is probably misspelled.

    A policy without measured outcomes has no names to compare with, so it refuses none.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        metric: The name of the metric.

    Raises:
        OperatorError: `METRIC_UNKNOWN`. The message lists the known names.
    """
    known = known_values(snapshot, policy_id, ())
    if known and metric not in known:
        raise OperatorError("METRIC_UNKNOWN", f"No outcome has the metric {shown(metric)}. {choices(metric, known)}")


def require_chain(snapshot: Snapshot, what: str) -> None:
    """Refuses an imported history for a question about the chain.

    Args:
        snapshot: The scope's chain, or an imported history.
        what: The beginning of the message, such as `Benchmarks compare chains`.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if snapshot.imported is not None:
        raise refusal(
            f"{what}, and the history {shown(snapshot.imported.name)} has imported cases, which are unverified: "
            f"give the scope itself, lake.scope({shown(snapshot.scope)})."
        )


def require_lake(value: object) -> None:
    """Refuses anything but a lake or a scope of one.

    Raises:
        OperatorError: `ENGINE_ARGUMENT_INVALID`.
    """
    if not isinstance(value, Lake | Snapshot):
        raise refusal(f"lake is {bounds.shown(value)}: give a lake, open_lake(...), or one scope of it.")
