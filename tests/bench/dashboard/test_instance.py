"""The instance that the dashboard is measured on holds together: its lake, its ledger and its users."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.cli.options import instance_at
from bench.dashboard.instance import POLICY, build
from bench.subjects import SCOPE, sqlite_url
from gate.clock import utc_now
from workbench.dashboard.store.access import access
from workbench.dashboard.store.store import Store
from workbench.engines.listing import Criteria
from workbench.lake.entries import Personal

pytestmark = pytest.mark.heavy

PART = 2_000
"""One decision in so many is made: 500."""


def test_its_lists_begin_with_decisions_of_the_ledger_and_go_on_with_drawn_ones(tmp_path: Path) -> None:
    built = build(tmp_path / "home", PART)
    with instance_at(built.home, sqlite_url(built.home)) as instance:
        store = Store(instance, Personal(), utc_now)
        user = instance.ledger.users.users()[0]
        who = access(instance.ledger.users.user(user.name), SCOPE)
        reports = store.reports(who)

        everything = reports.find(Criteria())
        assert everything.frame["decision_id"][0] == built.decision_id
        assert everything.total == sum(reports.glance().frame["decisions"])
        assert everything.total > built.contents.rows == sum(of.decisions for of in built.contents.standings.values())

        drawn = reports.find(Criteria(until=everything.frame["created_at"][-1])).frame
        assert drawn["target_object_id"].null_count() == drawn["request_id"].null_count() == 0
        found = reports.find(Criteria(policy_id=drawn["policy_id"][0], ref=drawn["request_id"][0])).frame
        assert found["decision_id"].to_list() == drawn["decision_id"].head(1).to_list()

        assert store.ledger.story(who.scope_id, built.decision_id).verification.integrity_valid
        assert store.health(who).well
        assert reports.names().versions[POLICY][0] == "2025-01-01"
