"""The registered adapters: what their manifests say, that both files are the released ones, and what is found of it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gate.adapters import registry
from gate.adapters.containment import MEASURES
from gate.adapters.manifest import Adapter, load_adapter, manifest_hash
from gate.adapters.registry import BUILTIN, find_adapter, registered
from gate.encoding import resources
from gate.errors import OperatorError
from tests.gate.adapters.seal import main, seal
from tests.independent import verifier
from tests.support.adapters import cases_of, registered_as

ADAPTERS = pytest.mark.parametrize("adapter", registered(), ids=lambda adapter: adapter.name)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a schema that describes an object, at any depth."""
    if isinstance(schema, dict):
        if "object" in schema.get("type", ()) or "properties" in schema:
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def typed(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every part of a schema that describes a value, at any depth."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from typed(part)
    if "items" in schema:
        yield from typed(schema["items"])


def test_every_release_of_an_adapter_is_frozen() -> None:
    """What was released once makes the same facts for ever: a change needs a version of its own."""
    frozen = {case["name"]: (case["manifest_hash"], case["implementation_hash"]) for case in cases_of("frozen")}
    assert frozen == {
        adapter.name: (adapter.manifest_hash, adapter.manifest["implementation_hash"]) for adapter in registered()
    }


@ADAPTERS
def test_a_manifest_follows_its_schema(adapter: Adapter) -> None:
    schema = resources.schema("trusted-adapter-manifest")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(adapter.manifest)


@ADAPTERS
def test_both_hashes_are_those_of_the_files(adapter: Adapter) -> None:
    file = BUILTIN / adapter.name.replace("@", "-")
    manifest = json.loads(file.with_name(f"{file.name}.json").read_bytes())
    source = file.with_name(f"{file.name}.py").read_bytes()
    assert (adapter.manifest, adapter.source) == (manifest, source)
    assert manifest.pop("manifest_hash") == verifier.canonical_hash(manifest) == manifest_hash(manifest)
    assert manifest["implementation_hash"] == hashlib.sha256(source).hexdigest()


@ADAPTERS
@pytest.mark.parametrize("of", ["input_schema", "output_schema"])
def test_the_schemas_are_closed_at_every_object_and_bounded_at_every_value(adapter: Adapter, of: str) -> None:
    manifest: Any = adapter.manifest
    schema = manifest[of]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    found = list(objects(schema))
    assert found[0] is schema
    for part in found:
        assert part["additionalProperties"] is False
        assert set(part["required"]) <= set(part["properties"])
    for part in typed(schema):
        assert "type" in part or "enum" in part
        if part.get("type") == "array":
            assert part["maxItems"] <= 1000
        if of == "input_schema" and part.get("type") == "string":
            assert part["maxLength"] <= 200


@ADAPTERS
def test_an_adapter_says_that_it_decides_nothing(adapter: Adapter) -> None:
    assert adapter.manifest["adapter_authority"] == "facts_only"
    assert not verifier.canonical(adapter.manifest["output_schema"]).count(b'"verdict"')
    assert adapter.manifest["denied_capabilities"] == sorted(
        resources.schema("trusted-adapter-manifest")["properties"]["denied_capabilities"]["items"]["enum"]
    )


@ADAPTERS
def test_a_manifest_tells_nothing_of_the_machine(adapter: Adapter) -> None:
    """What is in force differs from one machine to the next, and stands only in the status."""
    assert not set(MEASURES) & set(adapter.manifest)
    assert adapter.manifest["capability_enforcement"] == "seccomp_allow_list_v1"


@ADAPTERS
def test_what_a_rulebook_is_bound_to_is_exact(adapter: Adapter) -> None:
    names = ("adapter_id", "version", "manifest_hash", "implementation_hash")
    manifest: Any = adapter.manifest
    assert adapter.dependency == {name: manifest[name] for name in names}
    assert adapter.name == f"{adapter.adapter_id}@{adapter.version}"
    assert adapter.timeout_ms == 1000


def test_adapters_are_told_by_id_and_each_once() -> None:
    names = [adapter.name for adapter in registered()]
    assert names == sorted(set(names))
    assert {file.stem for file in BUILTIN.glob("*.json")} == {name.replace("@", "-") for name in names}


@pytest.mark.parametrize(
    ("adapter_id", "version"),
    [
        ("refund_facts", "1.0"),
        ("refund_facts", "1.0.0 "),
        ("refund_facts", ""),
        ("Refund_facts", "1.0.0"),
        ("refund_facts@1.0.0", "1.0.0"),
        ("../builtin/refund_facts", "1.0.0"),
        ("", ""),
    ],
)
def test_only_the_exact_id_and_version_is_found(adapter_id: str, version: str) -> None:
    assert find_adapter(registered(), adapter_id, version) is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the files of the adapters."""
    return Path(shutil.copytree(BUILTIN, tmp_path / "builtin", ignore=shutil.ignore_patterns("__pycache__")))


def damaged(folder: Path, name: str) -> str:
    """What is said of an adapter that is not loaded."""
    with pytest.raises(OperatorError) as refused:
        load_adapter(folder, name)
    assert refused.value.code == "ADAPTER_DAMAGED"
    assert name in refused.value.message
    return refused.value.message


def test_a_damaged_one_is_left_out_and_the_others_are_registered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "refund_facts-1.0.0.py").unlink()
    (folder / "solana_execution_gate-1.0.0.json").write_text("{")
    every = {adapter.name for adapter in registered()}
    for mended, whole in (("", set()), ("solana_execution_gate-1.0.0.json", {"solana_execution_gate@1.0.0"})):
        if mended:
            shutil.copy(BUILTIN / mended, folder)
        monkeypatch.setattr(registry, "BUILTIN", folder)
        registry._loaded.cache_clear()
        try:
            assert {adapter.name for adapter in registry.registered()} == whole
            assert registry.damaged().keys() == every - whole
            assert {error.code for error in registry.damaged().values()} == {"ADAPTER_DAMAGED"}
        finally:
            monkeypatch.undo()
            registry._loaded.cache_clear()
    assert {adapter.name for adapter in registry.registered()} == every


@pytest.mark.heavy
@ADAPTERS
def test_a_released_adapter_is_sealed_already(
    folder: Path, adapter: Adapter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / f"{adapter.name.replace('@', '-')}.json"
    before = file.read_bytes()
    assert seal(folder, adapter.name) == {
        name: adapter.manifest[name] for name in ("implementation_hash", "manifest_hash")
    }
    assert file.read_bytes() == before
    monkeypatch.setattr(sys, "argv", ["seal", adapter.name])
    assert main() == 1
    assert capsys.readouterr().err == (
        f"{adapter.name} is released, and stays as it is; give what you change a version of its own.\n"
    )


@pytest.mark.heavy
def test_the_command_that_seals_tells_how_it_ended() -> None:
    command = [sys.executable, "-m", seal.__module__, "refund_facts@1.0.0"]
    run = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("refund_facts@1.0.0 is released, and stays as it is; ")


def test_a_changed_adapter_is_loaded_once_it_is_sealed_again(folder: Path) -> None:
    name = "solana_execution_gate@1.0.0"
    with (folder / "solana_execution_gate-1.0.0.py").open("a") as source:
        source.write("# Changed.\n")
    assert "implementation_hash" in damaged(folder, name)
    hashes = seal(folder, name)
    changed = load_adapter(folder, name)
    assert changed.manifest.items() >= hashes.items()
    assert changed.manifest_hash != registered_as(name).manifest_hash


@ADAPTERS
class TestDamaged:
    """An adapter that is not as it was released is not run."""

    def test_a_whole_one_is_loaded(self, folder: Path, adapter: Adapter) -> None:
        assert load_adapter(folder, adapter.name) == adapter

    def test_any_changed_byte_of_the_source_is_noticed(self, folder: Path, adapter: Adapter) -> None:
        file = folder / f"{adapter.name.replace('@', '-')}.py"
        for position in range(0, len(adapter.source), 7):
            byte = bytes([adapter.source[position] ^ 1])
            file.write_bytes(adapter.source[:position] + byte + adapter.source[position + 1 :])
            assert "implementation_hash" in damaged(folder, adapter.name)
        for source in (adapter.source + b"\n", adapter.source[:-1], adapter.source.replace(b"\n", b"\r\n"), b""):
            file.write_bytes(source)
            assert "implementation_hash" in damaged(folder, adapter.name)

    def test_any_changed_member_of_the_manifest_is_noticed(self, folder: Path, adapter: Adapter) -> None:
        file = folder / f"{adapter.name.replace('@', '-')}.json"
        for name in adapter.manifest:
            without = {member: value for member, value in adapter.manifest.items() if member != name}
            for changed in (without, without | {name: None}, without | {name: "0" * 64}, without | {"more": 1}):
                file.write_text(json.dumps(changed))
                damaged(folder, adapter.name)

    def test_any_changed_letter_of_the_manifest_is_noticed(self, folder: Path, adapter: Adapter) -> None:
        file = folder / f"{adapter.name.replace('@', '-')}.json"
        text = file.read_bytes()
        for position in range(0, len(text), 11):
            if text[position : position + 1].isalnum():
                changed = text[:position] + bytes([text[position] ^ 1]) + text[position + 1 :]
                file.write_bytes(changed)
                damaged(folder, adapter.name)

    def test_wider_limits_are_no_limits_of_a_manifest(self, folder: Path, adapter: Adapter) -> None:
        """Not even where whoever changed it computed the hash anew."""
        file = folder / f"{adapter.name.replace('@', '-')}.json"
        for limit, value in (("timeout_ms", 1001), ("memory_bytes", 1 << 40), ("output_bytes", 0)):
            changed = {**adapter.manifest, "limits": {**adapter.manifest["limits"], limit: value}}
            changed["manifest_hash"] = manifest_hash(changed)
            file.write_text(json.dumps(changed))
            assert f"limits.{limit}" in damaged(folder, adapter.name)

    def test_a_file_that_is_missing_or_no_json_is_noticed(self, folder: Path, adapter: Adapter) -> None:
        file = folder / adapter.name.replace("@", "-")
        for ending in ("py", "json"):
            whole = file.with_name(f"{file.name}.{ending}")
            content = whole.read_bytes()
            whole.unlink()
            assert "cannot be read" in damaged(folder, adapter.name)
            whole.write_bytes(content)
        for text in (b"", b"{", b"[]", b"null", b'{"a": 1, "a": 2}', b"\xff"):
            file.with_name(f"{file.name}.json").write_bytes(text)
            damaged(folder, adapter.name)

    def test_an_adapter_under_the_name_of_another_is_noticed(self, folder: Path, adapter: Adapter) -> None:
        file = folder / adapter.name.replace("@", "-")
        for ending in ("py", "json"):
            shutil.copy(file.with_name(f"{file.name}.{ending}"), folder / f"{adapter.adapter_id}-2.0.0.{ending}")
        damaged(folder, f"{adapter.adapter_id}@2.0.0")
