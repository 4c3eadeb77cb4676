"""Every report equals a recount in plain Python, over random ledgers, however much of them the lake holds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from gate.encoding.canonical import canonical
from gate.ids import parse_timestamp
from gate.instance.instance import Instance
from gate.ledger.reads import tail
from gate.policy.questions import ConfidenceQuestion, EffectivenessQuestion
from gate.policy.reports import confidence_report
from gate.records.reports.receipts import KINDS, Kind
from tests.independent import recount
from tests.support.samples import REPORTS
from tests.support.torture import size
from tests.workbench.growing import (
    POLICIES,
    Asked,
    Lake,
    Reading,
    Site,
    compact,
    compact_a_part,
    export,
    export_a_part,
    limits,
    nothing,
    shared,
    some,
)
from workbench.engines import confidence as confidence_engine
from workbench.engines import effectiveness as effectiveness_engine
from workbench.engines.effectiveness import effectiveness
from workbench.engines.roll_up import roll_up
from workbench.lake import compaction
from workbench.lake.reader import open_lake

# A fixture is found by its name in the module that asks for it.
__all__ = ["shared"]

pytestmark = pytest.mark.heavy

SAMPLES: Final = (1, 3, 20)
UNHEARD: Final = "nobody.decides.by-it"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a short chain many pages, files and steps."""
    monkeypatch.setattr(tail, "_PAGE_BYTES", 10_000)
    monkeypatch.setattr(compaction, "STEP", 40)
    monkeypatch.setattr(compaction, "FULL", 15)


def report_late(site: Site, _: Lake) -> None:
    """Outcomes, receipts and erasures of decisions whose cases are resolved."""
    site.grow(0, 30)


def go_on(site: Site, _: Lake) -> None:
    """Decisions and reports after what is resolved, and after what is only exported."""
    site.grow(8, 25)


STAGES: Final[Sequence[Callable[[Site, Lake], None]]] = (
    nothing,
    export_a_part,
    export,
    compact_a_part,
    compact,
    report_late,
    export,
    go_on,
    export,
    compact,
)


def effectiveness_parameters(
    entries: Sequence[dict[str, Any]], policies: Sequence[str] = (*POLICIES, UNHEARD)
) -> Iterator[Asked]:
    """Every policy, version, limit and sample."""
    decisions = recount.told(entries)
    for policy_id in policies:
        of = [recount.version_of(decision) for decision in decisions if decision.record["policy_id"] == policy_id]
        for version in (None, *POLICIES.get(policy_id, ()), "unheard of"):
            number = len(of) if version is None else of.count(version)
            for limit, min_sample in itertools.product(limits(number), SAMPLES):
                yield policy_id, {"policy_version": version, "limit": limit, "min_sample": min_sample}


def confidence_parameters(
    entries: Sequence[dict[str, Any]], policies: Sequence[str] = (*POLICIES, UNHEARD)
) -> Iterator[Asked]:
    """Every policy, version, verdict, action, limit and sample."""
    decisions = [decision for decision in recount.told(entries) if decision.outcomes]
    actions = sorted({decision.record["action"] for decision in decisions})
    for policy_id in policies:
        versions = (None, *POLICIES.get(policy_id, ()), "unheard of")
        for version, verdict, action in itertools.product(versions, (None, *recount.VERDICTS), (None, *actions)):
            number = sum(
                decision.record["policy_id"] == policy_id
                and version in (None, recount.version_of(decision))
                and verdict in (None, decision.record["verdict"])
                and action in (None, decision.record["action"])
                for decision in decisions
            )
            chosen = {"policy_version": version, "verdict": verdict, "action": action}
            for limit, min_sample in itertools.product(limits(number), SAMPLES):
                yield policy_id, {**chosen, "limit": limit, "min_sample": min_sample}


def dated(chosen: dict[str, Any]) -> dict[str, Any]:
    """Parameters as a question has them: moments, not timestamps."""
    return {name: parse_timestamp(of) if name in ("since", "until") and of else of for name, of in chosen.items()}


def periods(entries: Sequence[dict[str, Any]], chance: random.Random) -> dict[str, Any]:
    """A verdict and a period, or some of these, that begin or end with a decision."""
    made = [decision.record["created_at"] for decision in recount.told(entries)] or [None]
    since, until = sorted([chance.choice(made), chance.choice(made)], key=str)
    asked = {"verdict": chance.choice(recount.VERDICTS), "since": since, "until": until}
    return {name: of for name, of in asked.items() if chance.random() < 0.6}


def assert_effective(lake: Lake, reading: Reading, policy_id: str, chosen: dict[str, Any]) -> None:
    body = effectiveness_engine.answer(reading.snapshot, EffectivenessQuestion(policy_id, **dated(chosen))).to_dict()
    expected = recount.effectiveness(
        reading.entries, policy_id, **chosen, requests=lake.site.requests, erased=lake.unknown(reading)
    )
    assert body == expected
    assert canonical(body) == canonical(expected)


def assert_confident(site: Site, reading: Reading, policy_id: str, chosen: dict[str, Any]) -> None:
    body = confidence_engine.answer(reading.snapshot, ConfidenceQuestion(policy_id, **dated(chosen))).to_dict()
    expected = recount.confidence(reading.entries, policy_id, **chosen)
    assert body == expected
    assert canonical(body) == canonical(expected)
    is_whole = not {"since", "until"} & chosen.keys()
    if is_whole and len(reading.entries) == len(site.entries[reading.scope]):
        assert orjson.dumps(body) == orjson.dumps(served(site, reading.scope, policy_id, chosen))


def served(site: Site, scope: str, policy_id: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """The service's own report."""
    question = ConfidenceQuestion(policy_id, **dated(chosen))
    return confidence_report(site.instance.ledger.outcomes.cover(site.scopes[scope].scope_id, question), question)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("seed", "scopes", "batch"), [(1, ["acme", "other"], 17), *size([], [(2, ["alone"], 9)])])
def test_reports_equal_the_recount_however_much_the_lake_holds(
    shared: Instance, tmp_path: Path, seed: int, scopes: list[str], batch: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    site = Site(shared, scopes, chance)
    lake = Lake(site, tmp_path, batch)
    site.grow(*size((18, 36), (26, 48)))
    for stage, change in enumerate(STAGES):
        change(site, lake)
        for number, reading in enumerate(lake.readings(), stage):
            assert reading.snapshot.position == len(reading.entries)
            assert reading.snapshot.merkle_root == recount.root_of(reading.entries)
            # In the short form one scope is asked for the one report and one for the other, by turns.
            if size(number % 2 == 0, True):
                for policy_id, chosen in some(effectiveness_parameters(reading.entries), size(1, 2), chance):
                    assert_effective(lake, reading, policy_id, chosen)
                    assert_effective(lake, reading, policy_id, {**chosen, **periods(reading.entries, chance)})
            if size(number % 2 == 1, True):
                for policy_id, chosen in some(confidence_parameters(reading.entries), size(1, 2), chance):
                    assert_confident(site, reading, policy_id, chosen)
                    assert_confident(site, reading, policy_id, {**chosen, **periods(reading.entries, chance)})
            counted = roll_up(reading.snapshot).to_dict()["policies"]
            assert counted == recount.roll_up({reading.scope: reading.entries})
    assert roll_up(open_lake(tmp_path)).to_dict()["policies"] == recount.roll_up(site.entries)


def test_every_combination_of_parameters_gives_the_recount(shared: Instance, tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - for tests to be the same each time
    site = Site(shared, ["combined"], chance)
    lake = Lake(site, tmp_path, batch=1000)
    site.grow(50, 110)
    lake.export()
    lake.compact()
    site.grow(10, 40)
    reading = next(lake.readings())
    assert roll_up(reading.snapshot).to_dict()["policies"] == recount.roll_up({reading.scope: reading.entries})
    limited = itertools.groupby(
        effectiveness_parameters(reading.entries, ["refunds.fast"]), lambda asked: list(asked[1].values())[:2]
    )
    for _, parameters in limited:
        # One of the samples of each version and limit, in the long form all.
        for policy_id, chosen in some(parameters, size(1, len(SAMPLES)), chance):
            assert_effective(lake, reading, policy_id, chosen)
    combined = itertools.groupby(
        confidence_parameters(reading.entries, ["refunds.fast"]), lambda asked: list(asked[1].values())[:3]
    )
    for _, parameters in combined:
        # One of the limits and samples of each version, verdict and action; in the short form of half of these.
        for policy_id, chosen in some(parameters, size(chance.randrange(2), 1), chance):
            assert_confident(site, reading, policy_id, chosen)


@pytest.mark.usefixtures("small")
def test_the_same_entries_give_the_same_bytes_wherever_they_are_read(shared: Instance, tmp_path: Path) -> None:
    chance = random.Random(11)  # noqa: S311 - for tests to be the same each time
    site = Site(shared, ["bytes"], chance, values=[0.0, -0.0])
    lake = Lake(site, tmp_path, batch=9)
    site.grow(20, 40)
    found = set()
    for change in (nothing, export_a_part, export, compact):
        change(site, lake)
        reading = next(lake.readings())
        found.add(orjson.dumps([effectiveness(reading.snapshot, policy_id).to_dict() for policy_id in POLICIES]))
    assert len(found) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_report_with_no_more_than_its_status_is_exported_and_keeps_nobody_from_counting(
    shared: Instance, tmp_path: Path, kind: Kind
) -> None:
    site = Site(shared, [f"smallest-{kind.name}"], random.Random(5))  # noqa: S311 - for tests to be the same each time
    lake = Lake(site, tmp_path, batch=9)
    site.grow(1, 0)
    ((name, (record,)),) = site.entries.items()
    reported = site.lifecycle.report(site.callers[name], kind, record["decision_id"], REPORTS[kind.name])
    site.entries[name].append(reported.report)
    for change in (nothing, export, compact):
        change(site, lake)
        for reading in lake.readings():
            assert_effective(lake, reading, record["policy_id"], {})
