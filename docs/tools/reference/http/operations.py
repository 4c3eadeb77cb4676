"""The operations of the HTTP API: as `schemas/openapi.json` has them, and as the service publishes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from api.description.documents import openapi_document
from docs.tools.reference.http.fields import read
from docs.tools.reference.markdown import anchor


@dataclass(frozen=True, slots=True)
class Part:
    """A page for some operations of a tag that are too much for one page.

    Attributes:
        page: Its file.
        title: Its title.
        about: The question that it answers.
        paths: The paths of its operations.
    """

    page: str
    title: str
    about: str
    paths: tuple[str, ...]


PARTS: Final = (
    Part("decide-batch.md", "Decide batch API", "Ask about many actions with one request.", ("/api/decide/batch",)),
    Part(
        "executions.md",
        "Execution receipts API",
        "Report whether an action was performed, and read the receipt.",
        ("/api/decision/{decision_id}/execution",),
    ),
    Part(
        "outcomes.md",
        "Outcomes API",
        "Report the result of an action, and read it.",
        ("/api/decision/{decision_id}/outcome",),
    ),
    Part(
        "resolutions.md",
        "Resolutions API",
        "Grant or refuse a held action, and read the resolution.",
        ("/api/decision/{decision_id}/resolution",),
    ),
    Part(
        "crm-syncs.md",
        "CRM syncs API",
        "Report that a decision was copied to a CRM, and read the report.",
        ("/api/decision/{decision_id}/crm-sync",),
    ),
    Part(
        "confidence.md",
        "Confidence API",
        "Ask how far reported outcomes support the decisions of a policy.",
        ("/api/decision/policies/{policy_id}/confidence",),
    ),
    Part(
        "effectiveness.md",
        "Effectiveness API",
        "Ask how well a policy works across all its decisions.",
        ("/api/decision/policies/{policy_id}/effectiveness",),
    ),
    Part(
        "anomalies.md",
        "Anomalies and alerts API",
        "Ask for unusual changes in a policy, and for the alerts of all policies.",
        ("/api/decision/policies/{policy_id}/anomalies", "/api/policy-alerts", "/api/policy-alerts.atom"),
    ),
    Part(
        "benchmarks.md",
        "Benchmarks API",
        "Compare a policy with policies of the same kind in other scopes.",
        ("/api/decision/policies/{policy_id}/benchmarks",),
    ),
)
_PAGES: Final = {path: part.page for part in PARTS for path in part.paths}


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
        """The name of its page: that of its tag, or of a part of it."""
        return _PAGES.get(self.key.partition(" ")[2], f"{anchor(self.tag)}.md")

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
