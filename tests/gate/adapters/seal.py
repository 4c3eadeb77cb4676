"""Writes both hashes into the manifest of an adapter: `python -m tests.gate.adapters.seal refund_facts@1.0.0`.

One that was released is frozen in tests/cases/adapters.json, and stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from gate.adapters.manifest import load_adapter, manifest_hash
from gate.adapters.registry import BUILTIN
from gate.errors import GateError
from tests.support.samples import cases


def seal(folder: Path, name: str) -> dict[str, str]:
    """Seals the adapter of that name in a folder; {implementation_hash, manifest_hash}.

    Raises:
        OSError, ValueError: A file of it cannot be read.
    """
    file = folder / name.replace("@", "-")
    described = file.with_name(f"{file.name}.json")
    manifest = json.loads(described.read_text("utf-8"))
    source = file.with_name(f"{file.name}.py").read_bytes()
    manifest["implementation_hash"] = hashlib.sha256(source).hexdigest()
    manifest["manifest_hash"] = manifest_hash(manifest)
    described.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return {member: manifest[member] for member in ("implementation_hash", "manifest_hash")}


def main() -> int:
    """Seals the adapter that the command line names; 1 where it is released, or is no adapter once sealed."""
    if len(sys.argv) != len(("seal", "name")):
        sys.stderr.write("Name one adapter, as adapter_id@version.\n")
        return 1
    name = sys.argv[1]
    if any((case["kind"], case["name"]) == ("frozen", name) for case in cases("adapters")):
        sys.stderr.write(f"{name} is released, and stays as it is; give what you change a version of its own.\n")
        return 1
    try:
        for member, value in seal(BUILTIN, name).items():
            sys.stdout.write(f"{member} {value}\n")
        load_adapter(BUILTIN, name)
    except (OSError, ValueError, GateError) as error:
        sys.stderr.write(f"{name} is not sealed: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
