"""Trains the dictionary that bodies in the ledger are compressed with, over the demo's year.

`python -m tests.support.dictionary LEDGER.db FILE`; docs/adr/0018-compressed-bodies.md says when another is due. One
that a release has stored bodies with stays for good: they cannot be read without it.
"""

from __future__ import annotations

import random
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

import zstandard

from gate.ledger.packing import unpack

_EVERY: Final = 13
_SAMPLES: Final = {"decision": 600}
_OTHERS: Final = 300
_BYTES: Final = 32 * 1024
_ENTRIES: Final = "SELECT entry_type, body, request FROM entries WHERE position % ? = 0 ORDER BY scope_id, position"
# Smaller numbers are for dictionaries that everybody knows.
_FIRST_ID: Final = 1 << 15


def main() -> None:
    """Writes the dictionary of samples that are the same at every run over the same ledger."""
    ledger, file = sys.argv[1:]
    by_kind: dict[str, list[bytes]] = defaultdict(list)
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT entry_type, body, request FROM entries WHERE position % ? = 0 ORDER BY scope_id, position",
            (_EVERY,),
        )
        for entry_type, body, request in rows:
            by_kind[entry_type].append(unpack(body))
            if request is not None:
                by_kind[f"{entry_type} request"].append(unpack(request))
    chosen = random.Random(1)  # noqa: S311 - for the same choice at every run
    samples: list[bytes | bytearray | memoryview[int]] = []
    for kind, bodies in sorted(by_kind.items()):
        samples += chosen.sample(bodies, min(len(bodies), _SAMPLES.get(kind, _OTHERS)))
    made = zstandard.train_dictionary(_BYTES, samples, dict_id=_FIRST_ID, level=3)
    Path(file).write_bytes(made.as_bytes())


if __name__ == "__main__":
    main()
