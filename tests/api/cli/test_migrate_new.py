"""gate migrate new: the manifest that it writes, what it refuses, and what it says to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gate.contract.published import published
from tests.support.command_line import run_gate
from tests.support.corpora import DEALS, LABEL, deals, refactored, write
from tests.support.rulebooks import stricter_rulebook
from tests.support.samples import sample_rulebook

ID = "pricing.2026-09"


def written(folder: Path, *arguments: str) -> Any:
    """The manifest that a command writes beside pricing.json."""
    done = run_gate("migrate", "new", ID, "--candidate", str(folder / "pricing.json"), *arguments, "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(Path(json.loads(done.stdout)["file"]).read_text())
    assert made == json.loads(done.stdout)["manifest"]
    return made


def refused(*arguments: str) -> Any:
    done = run_gate("migrate", "new", ID, *arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    return json.loads(done.stderr)


@pytest.mark.parametrize(
    ("rulebook", "fields"),
    [
        (refactored(), ["rulebook", "attestation_hash"]),
        (stricter_rulebook(), ["semantic_output", "rulebook", "attestation_hash"]),
    ],
    ids=["the same in another way", "another outcome"],
)
def test_it_expects_exactly_the_drift_that_the_corpus_shows(tmp_path: Path, rulebook: Any, fields: list[str]) -> None:
    write(tmp_path, {"pricing.json": rulebook, **deals()})
    made = written(tmp_path, "--corpus", str(tmp_path / "index.json"), "--summary", "A new floor.")
    assert made == {
        "schema_version": "rulebook_migration_v1",
        "migration_id": ID,
        "status": "proposed",
        "compatibility_class": "rulebook",
        "summary": "A new floor.",
        "corpus": "index.json",
        "candidate": {"rulebooks": [{"rulebook_id": "pricing_exception", "path": "pricing.json"}]},
        "expected_drift": {"policy": "requires_approval", "fixtures": list(DEALS), "fields": fields},
        "approval": {"status": "pending"},
    }
    check = run_gate("migrate", "check", "--allow-drift", str(tmp_path / f"{ID}.json"))
    assert (check.returncode, check.stderr) == (0, "")


def test_where_nothing_drifts_approval_is_pending_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, {"pricing.json": sample_rulebook(), **deals()})
    made = written(tmp_path, "--corpus", str(tmp_path / "index.json"))
    assert (made["expected_drift"], made["approval"]) == ({"policy": "none"}, {"status": "pending"})


def test_files_are_named_from_the_folder_of_the_manifest(tmp_path: Path) -> None:
    body = {**published()["/replay/adapters.json"].document["rulebooks"][0], "version": "9"}
    write(tmp_path, {"pricing.json": stricter_rulebook(), "next/other.json": body})
    (tmp_path / "migrations").mkdir()
    other, out = str(tmp_path / "next" / "other.json"), str(tmp_path / "migrations" / ".." / "all.yaml")
    made = written(tmp_path, "--candidate", other, "--out", out, "--class", "public_response")
    assert [of["path"] for of in made["candidate"]["rulebooks"]] == ["pricing.json", "next/other.json"]
    assert made["compatibility_class"] == "public_response"
    outside = refused("--candidate", other, "--out", str(tmp_path / "migrations" / "all.json"))
    assert outside["error"] == "USAGE_INVALID"
    assert "is outside of" in outside["message"]
    assert list((tmp_path / "migrations").iterdir()) == []


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path, {"pricing.json": stricter_rulebook()})
    candidate, kept = str(tmp_path / "pricing.json"), tmp_path / f"{ID}.json"
    kept.write_text("mine")
    assert refused("--candidate", candidate)["error"] == "MIGRATION_EXISTS"
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere.json")
    assert refused("--candidate", candidate, "--out", str(tmp_path / "link.json"))["error"] == "MIGRATION_EXISTS"
    assert (kept.read_text(), (tmp_path / "nowhere.json").exists()) == ("mine", False)


def test_what_no_manifest_could_say_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    write(tmp_path, {"pricing.json": stricter_rulebook(), "broken.json": {**sample_rulebook(), "rules": []}})
    candidate = str(tmp_path / "pricing.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "pricing.json")
    before = sorted(tmp_path.iterdir())
    for arguments, error in (
        (["--candidate", candidate, "--class", "adapter"], "MIGRATION_INVALID"),
        (["--candidate", candidate, "--candidate", candidate], "MIGRATION_INVALID"),
        (["--candidate", candidate, "--summary", ""], "MIGRATION_INVALID"),
        (["--candidate", str(tmp_path / "link.json")], "MIGRATION_INVALID"),
        (["--candidate", str(tmp_path / "broken.json")], "RULEBOOK_INVALID"),
        (["--candidate", str(tmp_path / "nowhere.json")], "FILE_UNREADABLE"),
        (["--candidate", candidate, "--out", str(tmp_path / "nowhere" / "m.json")], "USAGE_INVALID"),
    ):
        assert refused(*arguments)["error"] == error, arguments
    assert sorted(tmp_path.iterdir()) == before


def test_a_person_is_told_what_it_expects_and_what_comes_next(tmp_path: Path) -> None:
    write(tmp_path, {"pricing.json": stricter_rulebook(), **deals()})
    candidate, corpus = str(tmp_path / "pricing.json"), str(tmp_path / "index.json")
    mine, theirs = tmp_path / f"{ID}.json", tmp_path / "other.json"
    done = run_gate("migrate", "new", ID, "--candidate", candidate, "--corpus", corpus)
    assert done.stdout.splitlines() == [
        f"Wrote {mine}. It expects drift in 5 fixtures of {LABEL}, and that needs approval.",
        f"Next: `gate migrate check {mine}` shows each fixture that drifts.",
    ]
    done = run_gate("migrate", "new", ID, "--candidate", candidate, "--out", str(theirs))
    assert done.stdout.splitlines() == [
        f"Wrote {theirs}. It expects no drift: no fixture of rulebook_v1_golden_replay_v1 has a rulebook of the "
        "candidate, so the corpus shows nothing.",
        f"Next: prove it on the past with `gate migrate dry-run {theirs} --scope SCOPE`.",
    ]


def test_a_candidate_that_keeps_a_version_is_told_of(tmp_path: Path) -> None:
    reused = {**stricter_rulebook(), "version": sample_rulebook()["version"]}
    write(tmp_path, {"pricing.json": reused, **deals()})
    done = run_gate(
        "migrate", "new", ID, "--candidate", str(tmp_path / "pricing.json"), "--corpus", str(tmp_path / "index.json")
    )
    assert "has the same version 2026-06-11. Give it a new version." in " ".join(done.stdout.split())


def test_it_warns_of_a_misspelt_field_where_the_candidate_says_it(tmp_path: Path) -> None:
    rulebook = sample_rulebook()
    rulebook["rules"][0]["condition"]["field"] = "margin_percnt"
    file = tmp_path / "pricing.json"
    file.write_text(json.dumps(rulebook, indent=2))
    line = 1 + next(at for at, text in enumerate(file.read_text().splitlines()) if "margin_percnt" in text)
    done = run_gate("migrate", "new", ID, "--candidate", str(file))
    assert done.returncode == 0
    assert f"{file}:{line}: warning: rules[0].condition.field: " in done.stdout
    (tmp_path / f"{ID}.json").unlink()
    told = json.loads(run_gate("migrate", "new", ID, "--candidate", str(file), "--json").stdout)["warnings"]
    assert [(of["file"], of["line"], of["code"]) for of in told] == [(str(file), line, "undeclared_field")]
