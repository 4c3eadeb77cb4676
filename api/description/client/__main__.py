"""Writes the modules of `gate/client/api` (`make client`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import gate
from api.description.client import Unsupported, sources
from api.description.documents import openapi_document

FOLDER: Final = Path(gate.__file__).parent / "client" / "api"


def main() -> int:
    """Writes the modules. Returns 1 and changes nothing if the generator does not know a part of the document."""
    try:
        # The client does not depend on the address of a service.
        made = sources(openapi_document("https://gate.example"))
    except Unsupported as error:
        sys.stderr.write(f"The client was not changed. {error}\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    for name, text in made.items():
        (FOLDER / name).write_text(text, "utf-8")
    sys.stdout.write(f"{FOLDER} holds {', '.join(made)}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
