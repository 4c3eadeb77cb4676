"""Freezes the OpenAPI document and the promised names anew (`make contract`), unless that would take something away."""

from __future__ import annotations

import sys

from tests.contract.compatibility import breaks
from tests.contract.frozen import FILE, current, differences, freeze, thaw
from tests.contract.surface import freeze as freeze_surface


def main() -> int:
    """Writes tests/contract/openapi.jsonl; 1, and the file as it was, where callers would break."""
    served = current()
    promised = thaw(FILE.read_text("utf-8")) if FILE.exists() else None
    if promised is not None and (found := breaks(promised, served)):
        sys.stderr.write("The frozen contract stays as it is, for the new one would break its callers:\n")
        sys.stderr.writelines(f"  {sentence}\n" for sentence in found)
        sys.stderr.write("Give them back, or make a new contract under another version label.\n")
        return 1
    FILE.write_text(freeze(served), "utf-8")
    changed = differences(promised or {}, served)
    sys.stdout.write(f"{FILE.name} holds {len(served['paths'])} paths. Changed: {len(changed)}\n")
    sys.stdout.writelines(f"  {names}\n" for names in changed)
    return 0


if __name__ == "__main__":
    sys.exit(main() or freeze_surface())
