"""The service's description of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gate.client.transport.building import asked
from gate.client.transport.calls import Call, text

if TYPE_CHECKING:
    from gate.client.types import DocsMetadata


def get_openapi(*, request_id: str | None = None) -> Call[dict[str, Any]]:
    """The OpenAPI 3.1 document."""
    return asked("getOpenapi", "/openapi.json", request_id=request_id, credential=None)


def get_docs(*, request_id: str | None = None) -> Call[str]:
    """The same as an HTML page."""
    return asked("getDocs", "/docs", request_id=request_id, credential=None, read=text, media_type="text/html")


def get_docs_metadata(*, request_id: str | None = None) -> Call[DocsMetadata]:
    """Every endpoint, every published schema and the limits in short."""
    return asked("getDocsMetadata", "/docs.json", request_id=request_id, credential=None)
