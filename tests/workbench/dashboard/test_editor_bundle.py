"""The editor that the dashboard serves is what its sources build."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import workbench

DASHBOARD = Path(workbench.__file__).parent / "dashboard"
EDITOR = DASHBOARD / "editor"
BUNDLE = DASHBOARD / "app" / "assets" / "editor.js"


def test_the_bundle_is_that_of_its_sources() -> None:
    sources = ("build.mjs", "editor.js", "package-lock.json", "package.json")
    made = hashlib.sha256(b"".join((EDITOR / name).read_bytes() for name in sources)).hexdigest()
    first = BUNDLE.read_text(encoding="utf-8").partition("\n")[0]
    assert made in first, "In workbench/dashboard/editor, run `npm ci && npm run build`."


def test_every_version_is_exact_and_no_host_is_named() -> None:
    package = json.loads((EDITOR / "package.json").read_text())
    assert all(of[0].isdigit() for part in ("dependencies", "devDependencies") for of in package[part].values())
    lock = (EDITOR / "package-lock.json").read_text()
    assert "://" not in lock.replace("https://github.com/sponsors", "").replace("https://opencollective.com", "")
    assert all("integrity" in of for name, of in json.loads(lock)["packages"].items() if name)


def test_the_licenses_of_what_it_holds_go_along() -> None:
    notices = (DASHBOARD / "app" / "assets" / "editor.licenses.txt").read_text()
    for name in json.loads((EDITOR / "package.json").read_text())["dependencies"]:
        assert f"\n{name} " in f"\n{notices}"
    assert notices.count("Permission is hereby granted, free of charge") >= 10
