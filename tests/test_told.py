"""A test process reports whatever does not pass: a call, or the fixtures before and after it."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest

from tests.support import told


def test_what_fails_or_is_skipped_is_told_wherever_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [
        SimpleNamespace(when=when, outcome=outcome, passed=outcome == "passed")
        for when, outcome in product(("setup", "call", "teardown"), ("passed", "failed", "skipped"))
    ]
    monkeypatch.setattr(told, "runtestprotocol", lambda item, *, log, nextitem: [] if log else reports)
    heard = []
    item = SimpleNamespace(ihook=SimpleNamespace(pytest_runtest_logreport=lambda report: heard.append(report)))
    assert told._Short.pytest_runtest_protocol(item, None) is True  # type: ignore[arg-type]
    assert [report for report in reports if report not in heard] == [reports[0], reports[6]]
