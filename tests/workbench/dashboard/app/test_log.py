"""What the dashboard's process logs of requests: nothing that names a person, and no token."""

from __future__ import annotations

import json
import logging.config
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from io import StringIO
from pathlib import Path

import httpx
import pytest

from api.http.logs import library_logging
from gate.clock import utc_now
from gate.instance.instance import create_instance, open_instance
from gate.instance.settings import load_settings
from tests.workbench.dashboard.serving import HOST, free_port

pytestmark = pytest.mark.heavy

MARKER = "jane-doe-4711"


def test_no_address_is_logged_until_it_says_that_it_stopped(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create_instance(home, database_url=f"sqlite:///{home}/ledger.db", now=utc_now())
    with closing(open_instance(load_settings(home))) as instance:
        instance.ledger.directory.create_scope("demo", "unlimited", utc_now())
    port, log, told = free_port(), tmp_path / "stderr", tmp_path / "stdout"
    gate = Path(sys.executable).with_name("gate")
    command = [str(gate), "workbench", "--home", str(home), "--port", str(port), "--demo"]
    with (
        log.open("wb") as stderr,
        told.open("wb") as stdout,
        subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True) as process,
    ):
        try:
            with httpx.Client(base_url=f"http://{HOST}:{port}", trust_env=False) as http:
                until_it_answers(http, process)
                link = re.search(r"/sign-in/once/([\w-]{43})$", told.read_text(), re.MULTILINE)
                assert link is not None
                for method in ("GET", "PUT", "POST"):
                    assert http.request(method, link[0]).status_code < 500
                for method, path in (
                    ("GET", f"/nowhere?target={MARKER}"),
                    ("GET", f"/{MARKER}"),
                    ("GET", f"/sign-in/once/{MARKER}"),
                    ("PUT", f"/sign-in/once/{MARKER}"),
                    ("POST", f"/sign-in?next={MARKER}"),
                    ("GET", f"/download/packet?id={MARKER}"),
                    ("GET", f"/ws?bokeh-session-id={MARKER}"),
                    ("GET", f"/policy?target={MARKER}"),
                ):
                    assert http.request(method, path).status_code < 500
                upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
                named = {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": f"bokeh, {MARKER}"}
                http.get("/ws", headers={**upgrade, **named, "Origin": f"http://{MARKER}"})
        finally:
            # As Ctrl-C does: every process of the group hears of it.
            os.killpg(process.pid, signal.SIGINT)
    assert MARKER not in log.read_text()
    assert link[1] not in log.read_text()
    assert "Traceback" not in log.read_text()
    assert (process.returncode, told.read_text().splitlines()[-1]) == (0, "Stopped.")


def until_it_answers(http: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            http.get("/health")
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the dashboard ended")


def test_a_librarys_message_is_left_out_and_its_place_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        logging.config.dictConfig(library_logging(messages=False))
        logging.getLogger("bokeh").warning("asked for %s", MARKER)
        try:
            raise ValueError(MARKER)
        except ValueError:
            logging.getLogger("tornado.application").exception(MARKER)
    finally:
        root.handlers[:], root.level = before
    first, second = (json.loads(line) for line in written.getvalue().splitlines())
    assert MARKER not in written.getvalue()
    assert (first["logger"], first["level"]) == ("bokeh", "warning")
    assert first["event"].startswith(__file__)
    assert (second["error_type"], len(second["places"])) == ("ValueError", 1)
