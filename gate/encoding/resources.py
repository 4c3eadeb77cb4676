"""The files in the product: JSON Schemas, sample data, and the sources of the notebooks.

In a checkout, they are the top-level folders `schemas/`, `data/` and `notebooks/`. In a wheel, they are inside the
package `gate`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from gate.encoding.strict_json import parse

_PACKAGED = Path(__file__).parents[1] / "resources"
_ROOT = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2]


def path(*parts: str) -> Path:
    """The absolute path of a file in the product, such as `path("data", "rulebooks", "pricing_exception.json")`."""
    return _ROOT.joinpath(*parts)


@cache
def schema(name: str) -> dict[str, Any]:
    """The JSON Schema `schemas/<name>.schema.json`. Callers share it and must not change it."""
    document: dict[str, Any] = parse(path("schemas", f"{name}.schema.json").read_bytes())
    return document
