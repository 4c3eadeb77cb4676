"""The import of a history: resumable, idempotent, visible only when whole; erased rows stay erased."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from gate.encoding.canonical import canonical
from gate.errors import OperatorError
from tests.support.torture import size
from tests.workbench.history.importing import (
    NAME,
    SCOPE,
    SCOPE_ID,
    contents,
    imported,
    plan_of,
    sample_plan,
    small_map,
    write_csv,
)
from workbench.facts import columns_of, fact_series
from workbench.history import sets, upkeep
from workbench.history.importing import import_history, rehearse
from workbench.lake.lease import lease
from workbench.lake.reader import history_of, open_lake

ROWS = [(f"r{at}", "2024-01-01", str(at)) for at in range(1, 101)]


def test_the_same_files_and_map_are_the_same_history_and_are_imported_once(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    first = import_history(plan)
    before = contents(plan.directory)
    again = import_history(plan)
    assert first.found is not None
    assert again.already
    assert again.found == first.found
    assert contents(plan.directory) == before
    other = import_history(sample_plan(tmp_path / "other"))
    assert other.found is not None
    assert other.found.history_hash == first.found.history_hash
    assert contents(sample_plan(tmp_path / "other").directory) == before


def test_another_content_under_the_same_name_is_refused_until_it_is_removed(tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", write_csv(tmp_path / "past.csv", ROWS)
    import_history(plan_of(lake, [file]))
    other = small_map(policy_version="2023")
    with pytest.raises(OperatorError, match=r"different: map.*gate history remove past --scope acme") as error:
        import_history(plan_of(lake, [file], other))
    assert error.value.code == "HISTORY_EXISTS"
    upkeep.remove(lake, SCOPE_ID, SCOPE, NAME)
    assert not sets.names_of(lake, SCOPE_ID)
    assert imported(plan_of(lake, [file], other)).cases().collect()["policy_version"].unique().to_list() == ["2023"]


def test_files_are_one_history_in_their_order(tmp_path: Path) -> None:
    one, other = write_csv(tmp_path / "1.csv", ROWS[:60]), write_csv(tmp_path / "2.csv", [*ROWS[60:], ROWS[0]])
    forth = import_history(plan_of(tmp_path / "a", [one, other]), allow_refused=True)
    back = import_history(plan_of(tmp_path / "b", [other, one]), allow_refused=True)
    assert forth.found is not None
    assert back.found is not None
    assert forth.found.history_hash != back.found.history_hash
    assert forth.account is not None
    # The id of the last row of the second file is in the first one.
    assert [(of["file"], of["row"], of["code"]) for of in forth.account.shown] == [("2.csv", 41, "duplicate_id")]
    ids = history_of(tmp_path / "a", SCOPE_ID, SCOPE, NAME).cases().sort("position").collect()["decision_id"]
    assert ids.to_list() == [f"row:r{at}" for at in range(1, 101)]


def test_refused_rows_stop_an_import_unless_they_are_allowed(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "past.csv", [*ROWS, ("bad", "2024-01-01", "?")])
    plan = plan_of(tmp_path / "lake", [file])
    stopped = import_history(plan)
    assert stopped.found is None
    assert not plan.directory.exists()
    assert not plan.staging.exists()
    allowed = import_history(plan, allow_refused=True)
    assert allowed.found is not None
    assert (allowed.found.rows, allowed.found.refused) == (100, 1)


def test_a_rehearsal_writes_nothing(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    done = rehearse(plan)
    assert done.account is not None
    assert (done.account.read, done.account.refused) == (240, 0)
    assert not (tmp_path / "lake").exists()


def test_a_set_is_private_and_two_imports_of_a_scope_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.history.importing._PATIENCE", 0.0)
    plan = sample_plan(tmp_path / "lake")
    with lease(plan.directory.parent, patience=0), pytest.raises(OperatorError) as error:
        import_history(plan)
    assert error.value.code == "LAKE_BUSY"
    import_history(plan)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in plan.directory.iterdir()}
    assert (modes, stat.S_IMODE(plan.directory.stat().st_mode)) == ({0o600}, 0o700)


@pytest.mark.parametrize("name", ["Past", "", "../x", "past/x", "-x", ".x", "a" * 81, "past\n"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(OperatorError) as error:
        sets.require_name(name)
    assert error.value.code == "HISTORY_NAME_INVALID"


# --- Killed in the middle ---------------------------------------------------------------------------------------------

IMPORT = """
import sys
from pathlib import Path
from tests.workbench.history.importing import plan_of
from workbench.history import csv_source
from workbench.history.importing import import_history
csv_source.MAX_ROWS = 200
done = import_history(plan_of(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]), allow_refused=True)
print(done.resumed, done.found.history_hash)
"""


def command(lake: Path, *files: Path) -> list[str]:
    return [sys.executable, "-c", IMPORT, str(lake), *map(str, files)]


@pytest.mark.heavy
def test_an_import_that_is_killed_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    rows = [(f"r{at % 9_900}", "2024-01-01", str(at)) for at in range(10_000)]
    files = [write_csv(tmp_path / "1.csv", rows[:6_000]), write_csv(tmp_path / "2.csv", rows[6_000:])]
    whole = subprocess.run(command(tmp_path / "whole", *files), capture_output=True, text=True, check=True)
    lake = tmp_path / "killed"
    plan = plan_of(lake, files)
    for _ in range(size(3, 30)):
        child = subprocess.Popen(command(lake, *files), stdout=subprocess.DEVNULL)
        before = len(list(plan.staging.glob("stretch-*.json")))
        deadline = time.monotonic() + 60
        while len(list(plan.staging.glob("stretch-*.json"))) < before + random.randint(1, 8):  # noqa: S311
            if child.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.002)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        if not plan.directory.exists():
            assert not sets.names_of(lake, SCOPE_ID)
    done = subprocess.run(command(lake, *files), capture_output=True, text=True, check=True)
    resumed, found = done.stdout.split()
    assert int(resumed) > 0
    assert found == whole.stdout.split()[1]
    assert contents(plan.directory) == contents(plan_of(tmp_path / "whole", files).directory)
    assert not plan.staging.exists()


# --- Erasing ----------------------------------------------------------------------------------------------------------


def test_an_erased_row_is_gone_from_every_file_and_stays_gone(tmp_path: Path) -> None:
    lake, secret = tmp_path / "lake", "Erika Mustermann"
    file = write_csv(tmp_path / "past.csv", [*ROWS, ("r101", "2024-01-01", secret)])
    plan = plan_of(lake, [file], small_map(facts={"who": {"column": "n", "type": "string"}}))
    before = import_history(plan).found
    erased = upkeep.erase(lake, SCOPE_ID, SCOPE, NAME, ["r101", "r7"]).found
    assert before is not None
    assert erased.history_hash != before.history_hash
    assert erased.erased == ("r101", "r7")
    history = history_of(lake, SCOPE_ID, SCOPE, NAME)
    assert history.cases().collect().height == 99
    assert not any(secret.encode() in content for content in contents(plan.directory).values())
    assert not list(upkeep.faults(lake, erased))
    assert import_history(plan).found == erased
    # Files that were lost are made again, without them.
    (lake / erased.files[0].path).unlink()
    again = import_history(plan).found
    assert again is not None
    assert again.history_hash == erased.history_hash
    assert history_of(lake, SCOPE_ID, SCOPE, NAME).cases().collect().height == 99


def test_no_row_is_erased_where_one_of_them_is_not_there(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    plan = plan_of(lake, [write_csv(tmp_path / "past.csv", ROWS)])
    import_history(plan)
    before = contents(plan.directory)
    with pytest.raises(OperatorError, match="nothing was erased") as error:
        upkeep.erase(lake, SCOPE_ID, SCOPE, NAME, ["r1", "r1000"])
    assert error.value.code == "HISTORY_ROW_UNKNOWN"
    assert contents(plan.directory) == before


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    found = import_history(plan).found
    assert found is not None
    file = plan.lake / found.files[0].path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert "was changed or damaged after it was written" in "".join(upkeep.faults(plan.lake, found))


def test_a_changed_manifest_is_refused_with_what_to_do(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    import_history(plan)
    manifest = plan.directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"rows": 240', '"rows": 241'))
    with pytest.raises(OperatorError, match="restore it from a backup") as error:
        history_of(plan.lake, SCOPE_ID, SCOPE, NAME)
    assert error.value.code == "HISTORY_MANIFEST_INVALID"


# --- What is stored ---------------------------------------------------------------------------------------------------


def test_facts_stand_in_the_same_columns_as_those_of_decisions(tmp_path: Path) -> None:
    cells = ["1", "-0", "0.1", "1e-7", "123456789.125", "1e21", "5e-324", "9007199254740991", ""]
    texts = ["", 'a "quoted" \\ text', "line\nbreak", "\x01", "café", "\u2028", "=1+1", "null", "x" * 300]
    file = write_csv(
        tmp_path / "past.csv",
        [(f"r{at}", "2024-01-01", of, texts[at]) for at, of in enumerate(cells)],
        header=("id", "when", "n", "t"),
    )
    facts = {"b.n": {"column": "n", "type": "number"}, "b.a.t": {"column": "t", "type": "string"}}
    history = imported(plan_of(tmp_path / "lake", [file], small_map(facts=facts)))
    rows = history.facts(["b.n", "b.a.t"]).sort("position").collect()
    inputs = [json.loads(of) for of in rows["inputs"]]
    assert rows["inputs"].to_list() == [canonical(of).decode() for of in inputs]
    expected = []
    for number, text in zip(cells, texts, strict=True):
        within = {**({"a": {"t": text}} if text else {}), **({"n": float(number)} if number else {})}
        expected.append({"b": within} if within else {})
    assert inputs == expected
    assert rows.select(*columns_of("b.n"), *columns_of("b.a.t")).equals(
        pl.DataFrame(fact_series(inputs, ["b.n", "b.a.t"]))
    )


def test_personal_facts_and_metrics_are_left_out(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "past.csv", [("a", "2024-01-01", "12345")])
    map_ = small_map(metrics={"cost": {"column": "n"}})
    plan = plan_of(tmp_path / "lake", [file], map_, personal=("inputs.n", "observed_metrics"))
    history = imported(plan)
    facts = history.facts(["n"]).collect()
    assert facts["inputs"].to_list() == ["{}"]
    assert facts["n:type"].to_list() == ["withheld"]
    assert history.metrics().collect().is_empty()
    assert history.cases().collect()["decision_id"].to_list() == ["row:a"]


def test_a_scope_without_a_chain_in_the_lake_has_its_histories(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path / "lake")
    import_history(plan)
    lake = open_lake(plan.lake)
    assert lake.scopes == [SCOPE]
    scope = lake.scope(SCOPE)
    assert (scope.position, scope.histories, scope.imported) == (0, [NAME], None)
    history = scope.history(NAME)
    assert (history.position, history.merkle_root) == (240, None)
    assert history.imported is not None
    assert (history.imported.name, history.imported.rows) == (NAME, 240)
    with pytest.raises(OperatorError, match="There is 'past'") as error:
        scope.history("pasr")
    assert error.value.code == "HISTORY_UNKNOWN"
    shutil.rmtree(plan.lake / "history")
    with pytest.raises(OperatorError):
        open_lake(plan.lake)


def test_an_id_that_may_mean_two_rows_erases_neither(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    rows = [("1", "2024-01-01", "1"), ("row:1", "2024-01-01", "2"), ("row:2", "2024-01-01", "3")]
    imported(plan_of(lake, [write_csv(tmp_path / "past.csv", rows)]))
    with pytest.raises(OperatorError, match=r"Write 'row:row:1' for the row with this id, or '1' for the other one"):
        upkeep.erase(lake, SCOPE_ID, SCOPE, NAME, ["row:1"])
    done = upkeep.erase(lake, SCOPE_ID, SCOPE, NAME, ["row:row:1", "row:2"])
    assert (done.now, done.before, done.found.erased) == (("row:1", "row:2"), (), ("row:1", "row:2"))
    assert upkeep.erase(lake, SCOPE_ID, SCOPE, NAME, ["row:2"]).before == ("row:2",)
    assert history_of(lake, SCOPE_ID, SCOPE, NAME).cases().collect()["decision_id"].to_list() == ["row:1"]
