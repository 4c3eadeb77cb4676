"""An imported history as the source of every engine: what they count, and how each says that the cases are imported."""

from __future__ import annotations

import csv
import json
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse_document
from gate.errors import OperatorError
from gate.rulebooks.rulebook import Rulebook, load
from tests.workbench.history.importing import DATA, imported, plan_of, sample_plan, small_map, write_csv
from workbench import (
    Criteria,
    activity,
    anomalies,
    benchmarks,
    confidence,
    counterfactuals,
    effectiveness,
    find_decisions,
    glance,
    policy_alerts,
    roll_up,
)
from workbench.engines.wording import joined, without_verdict
from workbench.lake.reader import Snapshot
from workbench.migration.history import LakeHistory, dry_run
from workbench.whatif import decide_slice

POLICY = "refund_policy"
ROWS = list(csv.DictReader((DATA / "refunds.csv").read_text().splitlines()))
VERDICTS = {"paid": "yes", "denied": "no", "desk": "review"}


def rulebook(*path: str) -> Rulebook:
    body: Any = parse_document(resources.path("data", "rulebooks", *path).read_bytes())
    return load(body)


CANDIDATE = rulebook("refund_policy.json")
BASE = rulebook("historical", "refund_policy.2026-02-01.json")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The sample history."""
    return imported(sample_plan(tmp_path_factory.mktemp("lake")))


@pytest.fixture(scope="module")
def untold(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The same without verdicts."""
    map_ = yaml.safe_load((DATA / "refunds.map.yaml").read_text())
    del map_["verdict"]
    return imported(plan_of(tmp_path_factory.mktemp("lake"), [DATA / "refunds.csv"], map_))


def decided_by(of: Rulebook) -> list[str]:
    """What a rulebook decides of each row, one by one."""
    map_ = yaml.safe_load((DATA / "refunds.map.yaml").read_text())
    found = []
    for row in ROWS:
        facts = {}
        for name, told in map_["facts"].items():
            cell = row[told["column"]]
            if cell:
                kind = told["type"]
                facts[name] = cell if kind == "string" else cell == "yes" if kind == "boolean" else json.loads(cell)
        found.append(of.evaluator.decide(facts).decision)
    return found


@pytest.mark.parametrize(
    ("engine", "hash_name"),
    [(effectiveness, "effectiveness_hash"), (confidence, "confidence_hash"), (anomalies, "anomaly_hash")],
)
def test_every_report_says_that_its_cases_are_imported(history: Snapshot, engine: Any, hash_name: str) -> None:
    report = engine(history, POLICY)
    body = report.to_dict()
    assert history.imported is not None
    mark = {"name": "past", "history_hash": history.imported.history_hash, "rows": 240, "refused": 0, "erased": 0}
    assert body["coverage"]["history"] == mark
    assert "unverified; they are not in the chain" in body["notes"][0]
    assert body[hash_name] == content_hash({name: of for name, of in body.items() if name != hash_name})
    assert "imported history past" in repr(report)
    assert "unverified" in report._repr_html_()
    report.plot()


def test_effectiveness_counts_what_the_file_holds(history: Snapshot) -> None:
    body = effectiveness(history, POLICY).to_dict()
    results = Counter(row["result"] for row in ROWS)
    outcomes = {name: body["outcomes"][name] for name in ("succeeded", "failed", "unreported")}
    assert outcomes == {"succeeded": results["kept"], "failed": results["disputed"], "unreported": results[""]}
    verdicts = Counter(VERDICTS[row["handled"]] for row in ROWS)
    assert {of["verdict"]: of["decisions"] for of in body["verdicts"]} == verdicts
    costs = sorted(float(row["refund_cost"]) for row in ROWS if row["refund_cost"])
    assert [(of["name"], of["min"], of["max"]) for of in body["metrics"]] == [("refund_cost", costs[0], costs[-1])]
    assert body["coverage"]["merkle_root"] is None


def test_cases_without_a_verdict_have_the_verdict_none(untold: Snapshot) -> None:
    report = effectiveness(untold, POLICY)
    assert [(of["verdict"], of["decisions"]) for of in report.to_dict()["verdicts"]] == [("none", 240)]
    for by in ("week", "version", "verdict", "rule"):
        report.plot(by)
    # Where nobody wrote down what was decided, a case with an outcome happened.
    acted = untold.cases().collect()["action_executed"]
    assert acted.to_list() == [True if row["result"] else None for row in ROWS]
    assert anomalies(untold, POLICY).to_dict()["coverage"]["decisions"] == 240
    assert activity(untold, POLICY).weekly["decisions"].sum() == 240
    assert glance(untold).frame["yes"].to_list() == [0]


def test_frames_name_the_history_as_well(history: Snapshot) -> None:
    assert history.imported is not None
    assert activity(history, POLICY).history == history.imported.mark
    assert glance(history).history == history.imported.mark
    assert "imported history past" in repr(roll_up(history))
    assert "imported rows" in repr(history)
    assert find_decisions(history, Criteria(policy_id=POLICY)).frame.height == 50


def test_no_anomaly_is_made_of_receipts_that_are_not_imported(history: Snapshot) -> None:
    assert [of["kind"] for of in anomalies(history, POLICY).to_dict()["anomalies"]] == []


def test_a_rulebook_decides_imported_cases_as_it_decides_each_alone(history: Snapshot, untold: Snapshot) -> None:
    then = decided_by(CANDIDATE)
    was = [VERDICTS[row["handled"]] for row in ROWS]
    body = counterfactuals(history, POLICY, rulebook=CANDIDATE.body).to_dict()
    assert {of: body["verdicts"]["after"][of] for of in ("yes", "no", "review")} == Counter(then)
    assert body["verdicts"]["before"] == Counter(was)
    changed = sum(one != other for one, other in zip(was, then, strict=True))
    assert body["verdict_changed"] == body["changed"] == changed > 0
    assert sum(of["decisions"] for of in body["transitions"] if of["changed"]) == changed
    nobody = counterfactuals(untold, POLICY, rulebook=CANDIDATE.body)
    nobody.plot()
    nobody._repr_html_()
    assert nobody.to_dict()["verdicts"]["before"] == {"yes": 0, "no": 0, "review": 0, "none": 240}
    assert nobody.to_dict()["verdict_changed"] == 0
    assert nobody.to_dict()["verdicts"]["after"] == body["verdicts"]["after"]


def test_what_if_sums_a_metric_over_imported_cases(history: Snapshot) -> None:
    found = decide_slice(history, POLICY, {}, rulebook=CANDIDATE, metrics=["refund_cost"])
    then = decided_by(CANDIDATE)
    expected: dict[tuple[str, str], list[float]] = {}
    for row, to in zip(ROWS, then, strict=True):
        if VERDICTS[row["handled"]] != to and row["refund_cost"]:
            expected.setdefault((VERDICTS[row["handled"]], to), []).append(float(row["refund_cost"]))
    told = {(of.was, of.then): of.worth["refund_cost"] for of in found.verdicts if of.worth}
    assert {key: worth[0] for key, worth in told.items()} == {key: len(of) for key, of in expected.items()}
    for key, values in expected.items():
        assert told[key][1] == pytest.approx(sum(values))


def test_what_if_without_verdicts_says_what_the_version_would_decide_and_sums_it(untold: Snapshot) -> None:
    metrics = ["refund_cost", "inputs.days_since_purchase"]
    found = decide_slice(untold, POLICY, {}, rulebook=CANDIDATE, metrics=metrics)
    expected: dict[str, list[float]] = {}
    for row, to in zip(ROWS, decided_by(CANDIDATE), strict=True):
        expected.setdefault(to, []).extend([float(row["refund_cost"])] if row["refund_cost"] else [])
    assert (found.verdicts, found.told) == ([], 0)
    told = {of.then: of.worth["refund_cost"] for of in found.untold}
    assert {then: values for then, (values, _) in told.items()} == {then: len(of) for then, of in expected.items()}
    for then, values in expected.items():
        assert told[then][1] == pytest.approx(sum(values))
    counts = Counter(decided_by(CANDIDATE))
    said = ", ".join(f"{counts[of]} {of}" for of in ("yes", "no", "review") if counts[of])
    report = counterfactuals(untold, POLICY, rulebook=CANDIDATE.body, metrics=metrics)
    assert f"The file has no verdicts; this version would decide {said}." in repr(report)
    ended = Counter(
        (to, row["result"]) for row, to in zip(ROWS, decided_by(CANDIDATE), strict=True) if row["result"] != ""
    )
    parts = [
        f"{ended[of, 'kept']} of the {ended[of, 'kept'] + ended[of, 'disputed']} that would get {of}"
        for of in ("yes", "no", "review")
        if ended[of, "kept"] + ended[of, "disputed"]
    ]
    assert f"Of those with a final outcome, {joined(parts)} had succeeded." in repr(report)
    assert "None of 240" not in report._repr_html_()
    assert "more would be approved" not in repr(report)


def test_what_if_over_some_verdicts_compares_these_and_tells_the_others(tmp_path: Path) -> None:
    map_ = yaml.safe_load((DATA / "refunds.map.yaml").read_text())
    map_["null_values"] = ["", "desk"]
    some = imported(plan_of(tmp_path, [DATA / "refunds.csv"], map_))
    found = decide_slice(some, POLICY, {}, rulebook=CANDIDATE, metrics=["refund_cost"])
    pairs = Counter(zip((VERDICTS[row["handled"]] for row in ROWS), decided_by(CANDIDATE), strict=True))
    then = {of: count for (was, of), count in sorted(pairs.items()) if was == "review"}
    assert {of.then: of.decisions for of in found.untold} == then
    assert found.told == 240 - sum(then.values())
    turned = {pair: count for pair, count in pairs.items() if len({*pair}) == 2 and pair[0] != "review"}
    assert {(of.was, of.then): of.decisions for of in found.verdicts} == turned
    said = without_verdict(found.body)
    assert said.startswith(f"The file has no verdict for {sum(then.values())} more cases; this version would decide ")
    assert all(f"{count} {of}" in said for of, count in then.items())


def test_a_dry_run_names_its_history_and_counts_what_both_versions_decide(history: Snapshot) -> None:
    run = dry_run(LakeHistory(history, POLICY), CANDIDATE, BASE, metric="refund_cost")
    assert history.imported is not None
    assert run.body["read_at"] == {"history": "past", "history_hash": history.imported.history_hash, "rows": 240}
    pairs = Counter(zip(decided_by(BASE), decided_by(CANDIDATE), strict=True))
    assert {(of["from"], of["to"]): of["decisions"] for of in run.body["matrix"]["verdict"]} == pairs
    was = Counter(zip([VERDICTS[row["handled"]] for row in ROWS], decided_by(CANDIDATE), strict=True))
    assert {(of["from"], of["to"]): of["decisions"] for of in run.body["was_matrix"]} == was
    # Of an imported case, no more than its verdict can differ from what the version in force decides.
    earlier = sum(VERDICTS[row["handled"]] != of for row, of in zip(ROWS, decided_by(BASE), strict=True))
    assert sum(of["of"] - (of["of"] - of["decisions"]) for of in run.body["earlier"]) == earlier
    assert any("imported cases of the history past" in line for line in run.lines)
    run.plot()
    run.plot("weeks")


@pytest.mark.parametrize("base", [None, BASE])
def test_a_dry_run_without_verdicts_says_what_the_candidate_decides(untold: Snapshot, base: Rulebook | None) -> None:
    run = dry_run(LakeHistory(untold, POLICY), CANDIDATE, base)
    then = Counter(decided_by(CANDIDATE))
    assert {of["to"]: of["decisions"] for of in run.body["was_matrix"]} == then
    assert {of["from"] for of in run.body["was_matrix"]} == {"none"}
    assert any("The file does not say how 240 imported cases were decided; the candidate" in line for line in run.lines)
    assert not any("None of 240" in line for line in run.lines)
    assert run.decisions().collect().height == 240
    run.plot()


def test_questions_about_a_chain_are_refused(history: Snapshot) -> None:
    for ask in (
        lambda: benchmarks(history, POLICY),
        lambda: policy_alerts(history),
        lambda: counterfactuals(history, POLICY, patch={"amount": 1}),
    ):
        with pytest.raises(OperatorError, match="mported cases") as error:
            ask()
        assert error.value.code == "ENGINE_ARGUMENT_INVALID"
    with pytest.raises(OperatorError, match="There is 'refund_policy'"):
        effectiveness(history, "refund_polcy")


def test_outcomes_without_a_date_are_reported_and_compared_once_weeks_are_old(tmp_path: Path) -> None:
    """Every fifth case fails for a year, then half of them: which day each result came, nobody wrote down."""
    start = date(2023, 1, 2)
    rows = [
        (
            f"r{day}-{number}",
            str(start + timedelta(days=day)),
            "1",
            "bad" if number < (2 if day < 364 else 5) else "good",
        )
        for day in range(546)
        for number in range(10)
    ]
    map_ = small_map(outcome={"column": "result", "values": {"good": "succeeded", "bad": "failed"}})
    file = write_csv(tmp_path / "cases.csv", rows, ("id", "when", "n", "result"))
    past = imported(plan_of(tmp_path / "lake", [file], map_))
    found = [of for of in anomalies(past, POLICY).to_dict()["anomalies"] if of["kind"] == "outcome_shift"]
    assert [of["summary"] for of in found] == ["The share of outcomes that failed rose from 20.0% to 50.0%."]
    assert activity(past, POLICY).latency["median_hours"].null_count() == activity(past, POLICY).latency.height
    # The last eight weeks are too young: which of their results are missing, nobody knows.
    assert all(of["window"]["to"][:10] <= "2024-05-06" for of in found)


def test_a_what_if_names_the_facts_by_which_imported_cases_fail_the_schema(tmp_path: Path) -> None:
    map_ = yaml.safe_load((DATA / "refunds.map.yaml").read_text())
    del map_["facts"]["share_of_payment_percent"]
    map_["facts"]["currency"] = {"column": "amount", "type": "number"}
    past = imported(plan_of(tmp_path, [DATA / "refunds.csv"], map_))
    report = counterfactuals(past, POLICY, rulebook=CANDIDATE.body, since=date(2025, 1, 1))
    rows = [row for row in ROWS if row["decided"] >= "2025"]
    required = CANDIDATE.body["input_schema"]["required"]
    found = {of["fact"]: (of["missing"], of["mistyped"]) for of in report.to_dict()["unfit"]}
    columns = {name: of["column"] for name, of in map_["facts"].items()}
    missing = {
        name: (sum(name not in columns or not row[columns[name]] for row in rows), 0)
        for name in required
        if name != "currency"
    }
    assert found == {
        **{name: counts for name, counts in missing.items() if counts[0]},
        "currency": (sum(not row["amount"] for row in rows), sum(bool(row["amount"]) for row in rows)),
    }
    assert found["share_of_payment_percent"] == (len(rows), 0)
    assert f"share_of_payment_percent is missing in {len(rows)}" in repr(report)
    report._repr_html_()


def test_imported_outcomes_that_are_dated_on_a_day_before_their_case_are_noted(tmp_path: Path) -> None:
    rows = [("a", "2024-01-05T12:00:00Z", "1", "good", day) for day in ("2024-01-04", "2024-01-05", "2024-01-06", "")]
    file = write_csv(
        tmp_path / "x.csv", [(f"{at}", *row[1:]) for at, row in enumerate(rows)], ("id", "when", "n", "result", "at")
    )
    map_ = small_map(
        occurred_at={"column": "when"},
        outcome={"column": "result", "values": {"good": "succeeded"}},
        outcome_at={"column": "at", "format": "date"},
    )
    notes = effectiveness(imported(plan_of(tmp_path / "lake", [file], map_)), POLICY).to_dict()["notes"]
    assert notes[-1] == "1 decision has an outcome that is dated before the decision. Check these dates."
