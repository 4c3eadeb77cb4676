"""What the engines are asked with: wrong arguments are told of in a sentence; and what a report says of what it was
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from gate.instance.instance import Instance
from gate.ledger.access.authority import Authority, Scope
from gate.policy.questions import MAX_LIMIT, MAX_SAMPLE, CounterfactualsQuestion
from tests.support.samples import sample_request, sample_rulebook
from tests.workbench.engines.edges import POLICY, chained, decision, outcome, refused, snapshot_of
from tests.workbench.support import Chain
from workbench.engines.benchmarks import benchmarks
from workbench.engines.confidence import confidence
from workbench.engines.counterfactuals import CounterfactualReport, counterfactuals
from workbench.engines.effectiveness import effectiveness
from workbench.engines.roll_up import RollUp, roll_up
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.reader import Lake, Snapshot

ENGINES: Final[Mapping[str, Callable[..., Any]]] = {
    "benchmarks": benchmarks,
    "effectiveness": effectiveness,
    "confidence": confidence,
    "counterfactuals": counterfactuals,
}
SAMPLE: Final = "pricing_exception"

WRONG: Final[list[tuple[str, Any, str, str]]] = [
    *((name, wrong, "limit", "1,000,000") for name in ENGINES for wrong in (0, -1, MAX_LIMIT + 1, 1.0, "5", True)),
    *(
        (name, wrong, "min_sample", "10,000")
        for name in ("effectiveness", "confidence")
        for wrong in (0, MAX_SAMPLE + 1, None, 2.5, False)
    ),
    *(
        (name, wrong, "verdict", "yes, no or review")
        for name in ("confidence", "counterfactuals")
        for wrong in ("maybe", "YES", 1, ["yes"])
    ),
    *((name, wrong, "policy_version", "string") for name in ENGINES for wrong in (1, ["1"])),
    *(("benchmarks", wrong, "min_cohort_scopes", "from 5 to 1,000") for wrong in (4, 1001, None, 5.0, True)),
    *(("benchmarks", wrong, "min_cohort_decisions", "from 50 to 1,000,000") for wrong in (49, 10**6 + 1, "50")),
    ("confidence", 5, "action", "string"),
    *(("counterfactuals", wrong, "since", "datetime") for wrong in ("2026-01-01", 5, timedelta(1))),
    ("counterfactuals", datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "until", "9999"),
    *(("counterfactuals", wrong, "patch", "mapping") for wrong in ("a", [1], 5)),
    *(("counterfactuals", {"a": wrong}, "patch", "JSON") for wrong in (date(2026, 1, 1), float("nan"), 2**60, {1})),
]


@pytest.mark.parametrize(("engine", "wrong", "name", "told"), WRONG)
def test_a_wrong_argument_is_told_of_by_its_name(engine: str, wrong: Any, name: str, told: str, tmp_path: Path) -> None:
    snapshot = snapshot_of([], tmp_path)
    sentence = refused(lambda: ENGINES[engine](snapshot, POLICY, **{name: wrong}))
    assert sentence.startswith(name)
    assert told in sentence


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_no_scope_is_refused_and_a_lake_says_which_it_has(engine: str, tmp_path: Path) -> None:
    snapshot = snapshot_of([], tmp_path)
    sentence = refused(lambda: ENGINES[engine](Lake(tmp_path, [snapshot.manifest]), POLICY))
    assert "lake.scope(...). This lake has acme" in sentence
    assert "'acme'" in refused(lambda: ENGINES[engine]("acme", POLICY))
    assert "policy_id" in refused(lambda: ENGINES[engine](snapshot, None))
    assert "open_lake" in refused(lambda: roll_up("var/lake"))  # type: ignore[arg-type]


def test_the_ends_of_what_is_taken_are_taken(tmp_path: Path) -> None:
    snapshot = snapshot_of(chained([decision(1), outcome(1)]), tmp_path)
    for limit, min_sample in ((1, 1), (MAX_LIMIT, MAX_SAMPLE)):
        for engine in (effectiveness, confidence):
            body = engine(snapshot, POLICY, limit=limit, min_sample=min_sample).to_dict()
            assert (body["limit"], body["min_sample"]) == (limit, min_sample)


@pytest.mark.parametrize(
    "same",
    [date(2026, 6, 8), datetime(2026, 6, 8), datetime(2026, 6, 8, 2, tzinfo=timezone(timedelta(hours=2)))],  # noqa: DTZ001
)
def test_a_moment_without_a_zone_is_in_utc(same: date) -> None:
    assert CounterfactualsQuestion(SAMPLE, since=same).since == datetime(2026, 6, 8, tzinfo=UTC)


@pytest.fixture
def seen(instance: Instance, authority: Authority, scope: Scope, lake: Path) -> Snapshot:
    """Decisions of the sample rulebook, and of an older version that reads `customer.tier`."""
    grown = Chain(instance, authority)
    older = sample_rulebook() | {"version": "older"}
    older["rules"] = [*older["rules"]]
    condition = {"field": "customer.tier", "operator": "eq", "value": "gold"}
    older["rules"][0] = {**older["rules"][0], "condition": condition}
    for number in range(4):
        body = older if number == 3 else sample_rulebook()
        grown.decide({**sample_request(discount_percent=10, margin_percent=22), "rulebook": body})
    return fresh(instance.ledger, lake, scope.scope_id, Personal())


def asked(snapshot: Snapshot, **arguments: Any) -> CounterfactualReport:
    return counterfactuals(snapshot, SAMPLE, **arguments)


@pytest.mark.parametrize(
    ("patch", "chosen", "unread"),
    [
        ({}, {}, []),
        ({"margin_percent": 10}, {}, []),
        ({"nobody": 1, "asks": {"b": 1, "a": {}}}, {}, ["asks.a", "asks.b", "nobody"]),
        ({"customer": {"tier": "gold", "name": "x"}}, {}, ["customer.name"]),
        ({"customer": None}, {}, []),
        ({"customer.tier": "gold"}, {}, ["customer.tier"]),
        ({"margin_percent": {"net": 1}}, {}, []),
        ({"customer": {"tier": "gold"}}, {"policy_version": "2026-06-11"}, ["customer.tier"]),
        ({"customer": {"tier": "gold"}}, {"rulebook": sample_rulebook()}, ["customer.tier"]),
    ],
)
def test_what_of_a_patch_no_rulebook_reads_is_said(
    seen: Snapshot, patch: dict[str, Any], chosen: dict[str, Any], unread: list[str]
) -> None:
    report = asked(seen, patch=patch, **chosen)
    assert report.body["unread"] == unread
    shown = (repr(report), report._repr_html_(), " ".join(report.plot().to_dict()["title"]["subtitle"]))
    for text in shown:
        assert ("changes nothing" in text) is bool(unread)
        assert all(name in text for name in unread)


def test_decisions_that_would_fail_the_schema_are_counted(seen: Snapshot) -> None:
    report = asked(seen, patch={"margin_percent": None})
    assert report.body["needs_input"] == report.body["redecided"] == 4
    assert "4 would fail the schema" in repr(report)
    assert "<th>Would fail the schema</th><td>4</td>" in report._repr_html_()
    assert asked(seen).body["needs_input"] == 0


def test_a_changed_verdict_is_told_from_a_changed_rule(seen: Snapshot) -> None:
    renamed = sample_rulebook()
    renamed["rules"] = [{**rule, "rule_id": f"{rule['rule_id']}_2"} for rule in renamed["rules"]]
    body = asked(seen, rulebook=renamed, policy_version="2026-06-11").body
    assert (body["changed"], body["verdict_changed"]) == (3, 0)
    changed = asked(seen, patch={"margin_percent": 1})
    before = changed.frame.filter(pl.col("verdict") != pl.col("then_verdict"))["decisions"].sum()
    assert changed.body["verdict_changed"] == before > 0


def test_a_rulebook_of_another_policy_is_refused(seen: Snapshot) -> None:
    sentence = refused(lambda: asked(seen, rulebook=sample_rulebook() | {"rulebook_id": "refunds"}))
    assert "'refunds'" in sentence
    assert "'pricing_exception'" in sentence


def test_a_report_shows_itself_in_a_few_lines(tmp_path: Path) -> None:
    entries = [entry for number in range(30) for entry in (decision(number), outcome(number))]
    snapshot = snapshot_of(chained([*entries, decision(99)]), tmp_path)
    assert repr(effectiveness(snapshot, POLICY)).splitlines()[1] == (
        "  100.0% (88.6-100.0%) of 30 terminal outcomes, 31 decisions"
    )
    for report in (
        effectiveness(snapshot, POLICY),
        confidence(snapshot, POLICY, verdict="yes"),
        effectiveness(snapshot, "a\nb" * 99),
    ):
        assert len(repr(report).splitlines()) == 3
        assert all(len(line) < 160 for line in repr(report).splitlines())
    assert "verdict yes" in repr(confidence(snapshot, POLICY, verdict="yes"))


def test_the_versions_of_a_page_stand_as_in_the_json_with_those_below_others_marked(tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = []
    for number in range(90):
        entries.append(decision(number, version="abc"[number % 3]))
        entries.append(outcome(number, "failed" if number % 3 == 2 else "succeeded"))
    report = effectiveness(snapshot_of(chained(entries), tmp_path), POLICY)
    html = report._repr_html_()
    versions = [of["policy_version"] for of in report.to_dict()["versions"]]
    assert versions == ["c", "a", "b"]
    assert [html.index(f"<td>{version}</td>") for version in versions] == sorted(
        html.index(f"<td>{version}</td>") for version in versions
    )
    rates = "<td>0.0%</td><td>0.0%</td><td>100.0%</td>"
    assert f'<td>c</td><td>below others</td>{rates}<td class="number">30</td><td>0.0%</td>' in html
    assert "<small>Bounds: " in html
    assert "below the other versions: c" in repr(report)


def test_the_roll_up_begins_with_what_may_be_worst_and_names_it_in_full(tmp_path: Path) -> None:
    long = "p" * 90
    entries = [decision(0, policy_id="unheard"), decision(1, policy_id="good"), outcome(1)]
    entries += [decision(2, policy_id=long), outcome(2, "failed")]
    rolled = roll_up(snapshot_of(chained(entries), tmp_path))
    named = [line.split()[1] for line in repr(rolled).splitlines()]
    assert named == ["policy", long, "good", "unheard"]
    (rows,) = rolled.plot().to_dict()["datasets"].values()
    assert [row["policy_id"] for row in rows] == [long, "good"]
    many = RollUp(pl.concat([rolled.frame] * 10))
    assert len(repr(many).splitlines()) == 22
    assert "and 10 more" in repr(many)
