"""The history dry run: every figure as a recount in plain Python has it, whatever the files of the lake look like."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator

from gate.encoding import resources
from gate.encoding.canonical import canonical
from gate.errors import OperatorError
from gate.ids import timestamp
from gate.rulebooks.analysis import compare
from gate.rulebooks.analysis.finding import Inconsistent
from gate.rulebooks.rulebook import Rulebook, load
from tests.independent import history as recount
from tests.support.samples import sample_rulebook
from tests.support.torture import size
from tests.workbench.made_up import DAY, MONDAY, MadeUp
from tests.workbench.migration.drawn import ADAPTERS, METRIC, PERSONAL, RULEBOOK_ID, Drawn, drawn
from workbench.engines.findings import owners_answers
from workbench.lake.entries import Personal
from workbench.lake.reader import Snapshot
from workbench.migration import figures, history
from workbench.migration.history import HistoryRun, LakeHistory, dry_run

# In the short form, one of each way to ask, with no, one and two personal facts.
SEEDS = size([0, 1, 6, 11], list(range(40)))
DECISIONS = size(140, 400)
EVIDENCE = resources.schema("rulebook-migration-evidence-v1")
HISTORY = Draft202012Validator({"$ref": "#/$defs/history", "$defs": EVIDENCE["$defs"]})
BY = ("amount", "count", "region", "tags", "customer", "customer.tier", "paid", "secret", "nobody_reads", "note")


def snapshots(chain: MadeUp, lake: Path, personal: Personal | None = None) -> Iterator[Snapshot]:
    """The chain from the ledger alone, from files that are resolved in part, and from resolved ones."""
    whole = len(chain.entries)
    for number, (exported, compacted) in enumerate([(0, 0), (whole // 2, whole // 3), (whole, whole)]):
        yield chain.snapshot(lake / str(number), personal, exported=exported, compacted=compacted)


def run_over(snapshot: Snapshot, of: Drawn, *, first: bool = False, **asked: Any) -> HistoryRun:
    """A dry run, whose body has the published shape."""
    run = dry_run(LakeHistory(snapshot, RULEBOOK_ID), of.candidate, None if first else of.base, **asked)
    assert list(HISTORY.iter_errors(run.to_dict())) == []
    assert json.loads(json.dumps(run.to_dict())) == run.to_dict()
    return run


def without_sentences(body: Mapping[str, Any]) -> dict[str, Any]:
    """The figures alone."""
    asked = {"rulebook_id", "base", "candidate", "read_at", "since", "until", "metric", "adapter_manifest_hash"}
    told = {"undecided", "note", "left_out"}
    found = {name: value for name, value in body.items() if name not in asked | told}
    found["outcomes"] = {
        name: {member: value for member, value in of.items() if member != "sentence"}
        for name, of in body["outcomes"].items()
        if name != "unknowable"
    }
    return found


def held(of: Drawn, run: HistoryRun, *, first: bool, by: Sequence[str] | None, **asked: Any) -> None:
    """Holds a run against a recount: every figure, and every decision."""
    base = None if first else of.base
    decisions = recount.decide_anew(of.past, of.candidate, base, **asked)
    read = sorted({name for body in (of.candidate, base) if body for name in recount.read_by(body.body)})
    metric = asked.get("metric")
    fields = read[:20] if by is None else by
    expected = recount.figures(decisions, of.candidate, base, run.difference, fields=fields, metric=metric)
    found = without_sentences(run.body)
    for name, figure in expected.items():
        assert found[name] == figure, name
    assert found.keys() == expected.keys()
    assert set(run.body["left_out"].values()) == {0}
    held_rows(decisions, run)


def held_rows(decisions: Sequence[recount.Anew], run: HistoryRun) -> None:
    names = ("verdict", "application_verdict", "action", "reason_code", "rule")
    expected = [
        {
            "position": one.position,
            "decision_id": one.decision_id,
            "policy_version": one.version,
            "week": one.week,
            **{f"was_{name}": value for name, value in zip(names, one.was, strict=True)},
            **{f"base_{name}": value for name, value in zip(names, one.base or [None] * 5, strict=True)},
            **{f"then_{name}": value for name, value in zip(names, one.then or [None] * 5, strict=True)},
            "changed": one.changed,
            "verdict_changed": one.base is not None and one.then is not None and one.base[0] != one.then[0],
            "not_redecided": one.reason,
            "outcome_status": None if one.status == "unreported" else one.status,
            "value": one.value,
        }
        for one in decisions
    ]
    rows = run.decisions().with_columns(pl.col("week").cast(pl.String)).drop("created_at").collect().to_dicts()
    assert rows == expected


def approving_up_to(percent: int) -> Rulebook:
    """The sample rulebook, which approves discounts up to so many percent and holds greater ones."""
    body = sample_rulebook()
    body["version"] = f"limit-{percent}"
    body["rules"][1]["condition"]["all"][0]["value"] = percent
    return load(body)


def test_a_run_says_how_owners_resolved_the_held_decisions(tmp_path: Path) -> None:
    chain, base = MadeUp(), approving_up_to(15)
    policy_id = base.rulebook_id
    held = [
        chain.decide(
            MONDAY + number * DAY,
            verdict="review",
            policy_id=policy_id,
            facts={"discount_percent": 16 + number, "margin_percent": 22},
            rulebook=dict(base.body),
        )
        for number in range(7)
    ]
    for number, answer in enumerate(("granted", "granted", "granted", "refused", "refused", "expired")):
        chain.resolve(held[number], MONDAY + (7 + number) * DAY, answer)
    for snapshot in snapshots(chain, tmp_path):
        for before in (base, None):
            run = dry_run(LakeHistory(snapshot, policy_id), approving_up_to(19), before)
            assert list(HISTORY.iter_errors(run.to_dict())) == []
            assert run.body["reviews"] == [
                {"then_verdict": "yes", "decisions": 4, "held": 0, "granted": 3, "refused": 1, "expired": 0}
            ]
            assert owners_answers(run.body) == [
                "Of 4 decisions that had been held and would be approved, owners granted 3 and refused 1."
            ]
        # What today's version would approve as well is not the migration's doing.
        run = dry_run(LakeHistory(snapshot, policy_id), approving_up_to(19), approving_up_to(18))
        assert run.body["newly_approved"]["decisions"] == 1
        assert run.body["reviews"] == [
            {"then_verdict": "yes", "decisions": 1, "held": 0, "granted": 0, "refused": 1, "expired": 0}
        ]


def test_a_run_over_reviews_that_nobody_resolved_says_nothing_of_owners(tmp_path: Path) -> None:
    chain, base = MadeUp(), approving_up_to(15)
    facts = {"discount_percent": 16, "margin_percent": 22}
    chain.decide(MONDAY, verdict="review", policy_id=base.rulebook_id, facts=facts, rulebook=dict(base.body))
    run = dry_run(LakeHistory(chain.snapshot(tmp_path), base.rulebook_id), approving_up_to(19), base)
    assert run.body["newly_approved"]["decisions"] == 1
    assert "reviews" not in run.body


WAYS: list[dict[str, Any]] = [
    {"metric": METRIC, "by": BY},
    {"adapter_manifest_hash": ADAPTERS[0]},
    {"metric": "inputs.amount", "first": True, "by": BY},
    {"metric": METRIC, "first": True, "adapter_manifest_hash": ADAPTERS[0]},
]


@pytest.mark.heavy
@pytest.mark.parametrize("seed", SEEDS)
def test_every_figure_is_that_of_a_recount(seed: int, tmp_path: Path) -> None:
    way = WAYS[seed % len(WAYS)]
    of = drawn(seed, DECISIONS, adapters=0.8 if "adapter_manifest_hash" in way else 0.1)
    marks = PERSONAL[: seed // len(WAYS) % 3]
    bodies = set()
    for snapshot in snapshots(of.chain, tmp_path, Personal.of(marks)):
        run = run_over(snapshot, of, **way)
        bodies.add(canonical(run.body))
    # The same ledger gives the same bytes, however its files are cut.
    assert len(bodies) == 1
    held(
        of,
        run,
        first=way.get("first", False),
        by=way.get("by"),
        metric=way.get("metric"),
        adapter=way.get("adapter_manifest_hash"),
        personal=[mark.removeprefix("inputs.") for mark in marks],
    )


def test_stretches_of_any_length_give_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = drawn(0, 50)
    snapshot = of.chain.snapshot(tmp_path)
    for asked in ({"metric": METRIC}, {"first": True, "by": BY}):
        whole = run_over(snapshot, of, **asked).body
        for stretch, bucket in ((5, 1), (20, 16)):
            with monkeypatch.context() as patch:
                patch.setattr(history, "STRETCH", stretch)
                patch.setattr(history, "BUCKET", bucket)
                assert run_over(snapshot, of, **asked).body == whole


def test_progress_is_told_after_each_stretch_up_to_the_end_of_the_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = drawn(1, 30)
    monkeypatch.setattr(history, "STRETCH", 10)
    monkeypatch.setattr(history, "BUCKET", 8)
    told: list[tuple[int, int]] = []
    run_over(of.chain.snapshot(tmp_path), of, told=lambda done, total: told.append((done, total)))
    size_ = len(of.chain.entries)
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == (size_, size_)
    assert {total for _, total in told} == {size_}


def test_a_dry_run_stops_between_stretches_once_it_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = drawn(1, 30)
    monkeypatch.setattr(history, "STRETCH", 10)
    monkeypatch.setattr(history, "BUCKET", 8)
    told: list[int] = []
    with pytest.raises(OperatorError) as caught:
        run_over(
            of.chain.snapshot(tmp_path), of, told=lambda done, _: told.append(done), cancelled=lambda: len(told) == 2
        )
    assert caught.value.code == "DRY_RUN_CANCELLED"
    assert len(told) == 2


@pytest.mark.parametrize("first", [False, True], ids=["base", "first"])
def test_a_history_without_decisions_gives_zeros_and_says_so(tmp_path: Path, first: bool) -> None:
    of = drawn(2, 1)
    body = run_over(MadeUp().snapshot(tmp_path), of, first=first, metric=METRIC).body
    assert (body["decisions"], body["redecided"], body["changed"]["decisions"]) == (0, 0, 0)
    assert {body["changed"][name] for name in ("share", "low", "high")} == {None}
    assert body["read_at"] == {"chain_id": "chain_1", "chain_position": 0, "merkle_root": None}
    assert (body["weeks"], body["versions"], body["money"], body["missing_facts"]) == ([], [], [], [])
    assert "No decision was approved" in body["outcomes"]["good_newly_blocked"]["sentence"]
    assert body["outcomes"]["newly_approved_unknown"]["sentence"] == "The candidate would newly approve no decision."
    assert body["outcomes"]["unknowable"].startswith("An action that was not carried out has no outcome")


def pricing(version: str, *, limit: float = 100, reversed_: bool = False) -> dict[str, Any]:
    """Refunds up to a limit are paid, those of a blocked region never."""
    outcome = {"verdict": "V_1", "action": "refund", "reason_code": "R_1"}
    rules: list[dict[str, Any]] = [
        {
            "rule_id": "block_region",
            "priority": 10,
            "condition": {"field": "region", "operator": "eq", "value": "XX"},
            "outcome": {**outcome, "decision": "no", "action": "block"},
        },
        {
            "rule_id": "pay_small",
            "priority": 5,
            "condition": {"field": "amount", "operator": "lte", "value": limit},
            "outcome": {**outcome, "decision": "yes"},
        },
    ]
    if reversed_:
        rules.reverse()
        rules[0]["condition"] = {"not": {"field": "amount", "operator": "gt", "value": limit}}
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": RULEBOOK_ID,
        "version": version,
        "input_schema": {
            "required": ["amount", "region"],
            "properties": {"amount": {"type": "number"}, "region": {"type": "string"}},
        },
        "rules": rules,
        "default_outcome": {**outcome, "decision": "review", "action": "hold"},
    }


def paid(chain: MadeUp, rulebook: dict[str, Any], amounts: Sequence[float], status: str | None = None) -> None:
    """Decisions about some amounts, a day apart, and what came of them."""
    evaluator = load(rulebook).evaluator
    for amount in amounts:
        at = MONDAY + len(chain.entries) * DAY / 2
        facts = {"amount": amount, "region": "DE"}
        told = evaluator.decide(facts)
        rule = "rule:default" if told.matched_rule_id is None else f"rule:{told.matched_rule_id}"
        decision_id = chain.decide(
            at,
            verdict=told.decision,
            reason=told.reason_code,
            version=rulebook["version"],
            facts=facts,
            rulebook=rulebook,
            rule=rule,
            outcome=(told.verdict, told.action),
        )
        if status is not None:
            chain.outcome(decision_id, at + DAY, status, observed_metrics={"paid": amount})


def test_a_planted_bad_candidate_is_caught_with_its_rule_its_region_and_its_outcomes(tmp_path: Path) -> None:
    base, chain = pricing("1"), MadeUp()
    paid(chain, base, [10, 20, 60, 80], "succeeded")
    paid(chain, base, [70, 90], "failed")
    paid(chain, base, [150, 5])
    run = dry_run(
        LakeHistory(chain.snapshot(tmp_path), RULEBOOK_ID), load(pricing("2", limit=50)), load(base), metric="paid"
    )
    body = run.body
    assert body["newly_blocked"]["decisions"] == body["changed"]["decisions"] == 4
    assert (body["newly_blocked"]["to_no"], body["newly_blocked"]["to_review"]) == (0, 4)
    (transition,) = body["transitions"]
    assert (transition["rule"], transition["then_rule"]) == ("rule:pay_small", "rule:default")
    assert transition["outcomes"]["succeeded"] == transition["outcomes"]["failed"] == 2
    (region,) = body["regions"]
    assert region["decisions"] == 4
    assert run.difference is not None
    assert run.difference.regions[region["region"]].condition == '50 < amount <= 100 and region is not "XX"'
    assert body["outcomes"]["good_newly_blocked"]["sentence"] == (
        "Of 4 decisions that were approved and succeeded, 2 (50.0 %, 95 % interval 15.0 to 85.0 %) would now be "
        "blocked or held."
    )
    assert body["outcomes"]["bad_newly_blocked"]["of"] == body["outcomes"]["bad_newly_blocked"]["decisions"] == 2
    (moved,) = [row for row in body["money"] if row["verdict"] != row["then_verdict"]]
    assert (moved["values"], moved["sum"], moved["mean"]) == (4, 300.0, 75.0)
    by_class = {of["class"]: of["changed"] for fact in body["facts"] for of in fact["classes"]}
    assert by_class == {"amount <= 50": 0, "50 < amount <= 100": 4, "amount > 100": 0, 'region is "DE"': 4}
    behind = run.decisions().filter("changed").collect()
    assert behind["decision_id"].to_list() == body["changed"]["decision_ids"]


def test_a_candidate_that_decides_as_the_base_changes_nothing(tmp_path: Path) -> None:
    base, chain = pricing("1"), MadeUp()
    paid(chain, base, [10, 100, 100.5, 0], "succeeded")
    run = dry_run(LakeHistory(chain.snapshot(tmp_path), RULEBOOK_ID), load(pricing("2", reversed_=True)), load(base))
    assert run.difference is not None
    assert run.difference.equal
    assert (run.body["changed"]["decisions"], run.body["redecided"], run.body["regions"]) == (0, 4, [])


def test_an_analysis_that_contradicts_the_decisions_is_a_defect(tmp_path: Path) -> None:
    base, chain = pricing("1"), MadeUp()
    paid(chain, base, [10, 60])
    past = LakeHistory(chain.snapshot(tmp_path), RULEBOOK_ID)
    candidate = load(pricing("2", limit=50))
    for wrong in (compare(base, pricing("1")), compare(base, pricing("2", limit=20))):  # type: ignore[arg-type]
        missing = replace(wrong, regions=wrong.regions[:0])
        with pytest.raises(Inconsistent):
            dry_run(past, candidate, load(base), difference=missing)


def test_what_earlier_versions_decided_otherwise_is_not_the_candidates_doing(tmp_path: Path) -> None:
    chain = MadeUp()
    paid(chain, pricing("1", limit=20), [10, 30, 40])
    paid(chain, pricing("2"), [30, 40])
    past = LakeHistory(chain.snapshot(tmp_path), RULEBOOK_ID)
    body = dry_run(past, load(pricing("3")), load(pricing("2"))).body
    assert body["changed"]["decisions"] == 0
    assert [(of["policy_version"], of["decisions"], of["of"]) for of in body["earlier"]] == [("1", 2, 3)]
    assert dry_run(past, load(pricing("3")), None).body["changed"]["decisions"] == 2


def test_a_stretch_of_time_is_looked_at(tmp_path: Path) -> None:
    of = drawn(3, 40)
    snapshot = of.chain.snapshot(tmp_path)
    made = sorted(one.record["created_at"] for one in of.past)
    since, until = (datetime.fromisoformat(made[at]) for at in (8, 30))
    run = run_over(snapshot, of, since=since, until=until)
    assert (run.body["since"], run.body["until"]) == (made[8], made[30])
    held(of, run, first=False, by=None, since=timestamp(since), until=timestamp(until))
    # What was made in the millisecond before is before it.
    later = run_over(snapshot, of, since=since + timedelta(microseconds=1)).body
    assert later["decisions"] == run_over(snapshot, of, since=since).body["decisions"] - made.count(made[8])


def test_lists_are_bounded_and_say_what_they_leave_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = drawn(0, 120)
    snapshot = of.chain.snapshot(tmp_path)
    whole = run_over(snapshot, of).body
    monkeypatch.setattr(figures, "MAX_ROWS", 2)
    monkeypatch.setattr(figures, "MAX_WEEKS", 2)
    short = run_over(snapshot, of).body
    for name in ("rules", "then_rules", "transitions", "versions", "earlier", "weeks"):
        kept = whole[name][-2:] if name == "weeks" else whole[name][:2]
        assert short[name] == kept
        assert short["left_out"][name] == sum(row["decisions"] for row in whole[name] if row not in kept) > 0


@pytest.mark.parametrize(
    "asked",
    [
        {"metric": ""},
        {"metric": 5},
        {"metric": "inputs."},
        {"metric": "inputs.a b"},
        {"by": "amount"},
        {"by": 5},
        {"by": [5]},
        {"by": ["a:type"]},
        {"by": [f"f{number}" for number in range(21)]},
        {"since": "yesterday"},
    ],
    ids=str,
)
def test_a_question_that_cannot_be_meant_is_refused(tmp_path: Path, asked: Any) -> None:
    past = LakeHistory(MadeUp().snapshot(tmp_path), RULEBOOK_ID)
    with pytest.raises(OperatorError) as caught:
        dry_run(past, load(pricing("2")), load(pricing("1")), **asked)
    assert caught.value.code == "ENGINE_ARGUMENT_INVALID"


@pytest.mark.parametrize("other", ["candidate", "base"])
def test_a_rulebook_of_another_id_is_refused(tmp_path: Path, other: str) -> None:
    rulebooks = {"candidate": load(pricing("2")), "base": load(pricing("1"))}
    rulebooks[other] = load({**pricing("3"), "rulebook_id": "elsewhere"})
    with pytest.raises(OperatorError, match="elsewhere"):
        dry_run(LakeHistory(MadeUp().snapshot(tmp_path), RULEBOOK_ID), rulebooks["candidate"], rulebooks["base"])


def test_facts_that_went_since_the_lake_was_opened_are_told_of(tmp_path: Path) -> None:
    base, chain = pricing("1"), MadeUp()
    paid(chain, base, [10, 60])
    snapshot = chain.snapshot(tmp_path, exported=2)
    for file in snapshot.files("facts"):
        file.unlink()
    with pytest.raises(OperatorError) as caught:
        dry_run(LakeHistory(snapshot, RULEBOOK_ID), load(pricing("2")), load(base))
    assert caught.value.code == "LAKE_MOVED_ON"


def test_facts_that_no_rulebook_read_before_are_read_from_what_was_kept(tmp_path: Path) -> None:
    base, chain = pricing("1"), MadeUp()
    at = MONDAY
    for facts in ({"tier": "gold"}, {"tier": 5}, {}):
        chain.decide(at, facts={"amount": 10, "region": "DE", **facts}, rulebook=base, rule="rule:pay_small")
    candidate = pricing("2")
    candidate["input_schema"]["required"].append("tier")
    candidate["input_schema"]["properties"]["tier"] = {"type": "string"}
    for exported in (0, 3):
        snapshot = chain.snapshot(tmp_path / str(exported), exported=exported)
        body = dry_run(LakeHistory(snapshot, RULEBOOK_ID), load(candidate), load(base)).body
        (missing,) = body["missing_facts"]
        assert (missing["field"], missing["required"], missing["decisions"]) == ("tier", True, 1)
        assert missing["decision_ids"] == ["dec_3"]
        assert body["needs_input"]["decision_ids"] == ["dec_2", "dec_3"]
