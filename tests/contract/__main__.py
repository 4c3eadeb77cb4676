"""Freezes the OpenAPI document anew (`make contract`), unless that would take something away from callers."""

from __future__ import annotations

import sys

from tests.contract.compatibility import breaks
from tests.contract.frozen import FILE, current, frozen, text


def main() -> int:
    """Writes tests/contract/openapi.json; 1, and the file as it was, where callers would break."""
    document = current()
    if FILE.exists() and (found := breaks(frozen(), document)):
        sys.stderr.write("The frozen contract stays as it is, for the new one would break its callers:\n")
        sys.stderr.writelines(f"  {sentence}\n" for sentence in found)
        sys.stderr.write("Give them back, or make a new contract under another version label.\n")
        return 1
    FILE.write_text(text(document), "utf-8")
    sys.stdout.write(f"{FILE.name} holds {len(document['paths'])} paths.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
