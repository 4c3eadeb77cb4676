"""An instance with a million decisions for the dashboard, and the dashboard's process over it.

`bench.lakes` draws the lake of its one scope. The ledger's chain continues after the drawn rows: its head is set there,
and the gate itself makes the newest decisions, with their records, outcomes, and proofs. So lists begin with decisions
whose pages can be opened, and the health page recomputes as many links as everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
from sqlalchemy import update

from api.cli.options import instance_at
from bench.dashboard.sessions import sign_in
from bench.lakes import Contents, Policy, entries_of, write_cases
from bench.samples import decide_request
from bench.servers import Server, free_port, running
from bench.subjects import SCOPE, sqlite_url
from gate.encoding.strict_json import parse
from gate.instance.instance import Instance, create_instance
from gate.ledger.access.authority import FULL_ACCESS
from gate.ledger.tables import chain_heads
from gate.records.reports.receipts import OUTCOMES
from workbench.lake.entries import Personal
from workbench.lake.upkeep import bring_up

POLICY: Final = "pricing_exception"
"""The policy with most of the decisions."""

SHARES: Final[Mapping[str, int]] = {POLICY: 666_667, "refund": 190_477, "cancellation": 95_239}
"""Outcomes by policy: 1,000,000 decisions with those that have none."""

ALONE: Final[Mapping[str, int]] = {POLICY: sum(SHARES.values())}
"""The same of one policy."""

_FIRST_POSITION: Final = 1_000
_BEGUN: Final = datetime(2025, 1, 1, tzinfo=UTC)
# The lake's decisions are of the year before.
_NEWEST: Final = datetime(2026, 1, 1, tzinfo=UTC)
# With their outcomes more than the thousand links that health recomputes.
_REAL_DECISIONS: Final = 600
_USER: Final = "analyst"
_PASSWORD: Final = "as long as passwords ought to be"  # noqa: S105  of an instance that is deleted
_GATE: Final = Path(sys.executable).with_name("gate")


@dataclass(frozen=True, slots=True)
class Built:
    """A built instance.

    Attributes:
        home: Its home.
        contents: The contents of its lake.
        decision_id: A decision in its ledger.
    """

    home: Path
    contents: Contents
    decision_id: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The dashboard's process.

    Attributes:
        server: The process.
        base: Its address.
        cookies: Those of a signed-in session.
    """

    server: Server
    base: str
    cookies: dict[str, str]


def build(home: Path, part: int, shares: Mapping[str, int] = SHARES) -> Built:
    """Makes an instance.

    Args:
        home: Its home.
        part: One decision in so many is made.
        shares: Outcomes by policy.
    """
    policies = [Policy(policy_id, outcomes // part) for policy_id, outcomes in shares.items()]
    create_instance(home, database_url=sqlite_url(home), now=_BEGUN)
    with instance_at(home, sqlite_url(home)) as instance:
        directory, users = instance.ledger.directory, instance.ledger.users
        scope = directory.create_scope(SCOPE, "unlimited", _BEGUN)
        users.add(_USER, _PASSWORD, [scope], "author", None, _BEGUN)
        key, _ = directory.create_key(scope, FULL_ACCESS, None, _BEGUN)
        _go_on_after(instance, scope.scope_id, _FIRST_POSITION + entries_of(policies) - 1)
        # Known to the ledger alone: the lake's manifest says that everything until there is exported.
        _decide(instance, key, 1)
        followed = instance.ledger.tail.scope(scope.scope_id)
        if followed is None:
            raise ValueError(scope.scope_id)
        lake = instance.settings.lake_directory
        watched = [policy.policy_id for policy in policies]
        contents = write_cases(lake, followed, policies, seed=1, watched=watched, first=_FIRST_POSITION, searched=True)
        decision_id = _decide(instance, key, _REAL_DECISIONS)
        for _ in bring_up(instance.ledger, lake, scope.scope_id, Personal()):
            pass
    return Built(home, contents, decision_id)


@contextmanager
def serving(instance: Built, directory: Path) -> Iterator[Dashboard]:
    """Runs a new dashboard over an instance while the block runs. Its log goes to the directory."""
    port = free_port()
    command = [str(_GATE), "workbench", "--home", str(instance.home), "--database-url", sqlite_url(instance.home)]
    log = directory / f"workbench-{port}.log"
    with running([*command, "--port", str(port)], port, log, path="/health") as server:
        base = f"http://127.0.0.1:{port}"
        yield Dashboard(server, base, sign_in(base, _USER, _PASSWORD))


def _go_on_after(instance: Instance, scope_id: str, position: int) -> None:
    """Lets a chain that is still empty go on after a position, as if so many entries were in it."""
    made_up: dict[str, Any] = {"chain_size": position, "merkle_root": "0" * 64, "link_hash": "0" * 64}
    with instance.ledger.store.write() as connection:
        connection.execute(update(chain_heads).where(chain_heads.c.scope_id == scope_id).values(**made_up))


def _decide(instance: Instance, key: str, count: int) -> str:
    """Makes so many decisions with their outcomes, a minute apart; the id of the last.

    The first decision of a chain has no outcome, so that nothing refers to it.
    """
    authority = instance.ledger.directory.authenticate(key, _NEWEST)
    moments = iter(_NEWEST + timedelta(minutes=number) for number in range(count))
    moment = [_NEWEST]
    decider, lifecycle = instance.gate(lambda: moment[0]), instance.lifecycle(lambda: moment[0])
    body, decision_id = orjson.loads(decide_request()), ""
    for number, moment[0] in enumerate(moments):
        body["context"]["inputs"] = {"discount_percent": number % 30, "margin_percent": 12 + number % 17}
        made = decider.decide(authority, parse(orjson.dumps(body)), request_id=f"req_{number}")
        decision_id = made.record["decision_id"]
        if count > 1 and number % 4:
            status = "failed" if number % 5 == 0 else "succeeded"
            lifecycle.report(authority, OUTCOMES, decision_id, {"outcome_status": status})
    return decision_id
