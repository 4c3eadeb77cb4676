"""Files that are sent from a page go with the process that took them, also where it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gate.errors import OperatorError
from tests.workbench.dashboard.serving import served
from tests.workbench.support import Shared
from workbench.dashboard.studio.uploads import Upload, remove_abandoned

_TAKES = """
import sys
from workbench.dashboard.studio.uploads import Upload
upload = Upload.begin("cases.csv")
upload.add(0, b"a,b")
print(upload.file, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files that are sent lie, for this process and those that it starts."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@contextmanager
def taking() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that took a file, and the file."""
    command = [sys.executable, "-c", _TAKES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_file_of_a_process_that_was_killed_is_removed_and_one_of_a_process_that_runs_stays() -> None:
    with taking() as (killed, left), taking() as (_, theirs):
        remove_abandoned()
        assert left.read_bytes() == theirs.read_bytes() == b"a,b"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        remove_abandoned()
        assert not left.parent.exists()
        assert theirs.read_bytes() == b"a,b"


def test_a_dashboard_removes_at_its_start_what_was_left(decided: Shared, place: Path) -> None:
    left = place / "gate-upload-left"
    left.mkdir()
    (left / "cases.csv").write_text("a,b")
    with served(decided.instance):
        assert not left.exists()


def test_nothing_else_is_removed(place: Path) -> None:
    mine = Upload.begin("cases.csv")
    for name in ("gate-uploads", "other"):
        (place / name).mkdir()
    (place / "gate-upload-file").write_text("no folder")
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "kept.csv").write_text("kept")
    (place / "gate-upload-link").symlink_to(place / "elsewhere")
    before = sorted(os.walk(place))
    remove_abandoned()
    assert sorted(os.walk(place)) == before
    mine.remove()
    assert not mine.file.parent.exists()


def test_a_folder_that_is_removed_before_its_file_is_there_is_made_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = tempfile.mkdtemp

    def mkdtemp(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            remove_abandoned()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    upload = Upload.begin("cases.csv")
    upload.add(0, b"a")
    assert [Path(each).exists() for each in made] == [False, True]
    assert upload.file.read_bytes() == b"a"
    upload.remove()


def test_a_piece_that_comes_after_its_sender_left_is_refused() -> None:
    upload = Upload.begin("cases.csv")
    upload.remove()
    # As often as the page is left.
    upload.remove()
    with pytest.raises(OperatorError) as refused:
        upload.add(0, b"a")
    assert refused.value.code == "UPLOAD_BROKEN"
