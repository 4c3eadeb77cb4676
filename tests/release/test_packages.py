"""The lock is read as pip reads it, and the environment holds what it says."""

from __future__ import annotations

import re
import sys

from packaging.utils import canonicalize_name

from gate import __version__
from tests.release.packages import ROOT, development, direct, entries, lock, project, runtime


def test_every_package_of_the_lock_is_read_with_its_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text()
    found = list(entries(text))
    stated = re.findall(r"^(\S+)==(\S+)", text, flags=re.MULTILINE)
    assert [(name, each.version) for name, _, each in found] == [
        (canonicalize_name(name), version) for name, version in stated
    ]
    assert sum(len(each.hashes) for _, _, each in found) == text.count("--hash=sha256:")
    assert sum(bool(marker) for _, marker, _ in found) == len(re.findall(r"^\S+==\S+ ; ", text, flags=re.MULTILINE))


def test_a_package_for_another_platform_is_left_out() -> None:
    assert "appnope" in {name for name, _, _ in entries((ROOT / "requirements.lock").read_text())}
    assert ("appnope" in lock()) is (sys.platform == "darwin")


def test_the_product_runs_on_what_it_asks_for_and_development_has_the_rest() -> None:
    needed, others = runtime(), development()
    assert direct() <= needed.keys()
    assert needed.keys() | others.keys() == lock().keys()
    assert not needed.keys() & others.keys()
    # What only tests and notebooks import.
    assert not needed.keys() & {"pytest", "jupyterlab", "hypothesis", "playwright", "ruff"}
    for package in needed.values():
        assert package.requires <= needed.keys()


def test_there_is_one_version() -> None:
    assert "version" in project()["dynamic"]
    for example in ("runtime-config", "status", "status-degraded"):
        assert f'"version": "{__version__}"' in (ROOT / "schemas" / "examples" / f"{example}.json").read_text()
