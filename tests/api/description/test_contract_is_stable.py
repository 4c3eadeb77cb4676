"""The served interface is the frozen one, and a frozen one takes nothing away from its callers."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.contract import __main__ as contract
from tests.contract.compatibility import breaks
from tests.contract.frozen import BASE_URL, current, frozen, text
from tests.support.samples import cases


def edited(edit: dict[str, Any]) -> dict[str, Any]:
    """The current document with one edit: {op: remove | set | append | rename, path, value?}."""
    document = copy.deepcopy(current())
    *outer, last = edit["path"]
    node: Any = document
    for step in outer:
        node = node[step]
    if edit["op"] == "remove":
        del node[last]
    elif edit["op"] == "append":
        node[last].append(edit["value"])
    elif edit["op"] == "rename":
        node[edit["value"]] = node.pop(last)
    else:
        node[last] = edit["value"]
    assert document != current()
    return document


def test_the_served_document_is_the_frozen_one(client: FlaskClient) -> None:
    served = client.get("/openapi.json").get_json()
    served["servers"][0]["url"] = BASE_URL
    told = text(served).replace("http://gate.example", BASE_URL)
    found = breaks(frozen(), json.loads(told))
    assert found == [], "Callers would break; give back what they were promised."
    same = told == text(frozen())
    assert same, "The interface has grown: look at what changed, and freeze it with `make contract`."


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases("contract_breaks")])
def test_what_breaks_a_caller_is_told_in_a_sentence(case: dict[str, Any]) -> None:
    assert case["says"] in breaks(current(), edited(case))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases("contract_additions")])
def test_what_breaks_no_caller_is_allowed(case: dict[str, Any]) -> None:
    assert breaks(current(), edited(case)) == []


def test_a_document_that_breaks_callers_is_not_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "openapi.json"
    promised = text(edited({"op": "set", "path": ["paths", "/api/promised"], "value": {"get": {}}}))
    file.write_text(promised, "utf-8")
    monkeypatch.setattr(contract, "FILE", file)
    monkeypatch.setattr(contract, "frozen", lambda: json.loads(promised))
    assert contract.main() == 1
    assert "The path /api/promised is gone." in capsys.readouterr().err
    assert file.read_text("utf-8") == promised


def test_a_document_that_only_grew_is_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "openapi.json"
    smaller = text(edited({"op": "remove", "path": ["paths", "/docs.json"]}))
    file.write_text(smaller, "utf-8")
    monkeypatch.setattr(contract, "FILE", file)
    monkeypatch.setattr(contract, "frozen", lambda: json.loads(smaller))
    assert contract.main() == 0
    assert file.read_text("utf-8") == text(current())
