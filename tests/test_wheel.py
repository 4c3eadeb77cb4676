"""The wheel holds the packages and what they read, and what is installed from it finds that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tarfile import TarFile
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")  # noqa: S202 - of our own making
    return folder / "installed"


def files(folder: Path, pattern: str = "*") -> set[str]:
    """The files of a folder, as its paths name them."""
    found = (file.relative_to(folder) for file in folder.rglob(pattern) if file.is_file())
    return {str(file) for file in found if "__pycache__" not in file.parts}


def test_it_holds_the_three_packages_and_no_folder_beside_them(unpacked: Path) -> None:
    assert {entry.name for entry in unpacked.iterdir() if not entry.name.endswith(".dist-info")} == {
        "gate",
        "workbench",
        "api",
    }
    for package in ("gate", "workbench", "api"):
        assert files(unpacked / package, "*.py") >= files(ROOT / package, "*.py")


def test_it_carries_the_license(unpacked: Path) -> None:
    (about,) = unpacked.glob("*.dist-info")
    assert "License-Expression: MIT\n" in (about / "METADATA").read_text()
    assert (about / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_source_distribution_carries_the_license(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with TarFile.open(sdist) as archive:
        (license_file,) = [name for name in archive.getnames() if name.split("/")[1:] == ["LICENSE"]]
        held = archive.extractfile(license_file)
        assert held is not None
        assert held.read() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize(("folder", "pattern"), [("schemas", "*"), ("data", "*"), ("notebooks", "*.py")])
def test_its_resources_are_the_files_of_the_checkout(unpacked: Path, folder: str, pattern: str) -> None:
    shipped = unpacked / "gate" / "resources" / folder
    assert files(shipped) == files(ROOT / folder, pattern)
    for name in files(shipped):
        assert (shipped / name).read_bytes() == (ROOT / folder / name).read_bytes()


def test_the_command_finds_its_notebooks_where_it_is_installed(unpacked: Path, tmp_path: Path) -> None:
    code = "import sys, gate; from api.cli.main import main; print(gate.__file__, file=sys.stderr); main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "notebook", "--list", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == str(unpacked / "gate" / "__init__.py")
    listed = {each["notebook"] for each in json.loads(done.stdout)["notebooks"]}
    assert listed == {file.stem for file in (ROOT / "notebooks").glob("*.py")}
