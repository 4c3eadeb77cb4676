"""A real server conforms to the contract that it publishes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gate.contract.published import golden_cases, published
from tests.end_to_end.site import GATE, Site
from tests.end_to_end.support import free_port


@pytest.fixture
def database_url() -> None:
    """In the home: what is published and how it is answered does not depend on the database."""


def test_a_real_server_conforms_and_its_chain_is_whole(site: Site, tmp_path: Path) -> None:
    keys = tmp_path / "api.key"
    keys.write_text(site.create_key("acme"))
    with site.serving(workers=1) as server:
        report = site.gate("conformance", "--endpoint", server.url, "--api-key-file", str(keys))
    assert (report["conforms"], report["failed"], report["signatures_checked"]) == (True, [], True)
    # Each document, each fixture, each golden case, and the two key registries.
    fixtures = len(published()["/conformance/index.json"].document["fixtures"])
    assert report["checked"] == len(published()) + fixtures + len(golden_cases()) + 2
    # What is refused makes no record: of the fixtures two are approved.
    assert len(site.chain("acme")) == len(golden_cases()) + 2


def test_a_server_that_is_gone_cannot_be_checked(site: Site, tmp_path: Path) -> None:
    keys = tmp_path / "api.key"
    keys.write_text(site.create_key("acme"))
    gone = f"http://127.0.0.1:{free_port()}"
    command = [GATE, "conformance", "--endpoint", gone, "--api-key-file", str(keys)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ENDPOINT_UNREACHABLE" in done.stderr
