"""Every report equals a recount in plain Python, over random ledgers, however much of them the lake holds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pytest
import rfc8785

from gate.decisions.erasure import erase
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from gate.ledger.reads import tail
from gate.policy.reports import confidence_report
from gate.records.receipts import CRM_SYNCS, EXECUTIONS, KINDS, OUTCOMES, Kind
from tests.independent import recount
from tests.support.samples import REPORTS, sample_request, sample_rulebook
from tests.workbench.support import SYNCED, claim_request, claim_rulebook
from workbench.engines.confidence import confidence
from workbench.engines.effectiveness import effectiveness
from workbench.engines.roll_up import roll_up
from workbench.lake import compaction
from workbench.lake.compaction import Compactor
from workbench.lake.entries import Personal
from workbench.lake.export import Exporter
from workbench.lake.fresh import fresh
from workbench.lake.manifest import Manifest, load
from workbench.lake.reader import Snapshot, open_lake

# The keys sign from the year before on; weeks and months do not end together, and the year ends within a week.
SINCE: Final = datetime(2025, 1, 1, tzinfo=UTC)
FIRST_DAY: Final = datetime(2025, 12, 15, tzinfo=UTC)
DAYS: Final = 80

POLICIES: Final = {
    "refunds": ["1", "2", "2026 é/1", "<b>10</b>"],
    "refunds.fast": ["1", "2"],
    "shipping": ["only"],
    "claims": ["1", "2"],
}
SAMPLES: Final = (1, 3, 20)
UNHEARD: Final = "nobody.decides.by-it"
STATUSES: Final = ["succeeded"] * 8 + ["partial", "failed", "failed", "reverted", "pending", "pending", "review"]
VALUES: Final = [0, 1, -7, 12, 2**53 - 1, -(2**53) + 1, 0.1, 0.1, -2.5, 1e21, 1e308, 1e308, -1e308, 5e-324, -5e-324]
NAMES: Final = ["margin", "days to close", "é", "x" * 120]
EXECUTED: Final = ["executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted"]


class Site:
    """The ledgers of some scopes, as they grow by chance, and what the service answered of each in chain order."""

    def __init__(
        self, instance: Instance, names: Sequence[str], chance: random.Random, values: Sequence[float] = VALUES
    ) -> None:
        self.instance = instance
        self.values = values
        self.chance = chance
        self.now = SINCE
        directory = instance.ledger.directory
        self.scopes: dict[str, Scope] = {name: directory.create_scope(name, "unlimited", SINCE) for name in names}
        self.callers: dict[str, Authority] = {}
        for name, scope in self.scopes.items():
            key, _ = directory.create_key(scope, FULL_ACCESS, None, SINCE)
            self.callers[name] = directory.authenticate(key, SINCE)
        self.entries: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        self.decided: dict[str, list[str]] = {name: [] for name in names}
        self.erased: set[str] = set()
        self.gate = instance.gate(lambda: self.now)
        self.lifecycle = instance.lifecycle(lambda: self.now)

    def grow(self, decisions: int, reports: int) -> None:
        """Adds so many decisions and reports to each scope, in random order and at random moments."""
        for name in self.scopes:
            turns = [self._decide] * decisions + [self._report] * reports
            self.chance.shuffle(turns)
            for turn in turns:
                self.now = self._moment()
                turn(name)

    def _moment(self) -> datetime:
        day = FIRST_DAY + timedelta(days=self.chance.randrange(DAYS))
        # The first and the last moment of a day begin and end weeks and months as well.
        first, last = timedelta(0), timedelta(days=1) - timedelta(milliseconds=1)
        return day + self.chance.choice([first, last, timedelta(milliseconds=self.chance.randrange(86_400_000))])

    def _decide(self, name: str) -> None:
        policy_id = self.chance.choice(list(POLICIES))
        version = self.chance.choice(POLICIES[policy_id])
        request = self._claim(version) if policy_id == "claims" else self._sent(policy_id, version)
        record = self.gate.decide(self.callers[name], request, request_id="req_1").record
        self.entries[name].append(record)
        self.decided[name].append(record["decision_id"])

    def _claim(self, version: str) -> dict[str, Any]:
        """A request whose facts an adapter makes."""
        payment: dict[str, Any] = self.chance.choice([{}, {}, {"refunded_minor": 8000}, {"captured_minor": None}])
        claim: dict[str, Any] = self.chance.choice([{}, {}, {"amount_minor": 8000}, {"evidence": ["forged"]}])
        return claim_request(payment, claim, claim_rulebook(version=version))

    def _sent(self, policy_id: str, version: str) -> dict[str, Any]:
        facts: dict[str, Any] = self.chance.choice(
            [
                {"discount_percent": 10, "margin_percent": 22},
                {"discount_percent": 10, "margin_percent": 22},
                {"discount_percent": 40, "margin_percent": 30},
                {"discount_percent": 10, "margin_percent": 3},
                {"discount_percent": 20, "margin_percent": 22},
                {"discount_percent": 20},
                {"discount_percent": "ten", "margin_percent": 22},
            ]
        )
        request = sample_request(**facts)
        request["rulebook"] = rulebook(policy_id, version)
        return request

    def _report(self, name: str) -> None:
        if not self.decided[name]:
            return
        decision_id = self.chance.choice(self.decided[name])
        kind = self.chance.choices(["outcome", "execution", "crm-sync", "erasure"], [14, 3, 2, 1])[0]
        if kind == "erasure":
            if decision_id not in self.erased:
                self.erased.add(decision_id)
                erased = erase(self.instance.ledger, decision_id, "They asked for it.", self.now)
                self.entries[name].append(erased.erasure)
            return
        told: dict[str, tuple[Kind, dict[str, Any]]] = {
            "outcome": (OUTCOMES, self._outcome()),
            "execution": (EXECUTIONS, {"execution_status": self.chance.choice(EXECUTED)}),
            "crm-sync": (CRM_SYNCS, self.chance.choice([SYNCED, REPORTS["crm-sync"]])),
        }
        of, body = told[kind]
        reported = self.lifecycle.report(self.callers[name], of, decision_id, body)
        self.entries[name].append(reported.report)

    def _outcome(self) -> dict[str, Any]:
        body: dict[str, Any] = {"outcome_status": self.chance.choice(STATUSES)}
        executed = self.chance.choice([None, None, True, False])
        if executed is not None:
            body["action_executed"] = executed
        if names := [name for name in NAMES if self.chance.random() < 0.4]:
            body["observed_metrics"] = {name: self.chance.choice(self.values) for name in names}
        return body


def rulebook(policy_id: str, version: str) -> dict[str, Any]:
    """The sample rulebook under another name, with a rule more that approves in another way."""
    body = sample_rulebook()
    body |= {"rulebook_id": policy_id, "version": version}
    larger = {
        "rule_id": "approve_a_part",
        "priority": 40,
        "condition": {"field": "discount_percent", "operator": "lt", "value": 30},
        "outcome": {"decision": "yes", "verdict": "PART", "action": "approve_part", "reason_code": "PART_ALLOWED"},
    }
    body["rules"] = [*body["rules"], larger]
    return body


class Reading(NamedTuple):
    """A way to read a scope: the snapshot, and the entries that are in it."""

    scope: str
    snapshot: Snapshot
    entries: Sequence[dict[str, Any]]


class Lake:
    """A lake beside the ledgers of a site."""

    def __init__(self, site: Site, directory: Path, batch: int) -> None:
        self.site = site
        self.directory = directory
        self.batch = batch

    def export(self, *, commits: int | None = None) -> None:
        """Brings the lake up to every chain, or by so many commits nearer."""
        for name in self.site.scopes:
            followed = self.site.instance.ledger.tail.scope(self.site.scopes[name].scope_id)
            assert followed is not None
            exporter = Exporter(self.site.instance.ledger, self.directory, batch=self.batch)
            for _ in itertools.islice(exporter.export(followed), commits):
                pass

    def compact(self, *, steps: int | None = None) -> None:
        """Compacts it, or does so many steps of it."""
        for manifest in self.manifests():
            for _ in itertools.islice(Compactor(self.directory).compact(manifest), steps):
                pass

    def manifests(self) -> list[Manifest]:
        """What it holds of each scope."""
        found = [load(self.directory, scope.scope_id) for scope in self.site.scopes.values()]
        return [manifest for manifest in found if manifest is not None]

    def readings(self) -> Iterator[Reading]:
        """Every scope as it is now, and as the lake alone has it where that is less."""
        for name, scope in self.site.scopes.items():
            now = fresh(self.site.instance.ledger, self.directory, scope.scope_id, Personal())
            yield Reading(name, now, self.site.entries[name])
        for name, snapshot in open_lake(self.directory).snapshots.items() if self.manifests() else ():
            if snapshot.position < len(self.site.entries[name]):
                yield Reading(name, snapshot, self.site.entries[name][: snapshot.position])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """An instance whose keys are old enough for every date."""
    home = tmp_path_factory.mktemp("recounted") / "home"
    create_instance(home, base_url="http://gate.example", now=SINCE)
    opened = open_instance(load_settings(home))
    yield opened
    opened.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a short chain many pages, files and steps."""
    monkeypatch.setattr(tail, "_PAGE_BYTES", 10_000)
    monkeypatch.setattr(compaction, "STEP", 40)
    monkeypatch.setattr(compaction, "FULL", 15)


def nothing(_: Site, __: Lake) -> None:
    """All is read from the ledger."""


def export_a_part(_: Site, lake: Lake) -> None:
    """The ledger is ahead of the lake."""
    lake.export(commits=3)


def export(_: Site, lake: Lake) -> None:
    """The lake holds all, or all again."""
    lake.export()


def compact_a_part(_: Site, lake: Lake) -> None:
    """Some cases are resolved, the others are not."""
    lake.compact(steps=2)


def compact(_: Site, lake: Lake) -> None:
    """All cases are resolved, in few files."""
    lake.compact()


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


Asked = tuple[str, dict[str, Any]]
"""A policy, and the parameters of a report about it."""


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


def limits(number: int) -> list[int | None]:
    """The limits around which a number of decisions could be counted wrong."""
    return [*sorted({limit for limit in (1, 2, number - 1, number, number + 1) if limit > 0}), None]


def some(parameters: Iterator[Asked], most: int, chance: random.Random) -> list[Asked]:
    """So many of them at most, by chance."""
    found = list(parameters)
    return chance.sample(found, min(most, len(found)))


def assert_effective(reading: Reading, policy_id: str, chosen: dict[str, Any]) -> None:
    body = effectiveness(reading.snapshot, policy_id, **chosen).to_dict()
    expected = recount.effectiveness(reading.entries, policy_id, **chosen)
    assert body == expected
    assert rfc8785.dumps(body) == rfc8785.dumps(expected)


def assert_confident(site: Site, reading: Reading, policy_id: str, chosen: dict[str, Any]) -> None:
    body = confidence(reading.snapshot, policy_id, **chosen).to_dict()
    expected = recount.confidence(reading.entries, policy_id, **chosen)
    assert body == expected
    assert rfc8785.dumps(body) == rfc8785.dumps(expected)
    if len(reading.entries) == len(site.entries[reading.scope]):
        assert orjson.dumps(body) == orjson.dumps(served(site, reading.scope, policy_id, chosen))


def served(site: Site, scope: str, policy_id: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """The service's own report."""
    asked = {"version": chosen["policy_version"], **{name: chosen[name] for name in ("verdict", "action", "limit")}}
    coverage = site.instance.ledger.outcomes.cover(site.scopes[scope].scope_id, policy_id, **asked)
    return confidence_report(coverage, policy_id=policy_id, **chosen)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("seed", "scopes", "batch"), [(1, ["acme", "other"], 17), (2, ["alone"], 9)])
def test_reports_equal_the_recount_however_much_the_lake_holds(
    shared: Instance, tmp_path: Path, seed: int, scopes: list[str], batch: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests to be the same each time
    site = Site(shared, scopes, chance)
    lake = Lake(site, tmp_path, batch)
    site.grow(26, 48)
    for change in STAGES:
        change(site, lake)
        for reading in lake.readings():
            assert reading.snapshot.position == len(reading.entries)
            assert reading.snapshot.merkle_root == recount.root_of(reading.entries)
            for policy_id, chosen in some(effectiveness_parameters(reading.entries), 2, chance):
                assert_effective(reading, policy_id, chosen)
            for policy_id, chosen in some(confidence_parameters(reading.entries), 2, chance):
                assert_confident(site, reading, policy_id, chosen)
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
    for policy_id, chosen in effectiveness_parameters(reading.entries, ["refunds.fast"]):
        assert_effective(reading, policy_id, chosen)
    combined = itertools.groupby(
        confidence_parameters(reading.entries, ["refunds.fast"]), lambda asked: list(asked[1].values())[:3]
    )
    for _, parameters in combined:
        # One of the limits and samples of each version, verdict and action.
        for policy_id, chosen in some(parameters, 1, chance):
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
    site = Site(shared, [f"smallest {kind.name}"], random.Random(5))  # noqa: S311 - for tests to be the same each time
    lake = Lake(site, tmp_path, batch=9)
    site.grow(1, 0)
    ((name, (record,)),) = site.entries.items()
    reported = site.lifecycle.report(site.callers[name], kind, record["decision_id"], REPORTS[kind.name])
    site.entries[name].append(reported.report)
    for change in (nothing, export, compact):
        change(site, lake)
        for reading in lake.readings():
            assert_effective(reading, record["policy_id"], {})
