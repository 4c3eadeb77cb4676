"""What a release publishes holds all that it needs, and nothing that lies around in a checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest
from trove_classifiers import classifiers

from gate import __version__
from tests.release.dist import ADDED, build, files_of_sdist, misfits_of_wheel, tracked_files
from tests.release.installs import VERSIONS
from tests.release.packages import ROOT, project

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def metadata(built: tuple[Path, Path]) -> Message:
    """The metadata for the package index."""
    with ZipFile(built[1]) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_the_source_distribution_holds_what_is_under_version_control(built: tuple[Path, Path]) -> None:
    tracked = tracked_files()
    if tracked is None:
        pytest.skip("this is no checkout")
    held = files_of_sdist(built[0]) - ADDED
    assert tracked - held == set()
    # A new file may not be added yet. `make dist` refuses it.
    assert {name.partition("/")[0] for name in held} == {name.partition("/")[0] for name in tracked}
    assert not [name for name in held if name.endswith((".pyc", ".db")) or "/node_modules/" in name]


def test_the_wheel_from_it_is_the_wheel_of_the_checkout(built: tuple[Path, Path], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == built[1].name == f"decision_gate-{__version__}-py3-none-any.whl"
    assert misfits_of_wheel(wheel) == []
    assert dict(contents(wheel)) == dict(contents(built[1]))


def test_the_index_is_told_the_version_the_pythons_and_known_classifiers(metadata: Message) -> None:
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"
    stated = metadata.get_all("Classifier", [])
    assert set(stated) <= classifiers
    assert {each.rpartition(" :: ")[2] for each in stated if " :: 3." in each} == set(VERSIONS)
    assert set(metadata.get_all("Provides-Extra", [])) == set(project()["optional-dependencies"])


def test_the_index_shows_the_readme_without_links_that_lead_nowhere(metadata: Message) -> None:
    text = str(metadata.get_payload())
    assert text.startswith("# Decision Gate")
    for line in text.splitlines():
        assert "](docs/" not in line
        assert "![" not in line
    # Code stays code.
    assert "json.tool build/record.json" in text


def contents(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a wheel."""
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)
