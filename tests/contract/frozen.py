"""The frozen OpenAPI document, and how it is refreshed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from api.description.documents import openapi_document

FILE: Final = Path(__file__).parent / "openapi.json"
BASE_URL: Final = "https://gate.example"


def frozen() -> dict[str, Any]:
    """The document that callers were promised."""
    document: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return document


def current() -> dict[str, Any]:
    """The document that the service serves now, for a neutral base address."""
    return openapi_document(BASE_URL)


def text(document: dict[str, Any]) -> str:
    """A document as it is frozen."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
