"""The commands of docs/guides/upgrade.md, on an instance of each earlier release, which this one then serves."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from gate.clock import utc_now
from gate.ids import timestamp
from tests.end_to_end.site import Site
from tests.upgrade.kept import Release

pytestmark = pytest.mark.heavy

GUIDE: Final = (Path(__file__).parents[2] / "docs" / "guides" / "upgrade.md").read_text()
STEPS: Final = ("gate db upgrade", "gate status", "gate chain check")
REASSIGN: Final = "gate review owners set --scope NAME --owner OWNER --within 2d --reassign"


@pytest.fixture
def site(release: Release, database_url: str | None) -> Site:
    """The instance as the earlier release left it."""
    return Site(release.home, database_url)


def run(site: Site, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the guide, in a process of its own."""
    words = site.command(*command.split()[1:])
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


def test_the_guide_gives_these_commands() -> None:
    commands = re.findall(r"`(gate [^`]+)`", GUIDE)
    assert {*STEPS, REASSIGN} <= set(commands)


def test_an_instance_is_upgraded_and_decides_on(release: Release, site: Site, tmp_path: Path) -> None:
    refused = run(site, "gate chain check")
    assert (refused.returncode, "LEDGER_OUTDATED" in refused.stderr) == (2, True)
    # It can be repeated.
    for command in (STEPS[0], *STEPS):
        done = run(site, command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert not (release.home / "keys" / "pilot.secret").exists()
    decision = release.kept.read("decisions")[0]
    key = release.kept.read("callers")[decision["caller"]]
    with site.serving() as server, httpx.Client(base_url=server.url, headers={"x-api-key": key}, timeout=60) as client:
        assert (release.home / "keys" / "pilot.secret").exists()
        kept = client.get(f"/api/decision/{decision['decision_id']}")
        made = client.post("/api/decide", json=decision["request"])
        assert (kept.status_code, made.status_code, made.json()["verdict"]) == (200, 200, "yes"), made.text
        request = tmp_path / "request.json"
        request.write_text(json.dumps(decision["request"]))
        # An earlier record counts for the keys that were published with it, and for those that are published now.
        for record, registry in (
            (kept, str(release.kept.file("receipt-keys"))),
            (kept, server.url),
            (made, server.url),
        ):
            file = tmp_path / "record.json"
            file.write_bytes(record.content)
            words = [site.command()[0], "verify", str(file), "--registry", registry, "--input", str(request)]
            verified = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
            assert verified.returncode == 0, f"{registry}: {verified.stdout}{verified.stderr}"
    assert run(site, "gate chain check").returncode == 0


def test_held_decisions_get_an_owner_and_a_limit_that_counts_from_then(site: Site) -> None:
    assert run(site, "gate db upgrade").returncode == 0
    held = reviews(site)
    assert held
    assert {(review["owner"], review["due_at"]) for review in held} == {(None, None)}
    begun = utc_now()
    done = run(site, REASSIGN.replace("NAME", "harbor").replace("OWNER", "purchasing"))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    after = reviews(site)
    assert {review["decision_id"] for review in after} == {review["decision_id"] for review in held}
    assert {review["owner"] for review in after} == {"purchasing"}
    limits = timestamp(begun + timedelta(days=2)), timestamp(utc_now() + timedelta(days=2))
    assert all(limits[0] <= review["due_at"] <= limits[1] for review in after)


def reviews(site: Site) -> list[dict[str, Any]]:
    """The held reviews of the company whose decisions were kept."""
    found: list[dict[str, Any]] = site.gate("review", "list", "--scope", "harbor", "--limit", "1000")["reviews"]
    return found
