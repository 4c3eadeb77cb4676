"""The operations of the HTTP API: as `schemas/openapi.json` has them, and as the service publishes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from api.description.documents import openapi_document
from docs.tools.reference.http.fields import read
from docs.tools.reference.markdown import anchor


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        key: Its method and path: `POST /api/decide`.
        tag: The tag that it belongs to.
        written: As `schemas/openapi.json` has it, with references to files.
        published: As the service publishes it, with the responses of its error codes.
    """

    key: str
    tag: str
    written: Mapping[str, Any]
    published: Mapping[str, Any]

    @property
    def page(self) -> str:
        """The name of its page."""
        return f"{anchor(self.tag)}.md"

    def media(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Its JSON bodies, each with "request" or "answer"."""
        bodies = [("request", self.written.get("requestBody", {}))]
        bodies += [("answer", response) for response in self.written["responses"].values()]
        for place, body in bodies:
            for media_type, media in body.get("content", {}).items():
                if media_type == "application/json":
                    yield place, media


@cache
def document() -> Mapping[str, Any]:
    """The document that the service publishes, for the address of the examples."""
    return openapi_document("http://127.0.0.1:8080")


@cache
def operations() -> Mapping[str, Operation]:
    """Every operation by its method and path, in the order of the tags."""
    published = document()["paths"]
    found = [
        Operation(f"{method.upper()} {path}", operation["tags"][0], operation, published[path][method])
        for path, item in read("openapi.json")["paths"].items()
        for method, operation in item.items()
    ]
    tags = [tag["name"] for tag in document()["tags"]]
    return {each.key: each for each in sorted(found, key=lambda each: tags.index(each.tag))}
