"""The bill of materials is valid CycloneDX, and lists what the lock says and nothing else."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gate import __version__
from tests.release.bill import NEEDED_BY, bill_of_materials
from tests.release.packages import direct, lock, runtime

AT = datetime(2026, 6, 11, tzinfo=UTC)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a release."""
    file = tmp_path_factory.mktemp("dist") / "decision_gate.whl"
    file.write_bytes(b"a wheel")
    return file


@pytest.fixture(scope="module")
def text(wheel: Path) -> str:
    """The bill of the installed environment, which is validated as it is made."""
    return bill_of_materials(runtime(), [wheel], AT)


@pytest.fixture(scope="module")
def bill(text: str) -> dict[str, Any]:
    """The same, parsed."""
    document: dict[str, Any] = json.loads(text)
    return document


def test_it_is_cyclonedx_about_this_release(bill: dict[str, Any], wheel: Path) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    product = bill["metadata"]["component"]
    assert (product["name"], product["version"]) == ("decision-gate", __version__)
    (made_on,) = bill["metadata"]["properties"]
    assert made_on["value"] == f"Python {sys.version_info.major}.{sys.version_info.minor}, {sys.platform}"
    (reference,) = product["externalReferences"]
    assert reference["url"] == wheel.name
    assert reference["hashes"] == [{"alg": "SHA-256", "content": sha256(b"a wheel").hexdigest()}]


def test_each_component_is_as_the_lock_says_and_has_a_license(bill: dict[str, Any]) -> None:
    locked = lock()
    assert {component["name"] for component in bill["components"]} == runtime().keys()
    for component in bill["components"]:
        name = component["name"]
        assert component["version"] == locked[name].version
        assert component["purl"] == f"pkg:pypi/{name}@{locked[name].version}"
        (reference,) = component["externalReferences"]
        assert {each["content"] for each in reference["hashes"]} == set(locked[name].hashes)
        assert component["licenses"], name
        parts = {each["value"] for each in component["properties"] if each["name"] == NEEDED_BY}
        assert parts
        assert parts <= {"base", "server", "workbench"}


def test_every_component_is_reached_from_the_product(bill: dict[str, Any]) -> None:
    needs = {each["ref"]: set(each.get("dependsOn", [])) for each in bill["dependencies"]}
    assert needs["decision-gate"] == direct()
    reached, waiting = set(), ["decision-gate"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(needs[name])
    assert reached == {"decision-gate", *(component["name"] for component in bill["components"])}


def test_the_same_release_has_the_same_bill(text: str, wheel: Path) -> None:
    assert bill_of_materials(runtime(), [wheel], AT) == text
