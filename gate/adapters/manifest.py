"""An adapter: its manifest, and the source that the manifest describes.

    builtin/<adapter_id>-<version>.json      the manifest, with manifest_hash
    builtin/<adapter_id>-<version>.py        the implementation: a function `facts` from the input to the facts

Neither is ever changed once it is released: manifest_hash is H of the manifest without it, implementation_hash the
SHA-256 of the source's bytes, and records cite both. The worker runs those bytes, and no copy of them that was compiled
before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypedDict, cast

from gate.encoding.canonical import content_hash
from gate.encoding.shapes import Shape, shape
from gate.encoding.strict_json import JsonObject, parse
from gate.errors import MaterialRefused, OperatorError
from gate.rulebooks.documents import AdapterDependency
from gate.rulebooks.facts import dependency_of


class Limits(TypedDict):
    """The limits of a call of an adapter."""

    timeout_ms: int
    memory_bytes: int
    output_bytes: int


class FactsSchema(TypedDict):
    """The members of a JSON Schema of an adapter's input or output that are read here; it has others."""

    properties: dict[str, JsonObject]
    required: list[str]


class Manifest(TypedDict):
    """An adapter's manifest; `schemas/trusted-adapter-manifest.schema.json`."""

    manifest_version: str
    adapter_id: str
    version: str
    title: str
    description: str
    implementation_revision: str
    implementation_hash: str
    adapter_authority: str
    execution_isolation: str
    capability_enforcement: str
    denied_capabilities: list[str]
    limits: Limits
    input_schema: FactsSchema
    output_schema: FactsSchema
    manifest_hash: str


@dataclass(frozen=True)
class Adapter:
    """A registered adapter.

    Attributes:
        manifest: Its manifest, with manifest_hash.
        source: The bytes of its implementation.
    """

    manifest: Manifest
    source: bytes

    @property
    def adapter_id(self) -> str:
        """Its id."""
        return self.manifest["adapter_id"]

    @property
    def version(self) -> str:
        """Its exact version."""
        return self.manifest["version"]

    @property
    def name(self) -> str:
        """`adapter_id@version`, as records name it."""
        return f"{self.adapter_id}@{self.version}"

    @property
    def manifest_hash(self) -> str:
        """H of the manifest without it."""
        return self.manifest["manifest_hash"]

    @property
    def timeout_ms(self) -> int:
        """How long a call may take, in milliseconds."""
        return self.manifest["limits"]["timeout_ms"]

    @property
    def memory_bytes(self) -> int:
        """How much a worker may allocate, in bytes."""
        return self.manifest["limits"]["memory_bytes"]

    @property
    def output_bytes(self) -> int:
        """How long the JSON text of the facts may be, in bytes."""
        return self.manifest["limits"]["output_bytes"]

    @property
    def facts_schema(self) -> JsonObject:
        """The JSON Schema of the facts that it makes."""
        return cast("JsonObject", self.manifest["output_schema"])

    @cached_property
    def input_shape(self) -> Shape:
        """The compiled input schema."""
        return Shape(self.manifest["input_schema"])

    @cached_property
    def output_shape(self) -> Shape:
        """The compiled output schema."""
        return Shape(self.manifest["output_schema"])

    @property
    def dependency(self) -> AdapterDependency:
        """The dependency of a rulebook, `{adapter_id, version, manifest_hash, implementation_hash}`."""
        return dependency_of(self.manifest)


def manifest_hash(manifest: Mapping[str, object]) -> str:
    """H of a manifest without manifest_hash."""
    return content_hash({name: value for name, value in manifest.items() if name != "manifest_hash"})


def load_adapter(folder: Path, name: str) -> Adapter:
    """The adapter whose files lie in a folder, held against its own hashes.

    Args:
        folder: The folder.
        name: `adapter_id@version`.

    Raises:
        OperatorError: `ADAPTER_DAMAGED`: a file is missing, or is not the one that was released.
    """
    file = folder / name.replace("@", "-")
    try:
        manifest = parse(file.with_name(f"{file.name}.json").read_bytes())
        source = file.with_name(f"{file.name}.py").read_bytes()
    except (OSError, MaterialRefused) as error:
        raise _damaged(name, f"one of its files cannot be read ({error})") from error
    if errors := shape("trusted-adapter-manifest").errors(manifest):
        raise _damaged(name, f"its manifest has a missing or invalid {errors[0].field}")
    adapter = Adapter(manifest, source)
    if adapter.name != name or manifest_hash(manifest) != adapter.manifest_hash:
        raise _damaged(name, "its manifest does not match its manifest_hash")
    if hashlib.sha256(source).hexdigest() != manifest["implementation_hash"]:
        raise _damaged(name, "its source does not match its implementation_hash")
    return adapter


def _damaged(name: str, why: str) -> OperatorError:
    return OperatorError(
        "ADAPTER_DAMAGED", f"The adapter {name} differs from the released one: {why}. Install the release again."
    )
