"""`gate history`: a rehearsal, an import, and its set in lists, verification, what-if, dry runs and backups."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.support.command_line import run_gate
from tests.workbench.history.importing import DATA, small_map, write_csv
from workbench.lake.reader import open_lake

Gate = Callable[..., "CompletedProcess[str]"]
SAMPLE = (str(DATA / "refunds.csv"), "--map", str(DATA / "refunds.map.yaml"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An instance with the scope acme, whose chain is empty."""
    home = tmp_path / "home"
    assert run_gate("scopes", "create", "acme", "--home", str(home)).returncode == 0
    return home


@pytest.fixture
def gate(home: Path) -> Gate:
    """Runs `gate ...` against the instance of this test."""
    return lambda *arguments: run_gate(*arguments, "--home", str(home))


def printed(done: CompletedProcess[str], code: int = 0) -> Any:
    """What a command printed as JSON."""
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout if code < 2 else done.stderr)


def importing(gate: Gate, *more: str, name: str = "past") -> CompletedProcess[str]:
    return gate("history", "import", *SAMPLE, "--scope", "acme", "--name", name, *more)


def test_a_rehearsal_shows_what_each_column_is_and_writes_nothing(gate: Gate, home: Path) -> None:
    done = importing(gate, "--check")
    assert done.returncode == 0
    assert "facts.final_sale" in done.stdout
    assert "240 rows read, 240 rows understood, decided from 2024-01-10 to 2025-04-14." in done.stdout
    assert not (home / "lake" / "history").exists()
    body = printed(importing(gate, "--check", "--json"))
    cost = next(of for of in body["columns"] if of["member"] == "metrics.refund_cost")
    assert (cost["column"], cost["type"], cost["values"], cost["absent"]) == ("refund_cost", "number", 191, 49)
    assert len(cost["examples"]) == 3
    assert "6.13 to 395.19" in done.stdout
    assert (cost["least"], cost["greatest"], body["warnings"]) == (6.13, 395.19, [])
    assert (body["checked"], body["imported"]) == (True, False)


def test_an_import_is_listed_verified_and_removed(gate: Gate) -> None:
    body = printed(importing(gate, "--json"))
    again = printed(importing(gate, "--json"))
    assert (body["already"], again["already"]) == (False, True)
    listed = printed(gate("history", "list", "--json"))["histories"]
    assert [(of["scope"], of["name"], of["rows"], of["history_hash"]) for of in listed] == [
        ("acme", "past", 240, body["history_hash"])
    ]
    assert "past" in gate("history", "list", "--scope", "acme").stdout
    assert printed(gate("lake", "verify", "--json"))["histories"][0]["whole"]
    actions = [of["action"] for of in printed(gate("log", "--json"))["entries"]]
    assert actions.count("history.imported") == 1
    assert gate("history", "remove", "past", "--scope", "acme").returncode == 0
    assert printed(gate("history", "list", "--json")) == {"histories": []}
    assert printed(gate("history", "remove", "past", "--scope", "acme", "--json"), 2)["error"] == "HISTORY_UNKNOWN"


def test_refused_rows_are_shown_written_and_stop_the_import(gate: Gate, tmp_path: Path) -> None:
    rows = [("a", "2024-01-01", "1"), ("b", "tomorrow", "1"), ("c", "2024-01-01", "=1+1\x1b[2J")]
    file, map_, refused = write_csv(tmp_path / "x.csv", rows), tmp_path / "map.json", tmp_path / "refused.jsonl"
    map_.write_text(json.dumps(small_map()))
    command = ("history", "import", str(file), "--map", str(map_), "--scope", "acme", "--name", "x")
    done = gate(*command, "--refused", str(refused))
    assert done.returncode == 1
    assert "Nothing was imported, because rows were refused" in done.stdout
    assert "1 refused in when: It does not match the format date, for example 2024-06-30." in done.stdout
    assert "The refused rows:" in done.stdout
    assert "\x1b" not in done.stdout
    told = [json.loads(line) for line in refused.read_text().splitlines()]
    assert [(of["file"], of["row"], of["line"], of["column"]) for of in told] == [
        ("x.csv", 2, 3, "when"),
        ("x.csv", 3, 4, "n"),
    ]
    assert told[1]["value"].startswith("'=1+1\\x1b")
    assert printed(gate(*command, "--allow-refused", "--json"))["rows"] == 1


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "the files have no rows. Give files with past cases."),
        ([("a", "tomorrow", "1")], "no row was understood. Correct the files or the map."),
    ],
)
def test_an_import_without_a_row_that_is_understood_is_refused(
    gate: Gate, home: Path, tmp_path: Path, rows: list[tuple[str, str, str]], why: str
) -> None:
    file, map_ = write_csv(tmp_path / "x.csv", rows), tmp_path / "map.json"
    map_.write_text(json.dumps(small_map()))
    command = ("history", "import", str(file), "--map", str(map_), "--scope", "acme", "--name", "x")
    for more in ([], ["--allow-refused"]):
        checked = gate(*command, *more, "--check")
        assert (checked.returncode, checked.stdout.splitlines()[-1]) == (1, f"An import would be refused: {why}")
        done = gate(*command, *more)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (1, f"Nothing was imported: {why}")
        assert printed(gate(*command, *more, "--check", "--json"), 1)["import_would"] == "refuse_empty"
    assert printed(gate("history", "list", "--json")) == {"histories": []}
    assert not [file for file in (home / "lake" / "history").rglob("*") if file.name.endswith((".json", ".parquet"))]


def test_a_rehearsal_says_what_an_import_would_do(gate: Gate, tmp_path: Path) -> None:
    file, map_ = tmp_path / "x.csv", tmp_path / "map.json"
    map_.write_text(json.dumps(small_map()))
    command = ("history", "import", str(file), "--map", str(map_), "--scope", "acme", "--name", "x")

    def said(*more: str, code: int = 0) -> tuple[str, str]:
        done = gate(*command, "--check", *more)
        assert done.returncode == code, done.stdout
        body = printed(gate(*command, "--check", "--json", *more), code)
        *_, nothing, last = done.stdout.splitlines()
        assert nothing == "Nothing was written."
        return body["import_would"], last

    write_csv(file, [("a", "2024-01-01", "1"), ("b", "tomorrow", "1")])
    would, last = said(code=1)
    assert (would, "would be refused, because rows are refused" in last) == ("refuse_rows", True)
    assert said("--allow-refused") == ("import", "An import would add 1 row.")
    assert gate(*command, "--allow-refused").returncode == 0
    would, last = said()
    assert (would, "would do nothing: the history x of acme already has these files" in last) == ("nothing", True)
    write_csv(file, [("c", "2024-01-01", "1")])
    would, last = said(code=1)
    assert (would, "acme already has another history named x." in last) == ("refuse_name", True)
    assert said("--name", "y") == ("import", "An import would add 1 row.")


def test_a_map_with_an_unknown_member_is_refused_by_its_path(gate: Gate, tmp_path: Path) -> None:
    map_ = tmp_path / "map.json"
    map_.write_text(json.dumps(small_map(colour="red")))
    file = write_csv(tmp_path / "x.csv", [])
    done = gate("history", "import", str(file), "--map", str(map_), "--scope", "acme", "--name", "x", "--json")
    body = printed(done, 2)
    assert (body["error"], body["errors"][0]["field"]) == ("HISTORY_MAP_INVALID", "colour")


def test_erased_rows_are_gone_and_their_ids_are_not_logged(gate: Gate) -> None:
    before = printed(importing(gate, "--json"))["history_hash"]
    body = printed(gate("history", "erase", "past", "R-0007", "R-0008", "--scope", "acme", "--json"))
    assert body["erased"] == 2
    assert body["history_hash"] != before
    assert printed(importing(gate, "--json"))["history_hash"] == body["history_hash"]
    assert "R-0007" not in gate("log", "--json").stdout
    again = gate("history", "erase", "past", "row:R-0007", "R-0008", "R-0008", "--scope", "acme")
    assert (again.returncode, again.stdout.splitlines()) == (
        0,
        ["2 rows of past had been erased before; nothing changed for them."],
    )
    one = gate("history", "erase", "past", "R-0007", "--scope", "acme")
    assert one.stdout.splitlines() == ["1 row of past had been erased before; nothing changed for it."]
    more = printed(gate("history", "erase", "past", "R-0007", "row:R-0009", "--scope", "acme", "--json"))
    assert (more["erased_now"], more["erased_before"], more["erased"]) == (1, 1, 3)
    actions = [of["action"] for of in printed(gate("log", "--json"))["entries"]]
    assert actions.count("history.rows_erased") == 2
    body = more
    wrong = printed(gate("history", "erase", "past", "R-9", "--scope", "acme", "--json"), 2)
    assert wrong["error"] == "HISTORY_ROW_UNKNOWN"


def test_a_damaged_history_is_found_by_lake_verify(gate: Gate, home: Path) -> None:
    importing(gate)
    file = next((home / "lake").glob("history/scope=*/past/facts-*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    done = gate("lake", "verify")
    assert done.returncode == 1
    assert "DAMAGED  history past of acme" in done.stdout
    assert "import its files again, or restore it from a backup" in done.stdout


def test_a_backup_holds_the_histories_of_an_instance(gate: Gate, tmp_path: Path, home: Path) -> None:
    found = printed(importing(gate, "--json"))["history_hash"]
    assert gate("backup", str(tmp_path / "backup")).returncode == 0
    other = tmp_path / "other"
    assert run_gate("restore", str(tmp_path / "backup"), "--home", str(other)).returncode == 0
    verified = printed(run_gate("lake", "verify", "--home", str(other), "--json"))
    assert [of["whole"] for of in verified["histories"]] == [True]
    listed = printed(run_gate("history", "list", "--home", str(other), "--json"))["histories"]
    assert [of["history_hash"] for of in listed] == [found]
    one, same = (open_lake(of / "lake").scope("acme").history("past").cases().collect() for of in (home, other))
    assert one.equals(same)


def test_a_lake_that_is_made_anew_keeps_the_histories(gate: Gate, home: Path) -> None:
    importing(gate)
    assert gate("lake", "export").returncode == 0
    assert open_lake(home / "lake").scope("acme").histories == ["past"]


def test_a_migration_is_tried_on_imported_cases_and_not_proposed_by_them(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing(gate)
    monkeypatch.chdir(tmp_path)
    candidate = tmp_path / "refund_policy.json"
    candidate.write_bytes((DATA.parent / "rulebooks" / "refund_policy.json").read_bytes())
    made = gate("migrate", "new", "refunds-first", "--candidate", str(candidate))
    assert made.returncode == 0, made.stderr
    manifest = next(path for path in tmp_path.glob("refunds-first*") if path.is_file())
    done = gate("migrate", "dry-run", str(manifest), "--scope", "acme", "--history", "past", "--report", "report.html")
    assert done.returncode in (0, 1), done.stderr
    assert "These are imported cases of the history past" in done.stdout
    assert "migrate propose" not in done.stdout
    assert "imported history of refund_policy" in Path("report.html").read_text()
    unknown = gate("migrate", "dry-run", str(manifest), "--scope", "acme", "--history", "none", "--json")
    assert printed(unknown, 2)["error"] == "HISTORY_UNKNOWN"


def test_a_what_if_over_cases_without_verdicts_says_what_the_version_would_decide(gate: Gate, tmp_path: Path) -> None:
    map_ = tmp_path / "map.yaml"
    text = (DATA / "refunds.map.yaml").read_text(encoding="utf-8")
    map_.write_text(
        "".join(
            part for part in text.splitlines(keepends=True) if "handled" not in part and "paid" not in part
        ).replace("verdict:\n", ""),
        encoding="utf-8",
    )
    command = ("history", "import", SAMPLE[0], "--map", str(map_), "--scope", "acme", "--name", "past")
    assert gate(*command).returncode == 0
    rulebook = DATA.parent / "rulebooks" / "refund_policy.json"
    assert gate("rulebook", "register", str(rulebook), "--scope", "acme").returncode == 0
    version = json.loads(rulebook.read_bytes())["version"]
    asked = (
        "whatif",
        "refund_policy",
        "--by",
        version,
        "--scope",
        "acme",
        "--history",
        "past",
        "--metric",
        "refund_cost",
    )
    done = gate(*asked)
    assert done.returncode == 0, done.stderr
    assert "The file has no verdicts; this version would decide " in done.stdout
    assert "would get another verdict" not in done.stdout
    rows = printed(gate(*asked, "--json"))["verdicts"]
    assert {of["verdict"] for of in rows} == {"none"}
    assert sum(of["decisions"] for of in rows) == 240
    assert sum(of["worth"][0]["values"] for of in rows) == 191
