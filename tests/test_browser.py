"""Where there is no Chromium, tests that look at pages are skipped, and in continuous integration they fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parent / "support" / "browser.sh"


@pytest.mark.parametrize(("required", "code"), [("", 0), ("1", 1)])
def test_without_a_browser_the_target_fails_where_one_is_required(tmp_path: Path, required: str, code: int) -> None:
    # Someone who is not root cannot install one.
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", _SCRIPT],
        env={"PATH": str(tmp_path), "GATE_BROWSER": "no-such-browser", "GATE_REQUIRE_BROWSER": required},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (code, "")
    assert ran.stdout.startswith("No Chromium")
    assert "Install chromium" in ran.stdout


@pytest.mark.parametrize(("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_without_a_browser_a_test_fails_where_one_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    from tests.support.browser import no_browser

    monkeypatch.setitem(os.environ, "GATE_REQUIRE_BROWSER", required)
    with pytest.raises(outcome, match="no Chromium"):
        no_browser()
