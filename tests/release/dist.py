"""Builds what a release publishes into dist/, and checks it: the wheel, the source distribution, the bill of materials.

The wheel is built from the unpacked source distribution, which shows that this holds all that a build needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from tests.release.bill import bill_of_materials
from tests.release.licenses import EXCEPTIONS, forbidden, license_of, refused, words_of
from tests.release.packages import ROOT, NotAsLocked, development, runtime

DIST: Final = ROOT / "dist"
BILL: Final = "sbom.cdx.json"
PACKAGES: Final = {"gate", "workbench", "api"}
ADDED: Final = {"PKG-INFO"}
"""What a source distribution has and the repository has not."""


def make_dist() -> int:
    """Builds and checks a release; 1 where something is wrong with it, which is then printed."""
    try:
        needed, others = runtime(), development()
    except NotAsLocked as error:
        return _fail([str(error)])
    if wrong := [*refused({name: each.installed for name, each in needed.items()}), *forbidden(others)]:
        return _fail(wrong)
    DIST.mkdir(exist_ok=True)
    for file in [*DIST.glob("decision_gate-*"), DIST / BILL]:
        file.unlink(missing_ok=True)
    sdist, wheel = build(DIST)
    (DIST / BILL).write_text(bill_of_materials(needed, [sdist, wheel], moment()))
    for file in (sdist, wheel, DIST / BILL):
        _say(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.1f} MB")
    _say(f"\nLicenses of the {len(needed)} packages that the product runs on:")
    for name, package in needed.items():
        reason = f"  (allowed: {EXCEPTIONS[name].reason})" if name in EXCEPTIONS else ""
        _say(f"  {name} {package.locked.version}: {license_of(package.installed)}{reason}")
    _say(f"\nLicenses of the {len(others)} packages that only development needs:")
    for name, installed in others.items():
        _say(f"  {name} {installed.version}: {words_of(installed)}")
    return _fail([*misfits_of_sdist(sdist), *misfits_of_wheel(wheel)])


def build(folder: Path) -> tuple[Path, Path]:
    """Builds the source distribution, and from it the wheel.

    Args:
        folder: Where both are put.

    Returns:
        Their paths.
    """
    _hatchling("sdist", ROOT, folder)
    (sdist,) = folder.glob("decision_gate-*.tar.gz")
    with TemporaryDirectory() as directory, tarfile.open(sdist) as archive:
        archive.extractall(directory, filter="data")
        _hatchling("wheel", Path(directory) / sdist.name.removesuffix(".tar.gz"), folder)
    (wheel,) = folder.glob("decision_gate-*.whl")
    return sdist, wheel


def files_of_sdist(sdist: Path) -> set[str]:
    """The paths in a source distribution, without its folder."""
    with tarfile.open(sdist) as archive:
        return {entry.name.partition("/")[2] for entry in archive if entry.isfile()}


def misfits_of_sdist(sdist: Path) -> list[str]:
    """What a source distribution holds or lacks, compared with the files under version control."""
    held, tracked = files_of_sdist(sdist) - ADDED, tracked_files()
    if tracked is None:
        return []
    return [
        *(f"{sdist.name} holds {name}, which is not under version control." for name in sorted(held - tracked)),
        *(f"{sdist.name} lacks {name}." for name in sorted(tracked - held)),
    ]


def misfits_of_wheel(wheel: Path) -> list[str]:
    """What a wheel holds and should not."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    about = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    strange = [name for name in names if name.partition("/")[0] not in PACKAGES | {about} or name.endswith(".pyc")]
    return [f"{wheel.name} holds {name}." for name in sorted(strange)]


def tracked_files() -> set[str] | None:
    """The files under version control; None where this is no checkout."""
    if not (ROOT / ".git").exists():
        return None
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(filter(None, listed.stdout.split("\0")))


def moment() -> datetime:
    """The date of the release: SOURCE_DATE_EPOCH, or the last commit's, or now."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return datetime.fromtimestamp(int(epoch), UTC)
    if (ROOT / ".git").exists():
        command = ["git", "log", "-1", "--format=%ct"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return datetime.fromtimestamp(int(told.stdout), UTC)
    return datetime.now(UTC)


def _hatchling(target: str, source: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)


def _fail(sentences: list[str]) -> int:
    sys.stderr.writelines(f"{sentence}\n" for sentence in sentences)
    return min(len(sentences), 1)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
