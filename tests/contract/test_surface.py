"""Nothing that a release promises by name is taken away, and what is added is promised from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract import surface
from tests.contract.surface import current, freeze, frozen, taken_away


def test_what_was_promised_is_there_and_what_is_there_is_promised() -> None:
    assert taken_away(frozen(), current()) == []
    assert frozen() == current(), "`make contract` adds what is new to tests/contract/surface.txt."


def test_each_kind_of_name_is_promised() -> None:
    for line in (
        "command gate verify --registry",
        "command gate verify ARGUMENT",
        "lake cases.decision_id String",
        "metric gate_decisions status verdict",
        "metric gate_ready",
        "python gate.client.Client",
        "python workbench.open_lake",
        "setting database_url",
    ):
        assert line in current()


def test_a_promise_that_is_not_kept_is_not_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "surface.txt"
    promised = "lake cases.decision_id Int64\n"
    file.write_text(promised)
    monkeypatch.setattr(surface, "FILE", file)
    assert freeze() == 1
    assert file.read_text() == promised
    file.write_text("python gate.client.Client\n")
    assert freeze() == 0
    assert file.read_text().splitlines() == current()
