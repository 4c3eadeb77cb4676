"""The tests, in folders named as those that they test."""

from __future__ import annotations

import os
import sys

# As it is imported, jsonschema compiles grammars for the format `iri`, which takes longer than all other imports.
# No schema here has that format, and the tests check no format with it: it does as well without, as on a base install.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# A test process keeps one processor busy already. Polars reads this as it is imported, which tests.conftest does.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
