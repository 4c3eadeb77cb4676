"""Commands that meet an advisory record: it verifies, and is never shown as an approval."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gate.instance.instance import create_instance
from tests.support.advice import NAMESAKE, Advice
from tests.support.command_line import run_gate
from tests.workbench.support import Shared, advised

TOLD = "ADVISORY: a model gave this answer. It authorizes nothing, with any verdict."


@dataclass
class Kept:
    """An instance with advice, and a directory for its files."""

    shared: Shared
    given: Advice
    files: Path

    @property
    def home(self) -> str:
        return str(self.shared.lake.parent)

    def file(self, document: object) -> str:
        file = self.files / "document.json"
        file.write_text(json.dumps(document))
        return str(file)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    directory = tmp_path_factory.mktemp("advice")
    with advised(directory / "home") as (shared, given):
        yield Kept(shared, given, directory)


@pytest.mark.parametrize("name", ["single", "multi", "runtime", "erased"])
def test_a_verified_record_is_called_advisory(kept: Kept, name: str) -> None:
    record = kept.given.get(f"/api/decision/{kept.given.advisory[name]['decision_id']}")
    told = run_gate("verify", kept.file(record), "--home", kept.home)
    assert (told.returncode, told.stdout.splitlines()[0][:9]) == (0, "verified:")
    assert TOLD in told.stdout.splitlines()
    document = json.loads(run_gate("verify", kept.file(record), "--home", kept.home, "--json").stdout)
    assert (document["verified"], document["checks"]["decision_contract"]) == (True, True)


def test_a_record_that_does_not_verify_is_called_so_as_well(kept: Kept) -> None:
    record = {**kept.given.advisory["single"], "verdict": "no"}
    told = run_gate("verify", kept.file(record), "--home", kept.home)
    assert told.returncode == 1
    assert TOLD in told.stdout


def test_a_binding_record_is_not(kept: Kept) -> None:
    for record in (kept.given.binding["yes"], kept.given.namesake[0]):
        told = run_gate("verify", kept.file(record), "--home", kept.home)
        assert (told.returncode, "ADVISORY" in told.stdout) == (0, False)


def test_a_packet_of_advice_is_called_so(kept: Kept) -> None:
    for decided, advisory in ((kept.given.advisory["runtime"], True), (kept.given.namesake[0], False)):
        packet = kept.given.get(f"/api/decision/{decided['decision_id']}/packet")
        told = run_gate("verify-packet", kept.file(packet), "--home", kept.home)
        assert (told.returncode, TOLD in told.stdout) == (0, advisory)


def test_a_packet_that_is_given_for_a_record_gets_the_command_and_no_list_of_its_members(kept: Kept) -> None:
    packet = kept.given.get(f"/api/decision/{kept.given.advisory['single']['decision_id']}/packet")
    told = run_gate("verify", kept.file(packet), "--home", kept.home)
    assert told.returncode == 1
    assert told.stdout == (
        "NOT VERIFIED: This is a Decision Packet, not a Decision Record; use `gate verify-packet` or POST "
        "/api/decision/packet/verify. (RECORD_INCOMPLETE)\n"
    )


def test_what_erasing_removes_names_the_answer() -> None:
    assert "the tested values or the upstream's answer" in " ".join(run_gate("erase", "--help").stdout.split())


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ("", "unconfigured"),
        ('advisory_url = "http://127.0.0.1:9/v1"\nadvisory_model = "model-1"\n', "ready"),
        (
            'advisory_url = "http://127.0.0.1:9/v1"\n',
            "unavailable: advisory_url is set without advisory_model. Set advisory_model to a model that the "
            "server has.",
        ),
    ],
)
def test_the_status_names_the_state_of_advice(tmp_path: Path, settings: str, state: str) -> None:
    home = tmp_path / "home"
    create_instance(home)
    with (home / "settings.toml").open("a") as file:
        file.write(settings)
    told = run_gate("status", "--home", str(home))
    assert (told.returncode, told.stdout.splitlines()[0][:6]) == (0, "ready:")
    assert f"backends yes advisory {state} disk yes" in " ".join(told.stdout.split())
    backends = json.loads(run_gate("status", "--home", str(home), "--json").stdout)["backends"]
    assert (backends["ready"], backends["note"]) == (True, f"advisory {state}")
    assert backends["advisory"] == state.partition(":")[0]


def test_a_chain_and_a_lake_with_advice_are_whole(kept: Kept) -> None:
    assert run_gate("chain", "check", "--home", kept.home).returncode == 0
    for arguments in (("export",), ("compact",), ("verify", "--against-ledger"), ("status",)):
        told = run_gate("lake", *arguments, "--home", kept.home)
        assert told.returncode == 0, told.stdout + told.stderr


def test_no_rulebook_decides_it_anew(kept: Kept) -> None:
    decision_id = kept.given.advisory["multi"]["decision_id"]
    about = ("--scope", "acme", "--home", kept.home)
    told = run_gate("whatif", NAMESAKE, "--decision", decision_id, "--set", "margin_percent=1", *about)
    assert told.returncode == 2
    assert f"{decision_id} is advisory: a model answered it" in " ".join(told.stderr.split())
    shown = json.loads(run_gate("whatif", NAMESAKE, "--set", "margin_percent=1", *about, "--json").stdout)
    assert "decisions" in json.dumps(shown)
