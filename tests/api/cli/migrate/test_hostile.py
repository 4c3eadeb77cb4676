"""Manifests and files of cases that nobody should trust, given to `gate migrate dry-run` and `propose`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api.cli.hostile import HOSTILE
from tests.support.corpora import deals, manifest, write
from tests.support.migrating import CommandDesk, version

SECRET: Final = "root:x:0:0:a secret of somebody else"

Break = Callable[[Path, dict[str, Any]], object]


def refused(desk: CommandDesk, command: str, file: str, *options: str) -> Any:
    """The error of a command, which proposed nothing and told nobody what other files hold."""
    done = desk.migrate(command, file, *options, "--json", by="ada" if command == "propose" else None)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    told = json.loads(done.stderr)
    shown = desk.migrate(command, file, *options, by="ada" if command == "propose" else None)
    for text in (done.stderr, shown.stderr):
        assert "somebody else" not in text
        assert "Traceback" not in text
        assert "\x1b" not in text
    assert desk.answer("list") == {"migrations": []}
    return told


def linked(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to(folder.parent / "secret.json")


def grown(folder: Path, name: str, size: int) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(size)


@pytest.mark.parametrize("command", ["dry-run", "propose"])
@pytest.mark.parametrize(
    ("damage", "code", "field"),
    [
        (lambda folder, of: of.update(extra=HOSTILE), "MIGRATION_INVALID", "extra"),
        (lambda folder, of: of.update(migration_id=HOSTILE), "MIGRATION_INVALID", "migration_id"),
        (
            lambda folder, of: of["candidate"]["rulebooks"][0].update(path="../secret.json"),
            "MIGRATION_INVALID",
            "candidate.rulebooks[0].path",
        ),
        (
            lambda folder, of: of["candidate"]["rulebooks"][0].update(path=str(folder.parent / "secret.json")),
            "MIGRATION_INVALID",
            "candidate.rulebooks[0].path",
        ),
        (lambda folder, of: linked(folder, "pricing.json"), "MIGRATION_INVALID", "candidate.rulebooks[0].path"),
        (lambda folder, of: grown(folder, "pricing.json", 2**21), "MIGRATION_INVALID", "candidate.rulebooks[0].path"),
        (lambda folder, of: of.update(corpus="../secret.json"), "MIGRATION_INVALID", "corpus"),
        (lambda folder, of: linked(folder, "deals.json"), "CORPUS_INVALID", "files[0].path"),
        (lambda folder, of: grown(folder, "deals.json", 2**25), "CORPUS_INVALID", "files[0].path"),
        (
            lambda folder, of: write(folder, {"deals.json": {**deals()["deals.json"], "title": "Others"}}),
            "CORPUS_INVALID",
            "files[0].sha256",
        ),
    ],
    ids=[
        "an unknown member",
        "an id that steers a terminal",
        "a path that leaves the folder",
        "an absolute path",
        "a linked rulebook",
        "a huge rulebook",
        "a corpus outside of the folder",
        "a linked file of a corpus",
        "a huge file of a corpus",
        "a wrong hash",
    ],
)
def test_a_hostile_manifest_is_refused_and_names_the_place(
    desk: CommandDesk, command: str, damage: Break, code: str, field: str
) -> None:
    folder = desk.folder
    named = manifest(corpus="index.json")
    write(folder, {"pricing.json": version("1"), **deals()})
    (folder.parent / "secret.json").write_text(SECRET)
    damage(folder, named)
    told = refused(desk, command, str(write(folder, {"m.json": named}) / "m.json"))
    assert (told["error"], [error["field"] for error in told["errors"]]) == (code, [field])


@pytest.mark.parametrize("command", ["dry-run", "propose"])
def test_a_manifest_that_is_huge_or_not_there(desk: CommandDesk, command: str) -> None:
    file = desk.write(version("1"))
    grown(desk.folder, "prices.json", 2**21)
    told = refused(desk, command, file)
    assert (told["error"], "larger than" in told["message"]) == ("FILE_UNREADABLE", True)
    assert refused(desk, command, f"{file}.gone")["error"] == "FILE_UNREADABLE"


def _cases(**members: Any) -> Any:
    case = {"name": "thin", "facts": {"discount_percent": 10, "margin_percent": 16}, "expect": {"verdict": "yes"}}
    return {"schema_version": "rulebook_cases_v1", "rulebook": "pricing.json", "cases": [case], **members}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (json.dumps(_cases(extra=HOSTILE)), "shows more."),
        (json.dumps(_cases(rulebook="../secret.json")), "is not valid"),
        (json.dumps(_cases(rulebook="linked.json")), "is not valid"),
        (json.dumps(_cases(rulebook="gone.json")), "cannot be read: No such file or directory."),
        (json.dumps(_cases(rulebook="a\x00b.json")), "shows more."),
        (json.dumps(_cases(rulebook="/dev/zero")), "shows more."),
        (json.dumps(_cases(rulebook="another.json")), "has cases of another, but the migration proposes pricing_excep"),
        (json.dumps(_cases(cases=[])), "shows more."),
        ("[" * 500, "is not valid"),
        ("a: &a [x]\nb: [" + "*a, " * 1000 + "]", "is not valid YAML."),
        (json.dumps(version("1")), "shows more."),
        ("", "shows more."),
    ],
    ids=[
        "an unknown member",
        "a rulebook outside of the folder",
        "a linked rulebook",
        "a rulebook that is not there",
        "no name of a file",
        "a rulebook without an end",
        "cases of another rulebook",
        "no cases",
        "deep nesting",
        "aliases",
        "a rulebook",
        "nothing",
    ],
)
def test_a_hostile_file_of_cases_is_refused(desk: CommandDesk, content: str, told: str) -> None:
    file = desk.write(version("1"))
    write(desk.folder, {"another.json": {**version("1"), "rulebook_id": "another"}})
    (desk.folder.parent / "secret.json").write_text(SECRET)
    (desk.folder / "linked.json").symlink_to(desk.folder.parent / "secret.json")
    cases = desk.folder / "cases"
    cases.write_text(content)
    for command in ("dry-run", "propose"):
        found = refused(desk, command, file, "--cases", str(cases))
        assert (found["error"], told in found["message"]) == ("CASES_UNUSABLE", True), found["message"]
        assert str(cases) in found["message"]


def test_a_file_of_cases_that_is_not_there_or_huge(desk: CommandDesk) -> None:
    file = desk.write(version("1"))
    for cases in (str(desk.folder / "gone.json"), str(desk.folder), "/dev/zero"):
        found = refused(desk, "propose", file, "--cases", cases)
        assert (found["error"], cases in found["message"]) == ("CASES_UNUSABLE", True)
