"""The tests, in folders named as those that they test."""

from __future__ import annotations

import sys

# As it is imported, jsonschema compiles grammars for the format `iri`, which takes longer than all other imports.
# No schema here has that format, and the tests check no format with it: it does as well without, as on a base install.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
