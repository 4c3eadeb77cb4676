"""Shadows in a service that runs: decisions arrive, and the process for reports decides them anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.site import PATIENCE, Site, wait_until
from tests.end_to_end.support import Server, post_decide
from tests.support.migrating import FACTS, SCOPE, CommandDesk, lay_out, version
from tests.support.samples import sample_request


@pytest.fixture
def desk(tmp_path: Path) -> CommandDesk:
    """An author and an approver, and eight decisions."""
    folder = tmp_path / "desk"
    folder.mkdir()
    return lay_out(folder)


def decide(server: Server, desk: CommandDesk) -> None:
    """Decides the desk's facts in a service, by the rulebook inline."""
    key = (desk.home.parent / "key").read_text()
    for facts in FACTS:
        assert post_decide(server.url, key, sample_request(**facts)).status_code == 200


def when_found(desk: CommandDesk, decisions: int) -> Any:
    """What the shadow found, as soon as it looked at so many decisions."""
    found: list[Any] = [None]

    def is_found() -> bool:
        shown = desk.answer("shadow", "show", "second")
        assert shown["failure"] is None
        found[0] = shown["rulebooks"] and shown["rulebooks"]["pricing_exception"]
        return found[0] is not None and found[0]["decisions"] == decisions

    wait_until(is_found)
    return found[0]


def test_what_a_service_decides_is_decided_anew_until_the_shadow_is_stopped(desk: CommandDesk, tmp_path: Path) -> None:
    site = Site(desk.home, None)
    desk.route(version("1"), "first")
    desk.propose(version("2", 20), "second")
    with site.serving(1, "--analytics") as server:
        started = desk.answer("shadow", "start", "second", by="ada")
        decide(server, desk)
        history = when_found(desk, 8)
        assert history["verdict_changed"]["decisions"] == 2
        records = httpx.get(
            f"{server.url}/api/decisions",
            params={"limit": 100},
            headers={"x-api-key": (desk.home.parent / "key").read_text()},
            timeout=PATIENCE,
            trust_env=False,
        ).json()["decisions"]
        # The gate decided by what requests name, and by nothing else.
        assert len(records) == 16
        assert {of["policy_version"] for of in records} == {"2026-06-11"}
        server.stop()
    # What was decided while nobody looked is looked at when somebody does again.
    desk.decide(*FACTS)
    with site.serving(1, "--analytics"):
        history = when_found(desk, 16)
    # The same as of a dry run over these decisions alone.
    again = desk.write(version("2", 20), "third")
    dry = desk.answer("dry-run", again, "--since", started["started_at"][:10])["rulebooks"][0]["history"]
    assert dry["decisions"] == 24
    assert history["verdict_changed"]["decisions"] == 4
    assert dry["verdict_changed"]["decisions"] == 6
    assert desk.answer("shadow", "stop", "second", by="ben")["running"] is False
    assert desk.refusal("shadow", "show", "second")[0] == "SHADOW_NOT_RUNNING"
    assert site.gate("chain", "check", "--scope", SCOPE)["whole"] is True
