"""Ledgers that grow by chance, the lakes beside them, and the ways to bring a lake nearer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from gate.decisions.erasure import erase
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Authority, Scope
from gate.records.reports.receipts import CRM_SYNCS, EXECUTIONS, OUTCOMES, Kind
from tests.support.samples import REPORTS, sample_request, sample_rulebook
from tests.workbench.support import SYNCED, claim_request, claim_rulebook
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

STATUSES: Final = ["succeeded"] * 8 + ["partial", "failed", "failed", "reverted", "pending", "pending", "review"]

VALUES: Final = [0, 1, -7, 12, 2**53 - 1, -(2**53) + 1, 0.1, 0.1, -2.5, 1e21, 1e308, 1e308, -1e308, 5e-324, -5e-324]

NAMES: Final = ["margin", "days to close", "é", "x" * 120]

ANSWERS: Final = ["granted", "granted", "refused", "expired"]

EXECUTED: Final = ["executed", "queued", "skipped", "failed", "blocked", "reviewed", "reverted"]


class Site:
    """The ledgers of some scopes, as they grow by chance, and what the service answered of each in chain order."""

    def __init__(
        self, instance: Instance, names: Sequence[str], chance: random.Random, values: Sequence[float] = VALUES
    ) -> None:
        self.instance = instance
        self.values = values
        self.chance = chance
        self.answering = random.Random(len(names))  # noqa: S311 - for tests to be the same each time
        self.now = SINCE
        directory = instance.ledger.directory
        self.scopes: dict[str, Scope] = {name: directory.create_scope(name, "unlimited", SINCE) for name in names}
        self.callers: dict[str, Authority] = {}
        self.owners: dict[str, Authority] = {}
        for name, scope in self.scopes.items():
            for access, keys in ((FULL_ACCESS, self.callers), (frozenset({"resolve"}), self.owners)):
                key, _ = directory.create_key(scope, access, None, SINCE)
                keys[name] = directory.authenticate(key, SINCE)
        self.entries: dict[str, list[Any]] = {name: [] for name in names}
        self.decided: dict[str, list[str]] = {name: [] for name in names}
        self.requests: dict[str, dict[str, Any]] = {}
        self.erased: set[str] = set()
        self.resolved: set[str] = set()
        self.gate = instance.gate(lambda: self.now)
        self.lifecycle = instance.lifecycle(lambda: self.now)
        self.resolutions = instance.resolutions(lambda: self.now)

    def grow(self, decisions: int, reports: int) -> None:
        """Adds so many decisions and reports to each scope, in random order and at random moments."""
        for name in self.scopes:
            turns = [self._decide] * decisions + [self._report] * reports
            self.chance.shuffle(turns)
            for turn in turns:
                self.now = self._moment()
                turn(name)
                self._resolve(name)

    def _resolve(self, name: str) -> None:
        """Adds a resolution now and then, while anything is held."""
        held = [of["decision_id"] for of in self.entries[name] if of.get("verdict") == "review"]
        held = [decision_id for decision_id in held if decision_id not in self.resolved]
        if held and self.answering.random() < 0.1:
            self.resolved.add(decision_id := self.answering.choice(held))
            body = {"resolution": self.answering.choice(ANSWERS), "resolved_by": "risk desk"}
            self.entries[name].append(self.resolutions.resolve(self.owners[name], decision_id, body).resolution)

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
        self.requests[record["decision_id"]] = request

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
        self._had: dict[str, bool] = {}

    def unknown(self, reading: Reading) -> set[str]:
        """The decisions whose facts a reading cannot have: those erased before they were exported, it never had."""
        if len(reading.entries) == len(self.site.entries[reading.scope]):
            return self.site.erased
        told = {entry["decision_id"] for entry in reading.entries if "erasure_id" in entry}
        return told | {of for of, had in self._had.items() if not had}

    def export(self, *, commits: int | None = None) -> None:
        """Brings the lake up to every chain, or by so many commits nearer."""
        for name in self.site.scopes:
            followed = self.site.instance.ledger.tail.scope(self.site.scopes[name].scope_id)
            assert followed is not None
            exporter = Exporter(self.site.instance.ledger, self.directory, batch=self.batch)
            for _ in itertools.islice(exporter.export(followed), commits):
                pass
        for manifest in self.manifests():
            for entry in self.site.entries[manifest.scope][: manifest.position]:
                self._had.setdefault(entry["decision_id"], entry["decision_id"] not in self.site.erased)

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


Asked = tuple[str, dict[str, Any]]
"""A policy, and the parameters of a report about it."""


def limits(number: int) -> list[int | None]:
    """The limits around which a number of decisions could be counted wrong."""
    return [*sorted({limit for limit in (1, 2, number - 1, number, number + 1) if limit > 0}), None]


def some(parameters: Iterator[Asked], most: int, chance: random.Random) -> list[Asked]:
    """So many of them at most, by chance."""
    found = list(parameters)
    return chance.sample(found, min(most, len(found)))
