"""The dashboard's process is killed in the middle of a dry run: nothing half done is left, and all goes on."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gate.clock import utc_now
from gate.encoding.yaml_text import write_yaml
from gate.instance.instance import Instance
from gate.ledger.drafts.drafts import Origin
from tests.support.browser import browser
from tests.support.samples import sample_rulebook
from tests.workbench.dashboard.browsing import Window
from tests.workbench.dashboard.serving import PASSWORD, free_port

pytestmark = pytest.mark.heavy

SECONDS = 60


@contextmanager
def workbench(home: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """`gate workbench`, which listens."""
    gate = Path(sys.executable).with_name("gate")
    command = [str(gate), "workbench", "--home", str(home), "--port", str(port), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = ""
            while line.rstrip() != "}":
                line = process.stdout.readline()
                assert line, "the dashboard ended"
            yield process
        finally:
            process.kill()


def children_of(pid: int) -> list[int]:
    """The processes that a process started, in any of its threads."""
    listed = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(each) for one in listed for each in one.split()]


def runs(pid: int) -> bool:
    """Whether a process runs: one that ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_a_dashboard_that_is_killed_in_a_dry_run_leaves_no_half_evidence(
    instance: Instance, home: Path, scope: Any
) -> None:
    from playwright.sync_api import expect

    ledger, port = instance.ledger, free_port()
    ledger.users.add("ada", PASSWORD, [scope], "author", None, utc_now())
    text = write_yaml(sample_rulebook())
    draft = ledger.drafts.create(scope, "prices", text, Origin("empty"), "ada", utc_now())
    head = ledger.entries.head(scope.scope_id)
    page_of_it = f"/propose?scope=acme&id={draft.draft_id}"
    with browser() as chromium:
        window = Window(chromium, f"http://127.0.0.1:{port}")
        proof = window.page.locator("#part-proof")
        with workbench(home, port) as process:
            window.sign_in("ada", PASSWORD)
            window.go(page_of_it)
            before = set(children_of(process.pid))
            window.page.get_by_role("button", name="Start the dry run").click()
            expect(proof).to_contain_text("Repeating decisions", timeout=SECONDS * 1000)
            assert eventually(lambda: set(children_of(process.pid)) > before)
            workers = children_of(process.pid)
            process.kill()
        # What it had begun ends with it.
        assert eventually(lambda: not any(map(runs, workers)))
        assert instance.migrations().migrations(scope) == []
        assert ledger.entries.head(scope.scope_id) == head
        assert ledger.drafts.draft(scope.scope_id, draft.draft_id) == draft
        window.faults.clear()
        with workbench(home, port):
            # A restart signs everybody out.
            window.page.goto(page_of_it)
            window.sign_in("ada", PASSWORD)
            window.go(page_of_it)
            expect(proof).to_be_empty()
            window.page.get_by_role("button", name="Start the dry run").click()
            expect(proof).to_contain_text(re.compile("Dry run of"), timeout=SECONDS * 1000)
            assert ledger.entries.head(scope.scope_id) == head
            window.page.get_by_role("button", name="Propose").click()
            window.page.locator("dialog button").first.click()
            window.shows("/migration?")
        window.close()
    (migration,) = instance.migrations().migrations(scope)
    assert migration.state == "proposed"
    assert ledger.entries.head(scope.scope_id).size == head.size + 1
