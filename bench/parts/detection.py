"""The detection rate of the anomaly report: the demo's year with and without its three incidents, and series.

It is measured for many seeds. The product's own code makes each year in a separate ledger, exports it, and reports on
every policy of every scope. An alarm is an anomaly of high severity. An incident is found if an alarm in its scope and
policy overlaps its days. Other alarms are false, as are all alarms in a year without incidents. An incident is listed
if an anomaly of medium severity overlaps it: a report recommends a review, but creates no alert. The thresholds
are not measured here; see `docs/reference/formulas/anomaly-metrics.md`. `bench.parts.series` makes series of a
metric, in which a change is found at medium or high severity.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from api.cli.demo.ledger import DemoPlan, make_ledger
from api.cli.options import instance_at
from bench.disk import scratch
from bench.lakes import goal_lines, judged
from bench.parts.series import CHANGES, found_in
from bench.tables import table
from gate.encoding import resources
from gate.encoding.strict_json import parse
from gate.ids import parse_timestamp
from workbench.engines.anomalies.report import anomalies
from workbench.lake.entries import Personal
from workbench.lake.reader import open_lake
from workbench.lake.upkeep import bring_up

# Not the first ones: what was changed after looking at a seed says nothing about it any more.
_FIRST_SEED: Final = 81
_SEEDS: Final = 20
_QUICK_SEEDS: Final = 2
_DECISIONS: Final = 10_000
_UNTIL: Final = datetime(2026, 11, 22, tzinfo=UTC)
_HASTY_DAYS: Final = 28


@dataclass(frozen=True, slots=True)
class Incident:
    """A planted incident.

    Attributes:
        name: Its name.
        scope: Its scope.
        policy_id: Its policy.
        first: Its beginning.
        last: The end, exclusive.
    """

    name: str
    scope: str
    policy_id: str
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """An anomaly of medium or high severity."""

    scope: str
    policy_id: str
    kind: str
    severity: str
    first: datetime
    last: datetime

    @property
    def is_alarm(self) -> bool:
        """Whether alerts list it."""
        return self.severity == "high"

    def shows(self, incident: Incident) -> bool:
        """Whether it overlaps an incident where that was."""
        there = (self.scope, self.policy_id) == (incident.scope, incident.policy_id)
        return there and self.first < incident.last and incident.first < self.last


def run(*, quick: bool) -> dict[str, Any]:
    """Counts the found incidents, and the false alarms."""
    seeds = range(_FIRST_SEED, _FIRST_SEED + (_QUICK_SEEDS if quick else _SEEDS))
    planted, clean = {}, {}
    with scratch() as directory:
        for seed in seeds:
            planted[seed] = _judged(list(_seen(directory / "planted", DemoPlan(_DECISIONS, seed, _UNTIL))))
            seen = _seen(directory / "clean", DemoPlan(_DECISIONS, seed, _UNTIL, clean=True))
            clean[seed] = [anomaly for anomaly in seen if anomaly.is_alarm]
        series = {name: [_of_series(directory, name, seed) for seed in seeds] for name in (*CHANGES, None)}
    quiet_series = sum(not of["found"] for of in series.pop(None))
    changes = {
        name: {how: sum(of[how] for of in each) for how in ("found", "alarm")}
        for name, each in series.items()
        if name is not None
    }
    metric_recall = sum(of["found"] for of in changes.values()) / (len(changes) * len(seeds))
    incidents = [incident.name for incident in _incidents(_UNTIL)]
    true = sum(of["true"] for of in planted.values())
    false = sum(of["false"] for of in planted.values())
    found, listed = (
        {name: sum(name in of[how] for of in planted.values()) for name in incidents} for how in ("found", "listed")
    )
    quiet = sum(not alarms for alarms in clean.values())
    recall = sum(found.values()) / (len(incidents) * len(seeds))
    goals = [
        judged("recall of planted incidents", recall, 1.0, unit="of 1", least=True),
        judged("years without incidents and without alarm", quiet / len(seeds), 0.95, unit="of 1", least=True),
        judged("recall of changes of a metric", metric_recall, 0.9, unit="of 1", least=True),
        judged("series without a change and without anomaly", quiet_series / len(seeds), 0.95, unit="of 1", least=True),
    ]
    return {
        "first_seed": _FIRST_SEED,
        "seeds": len(seeds),
        "decisions": _DECISIONS,
        "found": found,
        "recall": recall,
        "listed": listed,
        "true_alarms": true,
        "false_alarms": false,
        "precision": true / (true + false) if true + false else None,
        "clean_years_without_alarm": quiet,
        "changes": changes,
        "recall_of_changes": metric_recall,
        "series_without_anomaly": quiet_series,
        "false_alarms_in_clean_years": [
            {"seed": seed, "scope": alarm.scope, "policy_id": alarm.policy_id, "kind": alarm.kind}
            for seed, alarms in clean.items()
            for alarm in alarms
        ],
        "goals": goals,
    }


def show(result: Mapping[str, Any]) -> str:
    """The result as tables."""
    rows = [
        [f"{how} of {name}", f"{count} of {result['seeds']}"]
        for how in ("found", "listed")
        for name, count in result[how].items()
    ]
    precision = "-" if result["precision"] is None else f"{result['precision']:.3f}"
    rows += [
        ["alarms that show an incident", str(result["true_alarms"])],
        ["alarms that show none", str(result["false_alarms"])],
        ["precision", precision],
        ["recall", f"{result['recall']:.3f}"],
        ["clean years without alarm", f"{result['clean_years_without_alarm']} of {result['seeds']}"],
    ]
    for name, of in result["changes"].items():
        rows.append([f"metric, {name}: found", f"{of['found']} of {result['seeds']}, {of['alarm']} by alarms"])
    rows += [
        ["recall of changes of a metric", f"{result['recall_of_changes']:.3f}"],
        ["series without a change and without anomaly", f"{result['series_without_anomaly']} of {result['seeds']}"],
    ]
    title = (
        f"What the anomaly report finds: {result['seeds']} seeds of {result['decisions']:,} decisions, with and without"
    )
    return "\n\n".join([f"{title} incidents", table(["", ""], rows), goal_lines(result["goals"])])


def _of_series(directory: Path, name: str | None, seed: int) -> dict[str, bool]:
    within = directory / "series"
    within.mkdir()
    found = found_in(within, name, seed)
    shutil.rmtree(within)
    return found


def _judged(seen: Sequence[Seen]) -> dict[str, Any]:
    incidents = _incidents(_UNTIL)
    alarms = [anomaly for anomaly in seen if anomaly.is_alarm]
    true = [alarm for alarm in alarms if any(alarm.shows(incident) for incident in incidents)]
    found = {incident.name for incident in incidents if any(alarm.shows(incident) for alarm in alarms)}
    listed = {incident.name for incident in incidents if any(anomaly.shows(incident) for anomaly in seen)}
    return {"found": found, "listed": listed, "true": len(true), "false": len(alarms) - len(true)}


def _incidents(until: datetime) -> list[Incident]:
    parameters = parse(resources.path("data", "demo", "scenario.json").read_bytes())
    start = until - timedelta(days=parameters["days"])
    rollout, burst, hasty = (parameters["incidents"][name] for name in ("bad_rollout", "fraud_burst", "hasty_worker"))
    days = {
        "bad_rollout": (rollout["from_day"], rollout["until_day"]),
        "fraud_burst": (burst["from_day"], burst["from_day"] + burst["days"]),
        # It lasts for so many actions, and not for so many days.
        "hasty_worker": (hasty["from_day"], hasty["from_day"] + _HASTY_DAYS),
    }
    return [
        Incident(name, of["scope"], of["policy"], *(start + timedelta(days=day) for day in days[name]))
        for name, of in (("bad_rollout", rollout), ("fraud_burst", burst), ("hasty_worker", hasty))
    ]


def _seen(home: Path, plan: DemoPlan) -> Iterator[Seen]:
    """The anomalies of medium and high severity in a demo's year."""
    make_ledger(home, plan)
    with instance_at(home, None) as instance:
        lake = instance.settings.lake_directory
        lake.mkdir(mode=0o700, exist_ok=True)
        for scope in instance.ledger.tail.scopes():
            for _ in bring_up(instance.ledger, lake, scope.scope_id, Personal()):
                pass
    opened = open_lake(lake)
    for name in opened.scopes:
        snapshot = opened.scope(name)
        for policy_id in snapshot.cases().select("policy_id").unique().collect()["policy_id"].sort():
            for anomaly in anomalies(snapshot, policy_id, max_items=200).to_dict()["anomalies"]:
                if anomaly["severity"] != "low":
                    first, last = (parse_timestamp(anomaly["window"][end]) for end in ("from", "to"))
                    yield Seen(name, policy_id, anomaly["kind"], anomaly["severity"], first, last)
    shutil.rmtree(home)
