"""gate pilot: what the operator sees of submissions, and erases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gate.clock import utc_now
from gate.instance.instance import Instance, open_instance
from gate.instance.pilots import PILOT_FILE
from gate.instance.settings import load_settings
from tests.support.command_line import run_gate
from tests.support.samples import PILOT

Gate = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def gate(home: Path) -> Gate:
    return lambda *arguments: run_gate("pilot", *arguments, "--home", str(home))


@pytest.fixture
def opened(home: Path) -> Iterator[Instance]:
    with closing(open_instance(load_settings(home))) as instance:
        yield instance


def listed(gate: Gate) -> list[dict[str, Any]]:
    done = gate("list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["pilots"]
    return found


def test_submissions_are_listed_with_the_token_that_confirms_each(gate: Gate, opened: Instance) -> None:
    assert gate("list").stdout == "There are no requests for a pilot.\n"
    now = utc_now()
    expired = opened.pilots.submit(PILOT, now - timedelta(days=14))
    pending = opened.pilots.submit(PILOT, now - timedelta(minutes=1))
    first, second = listed(gate)
    assert (first["pilot_id"], first["status"], first["token"]) == (expired, "expired", None)
    assert second == {
        "pilot_id": pending,
        "status": "pending",
        "submitted_at": second["submitted_at"],
        "confirmed_at": None,
        **PILOT,
        "token": opened.pilots.token(pending),
    }
    opened.pilots.confirm({"pilot_id": pending, "token": second["token"]}, now)
    assert [(pilot["status"], pilot["token"]) for pilot in listed(gate)] == [("expired", None), ("confirmed", None)]
    shown = gate("list").stdout
    assert f"pilot id         {pending}\nstatus           confirmed\n" in shown


def test_what_strangers_wrote_cannot_steer_a_terminal(gate: Gate, opened: Instance) -> None:
    opened.pilots.submit({**PILOT, "name": "Ada\u200f\u200b [red]x[/red]"}, utc_now())
    assert r"Ada\u200f\u200b [red]x[/red]" in gate("list").stdout


def test_submissions_are_erased_after_a_confirmation(gate: Gate, opened: Instance) -> None:
    first, second = (opened.pilots.submit(PILOT, utc_now()) for _ in range(2))
    refused = gate("erase", first)
    assert (refused.returncode, "CONFIRMATION_REQUIRED" in refused.stderr) == (2, True)
    unknown = gate("erase", first, "plt_0", "--yes")
    assert (unknown.returncode, "PILOT_UNKNOWN" in unknown.stderr) == (2, True)
    assert len(listed(gate)) == 2
    done = gate("erase", first, "--yes")
    assert (done.returncode, done.stdout.partition(".")[0]) == (0, "Erased 1 submission")
    assert json.loads(gate("erase", second, "--yes", "--json").stdout) == {"erased": [second]}
    assert listed(gate) == []


def test_without_the_secret_the_command_says_what_to_do(gate: Gate, opened: Instance, home: Path) -> None:
    opened.pilots.submit(PILOT, utc_now())
    (home / PILOT_FILE).unlink()
    done = gate("list")
    assert done.returncode == 2
    assert PILOT_FILE in done.stderr
