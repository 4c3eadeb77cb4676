"""Decides the window of an anomaly with the version that the new one replaced.

    back = anomalies(snapshot, "refund_policy").going_back(0)
    print(back)                        # the number of verdicts that going back would have changed
    back.report.plot()                 # original and new verdicts
    back.report.decisions.collect()    # the decisions behind it

Both rulebooks are in the lake, so nothing else is needed. It is a simulation: it stores nothing and changes no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from gate.encoding.strict_json import parse_document
from gate.errors import RulebookRefused
from gate.policy.anomalies.anomaly import AnomalyDocument
from gate.policy.anomalies.weekly.stretch import moved
from gate.policy.questions import CounterfactualsQuestion
from workbench.engines.counterfactuals import CounterfactualReport, answer
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, whole_percent
from workbench.lake.reader import Snapshot

_WEEK: Final = timedelta(weeks=1)


@dataclass(frozen=True, slots=True, eq=False)
class GoingBack:
    """The decisions of an anomaly's window, decided by the version before the new one.

    Attributes:
        versions: The new versions, which came with the anomaly.
        before: The version that made the most decisions in the weeks before, except the new ones.
        report: The decisions of the window, decided by that version.
    """

    versions: tuple[str, ...]
    before: str
    report: CounterfactualReport

    def finding(self) -> str:
        """The number of verdicts that going back would have changed, without a full stop."""
        body, version = self.report.body, cut(self.before)
        changed, whole = body["verdict_changed"], body["redecided"]
        if not whole:
            return f"The effect of going back to version {version} is unknown: the facts are gone"
        among = f"of {counted(whole, 'decision')}"
        if not changed:
            return f"Going back to version {version} would not have changed the verdict of any {among}"
        share = whole_percent(changed / whole)
        return f"Going back to version {version} would have changed the verdict of {changed:,} {among} ({share})"

    def sentences(self) -> list[str]:
        """The finding, and sentences about the decisions behind it."""
        said = [f"{self.finding()}."]
        lost = self._lost()
        if lost:
            said.append(f"{lost:,} of those with another verdict failed or {'was' if lost == 1 else 'were'} reverted.")
        unknown = self.report.body["unknown"]
        if unknown and self.report.body["redecided"]:
            said.append(f"The facts of {unknown:,} more are gone.")
        return said

    def _lost(self) -> int:
        """How many decisions whose verdict would be another failed or were reverted, as they were made."""
        other = pl.col("verdict").cast(pl.String) != pl.col("then_verdict").cast(pl.String)
        return int(self.report.frame.filter(other).select(pl.col("failed") + pl.col("reverted")).sum().item())

    def __repr__(self) -> str:
        return " ".join(self.sentences())


def going_back(snapshot: Snapshot, policy_id: str, anomaly: AnomalyDocument) -> GoingBack | None:
    """Decides the window of an anomaly with the previous version.

    Args:
        snapshot: The scope's chain.
        policy_id: The policy.
        anomaly: The anomaly, as a report about that policy lists it.

    Returns:
        None if no new version came with it, if no version decided in the weeks before, or if this release cannot
        evaluate the rulebook of the one that did.

    Raises:
        OperatorError: `LAKE_MOVED_ON`.
    """
    versions: list[str] = anomaly["numbers"].get("new_versions", [])
    if not versions:
        return None
    # The first change leads the group: it gave the anomaly its window and its versions.
    change: dict[str, Any] = anomaly["numbers"]["changes"][0]
    start, first, last = (datetime.fromisoformat(change[name]) for name in ("reference_from", "from", "to"))
    replaced = _version_before(snapshot.slice(start, first), policy_id, versions)
    if replaced is None:
        return None
    before, body = replaced
    # A window that goes on ends with the chain's last entry, which may be one of its decisions.
    until = moved(first, max(1, -((first - last) // _WEEK)) * _WEEK)
    question = CounterfactualsQuestion(policy_id, rulebook=body, since=first, until=until)
    try:
        report = answer(snapshot.slice(first, until), question)
    except RulebookRefused:
        return None
    return GoingBack(tuple(versions), before, report)


def _version_before(snapshot: Snapshot, policy_id: str, versions: list[str]) -> tuple[str, dict[str, Any]] | None:
    """The version that made the most decisions, the later one of equals, and its rulebook: the one it used last."""
    decided = snapshot.cases(policy_id).filter(~pl.col("policy_version").cast(pl.String).is_in(versions))
    used = (
        decided.group_by(pl.col("policy_version").cast(pl.String))
        .agg(pl.len().alias("decisions"), pl.col("position").max(), pl.col("policy_hash").sort_by("position").last())
        .sort("decisions", "position")
        .tail(1)
    )
    rulebooks = snapshot.table("rulebooks").select("policy_hash", "body")
    found = used.join(rulebooks, on="policy_hash").select("policy_version", "body").collect(engine="streaming")
    if found.is_empty():
        return None
    version, body = found.row(0)
    return version, parse_document(body.encode())
