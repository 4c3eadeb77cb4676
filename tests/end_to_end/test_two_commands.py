"""`make run` as a new user meets it: first start, first decision, Ctrl-C, second start."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import httpx

from tests.end_to_end.support import free_port, make_run, mirror


def test_a_new_user_starts_decides_stops_and_starts_again(tmp_path: Path) -> None:
    project, port = mirror(tmp_path / "project"), free_port()
    with make_run(project, port) as server:
        command = server.curl_line()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        pasted = subprocess.run(["bash", "-c", command], cwd=elsewhere, capture_output=True, text=True, check=True)
        record = json.loads(pasted.stdout)
        assert record["verdict"] == "yes"
        (elsewhere / "record.json").write_text(pasted.stdout)
        gate = str(project / ".venv" / "bin" / "gate")
        verified = subprocess.run(
            [gate, "verify", "record.json", "--registry", server.url, "--json"],
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(verified.stdout)["checks"]["attestation_signature"] is True
        assert server.stop() is not None
        assert "Stopped. Everything acknowledged is in the ledger." in server.text()
        assert "Traceback" not in server.text()
    var = project / "var"
    for name in ("demo.key", "settings.toml", "ledger.db"):
        assert stat.S_IMODE((var / name).stat().st_mode) == 0o600, name
    for file in (var / "keys").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    key = (var / "demo.key").read_text()
    with make_run(project, port) as server:
        assert server.curl_line() == command
        assert (var / "demo.key").read_text() == key
        assert "Created" not in server.text()
        again = httpx.get(server.url + record["decision_url"], headers={"x-api-key": key.strip()}, trust_env=False)
        assert again.json() == record
        second = json.loads(subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout)
        assert second["audit_chain"]["chain_position"] == 2
        taken = subprocess.run(
            ["make", "--assume-old=.venv/.installed", "run", f"PORT={port}"],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert taken.returncode != 0
        assert "choose another --port" in taken.stderr
        assert key.strip() not in server.text()


def test_what_an_interrupted_demo_left_is_not_taken_for_a_demo(tmp_path: Path) -> None:
    project = mirror(tmp_path / "project")
    (project / "var-demo").mkdir()
    (project / "var-demo" / "settings.toml").touch()
    command = ["make", "--no-print-directory", "--assume-old=.venv/.installed", "demo"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert (
        done.stdout == "var-demo is incomplete, because its creation was interrupted. Remove it, and run this again.\n"
    )
    assert [entry.name for entry in (project / "var-demo").iterdir()] == ["settings.toml"]


def test_make_knows_its_targets() -> None:
    makefile = Path(__file__).parents[2] / "Makefile"
    for target in ("run", "test", "install", "lint", "bench"):
        assert f"\n{target}:" in makefile.read_text()
