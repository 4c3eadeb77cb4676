"""The protocol's official conformance tool, run against the servers in every version that it knows.

What it finds no way to try on a server without state that has tools alone is in tests/mcp/conformance, by name and with
the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.site import Site
from tests.mcp.clients import CONFORMANCE_VERSIONS, conformance
from tests.mcp.keyed import keyed

pytestmark = pytest.mark.heavy

EXPECTED: Final = Path(__file__).parents[1] / "mcp" / "conformance" / "expected-failures.yaml"

TRIED: Final = {
    "2025-06-18": {"server-initialize", "ping", "tools-list"},
    "2025-11-25": {"server-initialize", "ping", "tools-list", "dns-rebinding-protection"},
    "2026-07-28": {
        "server-stateless",
        "tools-list",
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
    },
}
"""Scenarios of each version that have to be among those that passed."""

PATHS: Final = ("/api/mcp", "/policy/api/mcp")
"""The servers that are tried."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the servers are, for callers that can send no key."""
    site = Site(tmp_path_factory.mktemp("conformance") / "home", None)
    key = site.create_key("acme")
    with site.serving(1) as server, keyed(server.url, {"x-api-key": key}) as address:
        yield address


@pytest.mark.parametrize("version", CONFORMANCE_VERSIONS)
@pytest.mark.parametrize("path", PATHS)
def test_a_server_conforms(url: str, path: str, version: str, tmp_path: Path) -> None:
    done = conformance(f"{url}{path}", version, EXPECTED, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {file.parent.name: json.loads(file.read_text()) for file in tmp_path.rglob("checks.json")}
    for scenario in TRIED[version]:
        (checks,) = [checks for name, checks in found.items() if name.startswith(f"server-{scenario}-20")]
        assert "SUCCESS" in {check["status"] for check in checks}, scenario
    # Whatever else a scenario is about, each message of the server fits the published schema of the version.
    schemas = [check for checks in found.values() for check in checks if check["id"] == "wire-schema-valid"]
    assert {check["status"] for check in schemas} == {"SUCCESS"}
    assert sum(check["details"]["messagesValidated"] for check in schemas) > len(TRIED[version])
