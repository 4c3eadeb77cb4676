"""`gate notebook`: a notebook for a scope and a policy of the lake, and what it refuses to write."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS
from tests.support.command_line import run_gate
from tests.workbench.support import Chain, claim_request
from workbench.notebooks import notebooks


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an instance and its lake: `acme` has decided by two policies, and `other` by one."""
    home = tmp_path_factory.mktemp("instance") / "home"
    create_instance(home, base_url="http://gate.example")
    with closing(open_instance(load_settings(home))) as instance:
        for name, requests in (("acme", [None, claim_request()]), ("other", [None])):
            scope = instance.ledger.directory.create_scope(name, "unlimited", utc_now())
            key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
            chain = Chain(instance, instance.ledger.directory.authenticate(key, utc_now()))
            for request in requests:
                chain.decide(request)
    assert run_gate("lake", "export", "--home", str(home)).returncode == 0
    return home


def parameters(file: Path) -> list[str]:
    """What the cell says that names what a notebook looks at."""
    import jupytext

    (cell,) = (cell for cell in jupytext.read(file).cells if cell.metadata.get("tags") == ["parameters"])
    return str(cell.source).splitlines()


def refused(done: CompletedProcess[str]) -> tuple[str, str]:
    """The code and the sentence of the error that a command printed as JSON."""
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    told: dict[str, Any] = json.loads(done.stderr)
    return told["error"], told["message"]


def test_the_notebooks_are_listed_with_their_titles() -> None:
    told = json.loads(run_gate("notebook", "--list", "--json").stdout)
    assert told == {"notebooks": [{"notebook": each.name, "title": each.title} for each in notebooks()]}
    shown = run_gate("notebook", "--list").stdout
    assert all(each.name in shown and each.title in shown for each in notebooks())


@pytest.mark.parametrize("suffix", [".ipynb", ".py"])
def test_a_notebook_is_written_for_a_scope_and_a_policy_of_the_instances_lake(
    lakes: Path, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"mine{suffix}"
    command = ("notebook", "effectiveness", "--scope", "acme", "--policy", "claims", "--out", str(file))
    done = run_gate(*command, "--home", str(lakes))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Wrote {file}: the notebook effectiveness for claims in acme, over the lake {lakes}/lake.\n"
    assert parameters(file) == ["SCOPE = 'acme'", "POLICY = 'claims'", f"LAKE = '{lakes}/lake'"]
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_a_lake_may_be_named_instead_of_an_instance_and_is_written_with_its_whole_path(
    lakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lakes)
    file = tmp_path / "mine.ipynb"
    command = ("notebook", "counterfactuals", "--lake", "lake", "--scope", "other", "--out", str(file), "--json")
    assert json.loads(run_gate(*command).stdout) == {
        "notebook": "counterfactuals",
        "scope": "other",
        "policy": "pricing_exception",
        "lake": f"{lakes}/lake",
        "file": str(file),
    }
    assert parameters(file)[2] == f"LAKE = '{lakes}/lake'"


def test_the_lake_is_where_the_instances_settings_say(
    lakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_LAKE", str(lakes / "lake"))
    file = tmp_path / "mine.py"
    command = ("notebook", "effectiveness", "--scope", "other", "--out", str(file))
    assert run_gate(*command, "--home", str(tmp_path / "nowhere")).returncode == 0
    assert parameters(file)[2] == f"LAKE = '{lakes}/lake'"


def test_what_is_left_out_has_to_be_the_only_one(lakes: Path, tmp_path: Path) -> None:
    command = ("notebook", "effectiveness", "--home", str(lakes), "--out", str(tmp_path / "mine.py"), "--json")
    code, message = refused(run_gate(*command))
    assert (code, message) == (
        "USAGE_INVALID",
        f"The lake {lakes}/lake has more than one scope; add --scope. There are 'acme' and 'other'.",
    )
    code, message = refused(run_gate(*command, "--scope", "acme"))
    assert (code, message) == (
        "USAGE_INVALID",
        "Scope 'acme' has more than one policy; add --policy. There are 'claims' and 'pricing_exception'.",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (["nonsense"], "NOTEBOOK_UNKNOWN", "counterfactuals, effectiveness"),
        ([], "USAGE_INVALID", "--list"),
        (
            ["effectiveness", "--scope", "acme\n"],
            "LAKE_SCOPE_UNKNOWN",
            "'acme\\n'. Did you mean 'acme'? There are 'acme' and 'other'.",
        ),
        (
            ["effectiveness", "--scope", "acme", "--policy", "x"],
            "LAKE_POLICY_UNKNOWN",
            "There are 'claims' and 'pricing_exception'.",
        ),
        (
            ["effectiveness", "--scope", "other", "--policy", "claims"],
            "LAKE_POLICY_UNKNOWN",
            "There is 'pricing_exception'.",
        ),
        (["effectiveness", "--lake", "nowhere"], "LAKE_MISSING", "There is no lake in"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(
    lakes: Path, tmp_path: Path, options: list[str], code: str, named: str
) -> None:
    done = run_gate("notebook", *options, "--home", str(lakes), "--out", str(tmp_path / "mine.py"), "--json")
    found, message = refused(done)
    assert found == code
    assert named in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", [[], ["--out", "mine"], ["--out", "mine.txt"], ["--out", ".ipynb"]])
def test_a_file_has_to_be_named_as_one_of_the_two_formats(lakes: Path, out: list[str]) -> None:
    command = ("notebook", "effectiveness", "--home", str(lakes), "--scope", "other", *out, "--json")
    code, message = refused(run_gate(*command))
    assert code == "USAGE_INVALID"
    assert out or "`gate notebook effectiveness --scope SCOPE --policy ID --out effectiveness.ipynb`" in message


def test_a_file_that_is_there_is_written_over_only_where_that_is_said(lakes: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.ipynb"
    file.write_text("work of a week")
    command = ("notebook", "effectiveness", "--home", str(lakes), "--scope", "other", "--out", str(file), "--json")
    code, message = refused(run_gate(*command))
    assert (code, message) == ("NOTEBOOK_EXISTS", f"{file} already exists; choose another file name, or add --force.")
    assert file.read_text() == "work of a week"
    assert run_gate(*command, "--force").returncode == 0
    assert parameters(file)[0] == "SCOPE = 'other'"
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("place", ["nowhere/mine.py", "file/mine.py", "folder.py"])
def test_a_file_that_cannot_be_written_leaves_nothing_behind(lakes: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.py").mkdir()
    command = ("notebook", "effectiveness", "--home", str(lakes), "--scope", "other", "--force", "--json")
    code, message = refused(run_gate(*command, "--out", str(tmp_path / place)))
    assert code == "NOTEBOOK_UNWRITABLE"
    assert message.startswith(f"{tmp_path / place} cannot be written: ")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.py"]


def test_a_dry_run_takes_a_version_or_a_file_of_the_policy(lakes: Path, tmp_path: Path) -> None:
    body = json.loads(resources.path("data", "rulebooks", "pricing_exception.json").read_bytes())
    file, other = tmp_path / "candidate.yaml", tmp_path / "other.json"
    file.write_text(json.dumps({**body, "version": "next"}))
    other.write_text(json.dumps({**body, "rulebook_id": "claims"}))
    asked = ("notebook", "migration_dry_run", "--scope", "acme", "--policy", body["rulebook_id"], "--home", str(lakes))
    for named, candidate in ((body["version"], body["version"]), (str(file), str(file.absolute()))):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}.ipynb"
        done = run_gate(*asked, "--candidate", named, "--out", str(out), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["candidate"] == candidate
        assert parameters(out)[3] == f"CANDIDATE = {candidate!r}"
    for named, said in (("next", "neither a file nor a version"), (str(other), "contains the rulebook claims")):
        code, message = refused(run_gate(*asked, "--candidate", named, "--out", str(tmp_path / "x.ipynb"), "--json"))
        assert (code, said in message) == ("USAGE_INVALID", True)
    wrong = ("notebook", "effectiveness", "--candidate", "x", *asked[2:], "--out", str(tmp_path / "x.ipynb"), "--json")
    assert refused(run_gate(*wrong))[1] == "The notebook effectiveness has no --candidate; migration_dry_run has."
