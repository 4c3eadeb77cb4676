"""What a policy does over time: every number equals a recount of the chain's entries, one decision at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.errors import OperatorError
from gate.ids import parse_timestamp
from tests.independent import recount
from tests.support.torture import size
from tests.workbench.engines.edges import refused
from tests.workbench.made_up import DAY, HOUR, MONDAY, POLICY, WEEK, MadeUp
from tests.workbench.mixed import DAYS, POLICIES, UNUSED, mixed, rulebook, snapshots
from workbench.engines.activity import Activity, activity
from workbench.engines.effectiveness import effectiveness
from workbench.lake.entries import Personal
from workbench.lake.reader import Lake, Snapshot

CHAIN: Final = mixed(6, 160)
MANY: Final = 205

Told = Sequence[recount.Told]


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Snapshot]:
    return snapshots(CHAIN, tmp_path_factory.mktemp("active"))


def made(decision: recount.Told) -> datetime:
    return parse_timestamp(decision.record["created_at"])


def told(policy_id: str, version: str | None = None) -> Told:
    """The decisions of a policy, or of one of its versions."""
    return [
        decision
        for decision in recount.told(CHAIN.entries)
        if decision.record["policy_id"] == policy_id and version in (None, decision.record["policy_version"])
    ]


def grouped(decisions: Told, by: Callable[[recount.Told], tuple[Any, ...]]) -> Mapping[tuple[Any, ...], Told]:
    found: dict[tuple[Any, ...], list[recount.Told]] = {}
    for decision in decisions:
        found.setdefault(by(decision), []).append(decision)
    return found


def lower(values: Sequence[float], share: float) -> float | None:
    """The lower quantile, which is one of the values."""
    return sorted(values)[math.floor((len(values) - 1) * share)] if values else None


def hours(decisions: Told) -> list[float]:
    """How long after each decision that has an outcome the earliest one was reported."""
    return [
        round((min(parse_timestamp(of["reported_at"]) for _, of in decision.outcomes) - made(decision)) / HOUR, 6)
        for decision in decisions
        if decision.outcomes
    ]


def rated(decisions: Told) -> tuple[Any, ...]:
    rate = recount.rate_of(decisions)
    return (len(decisions), recount.number_of(decisions, *recount.TERMINAL), rate["rate"], rate["low"], rate["high"])


ASKED: Final = [(policy_id, version) for policy_id in POLICIES for version in (None, *POLICIES[policy_id])]


@pytest.mark.parametrize(("policy_id", "version"), ASKED)
def test_every_number_is_that_of_a_recount(lakes: Sequence[Snapshot], policy_id: str, version: str | None) -> None:
    decisions = told(policy_id, version)
    # In the short form two of the lakes for each, so that each lake is asked for every other one.
    for snapshot in size(lakes[ASKED.index((policy_id, version)) % 2 :: 2], lakes):
        require_equal(activity(snapshot, policy_id, version), decisions)


def require_equal(found: Activity, decisions: Told) -> None:
    weekly = grouped(decisions, lambda of: (of.monday, of.record["policy_version"], of.record["verdict"]))
    assert {(f"{week}", *by): number for week, *by, number in found.weekly.iter_rows()} == {
        key: len(of) for key, of in weekly.items()
    }
    reasons = grouped(decisions, lambda of: (of.record["reason_code"], of.record["verdict"]))
    assert {row[:2]: row[2:] for row in found.reasons.iter_rows()} == {key: rated(of) for key, of in reasons.items()}
    rules = grouped(decisions, lambda of: (of.record["evidence"][1], of.record["verdict"]))
    hit = found.rules.filter(pl.col("decisions") > 0)
    assert {row[:2]: row[2:] for row in hit.iter_rows()} == {
        key: (*rated(of), max(map(made, of))) for key, of in rules.items()
    }
    weeks = grouped(decisions, lambda of: (of.monday,))
    assert {f"{week}": tuple(of) for week, *of in found.latency.iter_rows()} == {
        week: (len(of), len(hours(of)), lower(hours(of), 0.5), lower(hours(of), 0.9)) for (week,), of in weeks.items()
    }
    waits = hours(decisions)
    assert (found.decisions, found.with_outcome) == (len(decisions), len(waits))
    assert (found.median_hours, found.p90_hours) == (lower(waits, 0.5), lower(waits, 0.9))
    measured: dict[tuple[str, str], list[float]] = {}
    for decision in decisions:
        for name, value in decision.metrics.items():
            measured.setdefault((name, decision.record["policy_version"]), []).append(value)
    assert {row[:2]: row[2:] for row in found.metrics.iter_rows()} == {
        key: (len(of), *(lower(of, share) for share in (0.25, 0.5, 0.75)), min(of), max(of))
        for key, of in measured.items()
    }


def test_the_frames_have_the_columns_and_the_order_that_charts_read(lakes: Sequence[Snapshot]) -> None:
    found = activity(lakes[2], POLICY)
    rates = ["decisions", "terminal", "success_rate", "low", "high"]
    assert found.weekly.columns == ["week", "policy_version", "verdict", "decisions"]
    assert found.reasons.columns == ["reason_code", "verdict", *rates]
    assert found.rules.columns == ["rule", "verdict", *rates, "last_hit_at"]
    assert found.latency.columns == ["week", "decisions", "with_outcome", "median_hours", "p90_hours"]
    assert found.metrics.columns == ["name", "policy_version", "decisions", "p25", "median", "p75", "min", "max"]
    for frame in (found.reasons, found.rules):
        assert frame["decisions"].to_list() == sorted(frame["decisions"], reverse=True)
    names = found.metrics.group_by("name", maintain_order=True).agg(pl.col("decisions").sum())
    assert names["decisions"].to_list() == sorted(names["decisions"], reverse=True)
    assert found.weekly["week"].is_sorted()
    assert found.latency["week"].is_sorted()


def test_a_slice_is_counted_alone(lakes: Sequence[Snapshot]) -> None:
    middle = MONDAY + timedelta(days=DAYS // 2)
    decisions = [of for of in told(POLICY) if made(of) >= middle and of.record["verdict"] == "no"]
    for snapshot in lakes:
        require_equal(activity(snapshot.slice(since=middle, verdict="no"), POLICY), decisions)


def test_a_rule_that_decided_nothing_stands_last_without_a_verdict(lakes: Sequence[Snapshot]) -> None:
    for snapshot in lakes:
        rows = activity(snapshot, POLICY).rules.filter(decisions=0).to_dicts()
        assert rows == [
            {
                "rule": f"rule:{UNUSED}",
                "verdict": None,
                "decisions": 0,
                "terminal": 0,
                "success_rate": None,
                "low": 0.0,
                "high": 1.0,
                "last_hit_at": None,
            }
        ]
        # In this slice the other rules did not decide either.
        idle = activity(snapshot.slice(verdict="yes"), POLICY).rules.filter(decisions=0)["rule"].to_list()
        assert idle == ["rule:large", f"rule:{UNUSED}"]


def test_rules_of_versions_that_decided_nothing_in_the_slice_are_left_out(tmp_path: Path) -> None:
    chain = MadeUp()
    for late, version in enumerate(("1", "2")):
        body = rulebook(POLICY, version)
        body["rules"][0]["rule_id"] = f"of_{version}"
        chain.decide(MONDAY + late * WEEK, version=version, rulebook=body)
    snapshot = chain.snapshot(tmp_path)

    def idle(of: Snapshot, version: str | None = None) -> set[str]:
        return {*activity(of, POLICY, version).rules.filter(decisions=0)["rule"]} & {"rule:of_1", "rule:of_2"}

    assert idle(snapshot) == {"rule:of_1", "rule:of_2"}
    assert idle(snapshot, "1") == idle(snapshot.slice(until=MONDAY + WEEK)) == {"rule:of_1"}


def test_the_first_outcome_counts_for_how_late_it_came(tmp_path: Path) -> None:
    chain = MadeUp()
    for late in (1, 2, 3, 10):
        decision_id = chain.decide(MONDAY)
        chain.outcome(decision_id, MONDAY + late * HOUR, "pending")
        chain.outcome(decision_id, MONDAY + DAY * 30)
    chain.decide(MONDAY + WEEK)
    found = activity(chain.snapshot(tmp_path), POLICY)
    assert (found.with_outcome, found.median_hours, found.p90_hours) == (4, 2.0, 3.0)
    assert found.latency.rows()[1][1:] == (1, 0, None, None)


def test_names_of_which_callers_make_endlessly_many_are_bounded(tmp_path: Path) -> None:
    chain = MadeUp()
    for number in range(MANY):
        name = f"{number:03}"
        decision_id = chain.decide(MONDAY, version=name, reason=f"R{name}", rule=f"rule:{name}")
        chain.outcome(decision_id, MONDAY + DAY, observed_metrics={f"m{name}": 1, "all": number})
    chain.decide(MONDAY, version="100", reason="R100", rule="rule:100")
    found = activity(chain.snapshot(tmp_path), POLICY)
    assert (found.reasons.height, found.reasons_left_out) == (200, 5)
    assert (found.rules.height, found.rules_left_out) == (200, 5)
    assert found.reasons["reason_code"].to_list()[:2] == ["R100", "R000"]
    assert found.rules["rule"].to_list()[:2] == ["rule:100", "rule:000"]
    assert (found.metrics["name"].n_unique() <= 64, found.metrics_left_out) == (True, MANY + 1 - 64)
    assert found.metrics.filter(name="all").height == 50
    assert found.versions_left_out == MANY - 50
    assert found.weekly.height == 51
    assert found.weekly.filter(pl.col("policy_version").is_null()).rows()[0][1:] == (None, "yes", MANY - 50)
    assert found.weekly["decisions"].sum() == found.decisions == MANY + 1


def test_metrics_that_the_lake_leaves_out_are_not_there(tmp_path: Path) -> None:
    for snapshot in snapshots(CHAIN, tmp_path, Personal.of(["observed_metrics"])):
        assert activity(snapshot, POLICY).metrics.is_empty()


def test_its_rates_are_those_of_the_effectiveness_report(lakes: Sequence[Snapshot]) -> None:
    for snapshot in lakes:
        expected = {row["rule"]: row["decisions"] for row in effectiveness(snapshot, POLICY).to_dict()["rules"]}
        counted = activity(snapshot, POLICY).rules.group_by("rule").agg(pl.col("decisions").sum())
        assert dict(counted.filter(pl.col("decisions") > 0).iter_rows()) == expected


def test_an_empty_chain_has_frames_without_rows(tmp_path: Path) -> None:
    empty, full = (activity(chain.snapshot(tmp_path), POLICY) for chain in (MadeUp(), CHAIN))
    for name in ("weekly", "reasons", "rules", "latency", "metrics"):
        assert getattr(empty, name).is_empty()
        assert getattr(empty, name).schema == getattr(full, name).schema
    assert (empty.decisions, empty.with_outcome, empty.median_hours, empty.p90_hours) == (0, 0, None, None)


def test_wrong_arguments_are_refused_in_a_sentence(lakes: Sequence[Snapshot], tmp_path: Path) -> None:
    wrong: Any = 5
    assert "policy_id is 5" in refused(lambda: activity(lakes[0], wrong))
    assert "policy_version is 5" in refused(lambda: activity(lakes[0], POLICY, wrong))
    of_a_lake: Any = Lake(tmp_path, [lakes[0].manifest])
    assert "This lake has acme" in refused(lambda: activity(of_a_lake, POLICY))
    for asked in (("refund", None), (POLICY, "9")):
        with pytest.raises(OperatorError) as caught:
            activity(lakes[0], *asked)
        assert caught.value.code == "LAKE_POLICY_UNKNOWN"
