"""The published contract: JSON Schemas, conformance fixtures and the golden replay corpus, as shipped.

    published()["/schemas/rulebook-v1.schema.json"].hash     # what records cite as rulebook_contract.schema_hash
    fixtures()                                               # requests to a service, and what must come of them
    golden_cases()                                           # rulebooks and facts, with verdicts and frozen hashes

The same files are what a service serves and what `gate conformance` holds a service to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import parse
from gate.labels import COMPATIBILITY_POLICY, INTERFACE_VERSION
from gate.rulebooks.facts import Facts

SCHEMAS_URL: Final = "/schemas/"
CONFORMANCE_URL: Final = "/conformance/index.json"
REPLAY_URL: Final = "/replay/index.json"

_SCHEMA_SUFFIX: Final = ".schema.json"


@dataclass(frozen=True, slots=True)
class Published:
    """A document of the contract.

    Attributes:
        document: Its JSON value. Shared: callers do not change it.
        hash: H(document).
    """

    document: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One case of the golden replay corpus.

    Attributes:
        case: The case as its file holds it: {case_id, title, covers, rulebook, inputs?, adapter?, adapter_facts?,
            expected, frozen}.
        rulebook: The body of the rulebook that the case names.
    """

    case: Mapping[str, Any]
    rulebook: Mapping[str, Any]

    def request(self) -> dict[str, Any]:
        """The Decision Request that asks a service for the case's verdict."""
        if "adapter" in self.case:
            return {"mode": "rulebook", "rulebook": self.rulebook, "adapter": self.case["adapter"], "context": {}}
        context = {"inputs": self.case["inputs"]} if "inputs" in self.case else {}
        return {"mode": "rulebook", "rulebook": self.rulebook, "context": context}

    @property
    def facts(self) -> Facts:
        """The facts of the case: those that it sends, or those that its adapter makes."""
        values = self.case.get("adapter_facts", self.case.get("inputs", {}))
        return Facts(values, plain=False, trusted_adapter=self.case["frozen"].get("trusted_adapter"))


@cache
def published() -> Mapping[str, Published]:
    """Every document of the contract by the path under which a service publishes it."""
    documents: dict[str, Mapping[str, Any]] = {}
    for name in _schema_names():
        documents[_schema_url(name)] = resources.schema(name)
    documents[SCHEMAS_URL] = contract_index()
    for folder, members in (("conformance", "fixtures"), ("replay", "files")):
        index = _read(folder, "index.json")
        documents[f"/{folder}/"] = documents[f"/{folder}/index.json"] = index
        for member in index[members]:
            documents[f"/{folder}/{member['path']}"] = _read(folder, member["path"])
    return {path: Published(document, content_hash(document)) for path, document in documents.items()}


def contract_index() -> dict[str, Any]:
    """What `GET /schemas/` answers: {ok, interface_version, compatibility_policy, schemas: [{name, title, url, hash}],
    conformance_url, replay_url}. Nothing in it depends on the service that answers.
    """
    return {
        "ok": True,
        "interface_version": INTERFACE_VERSION,
        "compatibility_policy": COMPATIBILITY_POLICY,
        "schemas": [
            {
                "name": name,
                "title": resources.schema(name)["title"],
                "url": _schema_url(name),
                "hash": content_hash(resources.schema(name)),
            }
            for name in _schema_names()
        ],
        "conformance_url": CONFORMANCE_URL,
        "replay_url": REPLAY_URL,
    }


def fixtures() -> list[Mapping[str, Any]]:
    """The conformance fixtures, in the order of their index."""
    documents = published()
    listed = documents[CONFORMANCE_URL].document["fixtures"]
    return [documents[f"/conformance/{entry['path']}"].document for entry in listed]


def golden_cases() -> list[GoldenCase]:
    """The cases of the golden replay corpus, in the order of its index and files."""
    documents = published()
    files = [documents[f"/replay/{file['path']}"].document for file in documents[REPLAY_URL].document["files"]]
    rulebooks = {(body["rulebook_id"], body["version"]): body for file in files for body in file["rulebooks"]}
    return [
        GoldenCase(case, rulebooks[case["rulebook"]["rulebook_id"], case["rulebook"]["version"]])
        for file in files
        for case in file["cases"]
    ]


def _schema_names() -> list[str]:
    return sorted(
        file.name.removesuffix(_SCHEMA_SUFFIX) for file in resources.path("schemas").glob(f"*{_SCHEMA_SUFFIX}")
    )


def _schema_url(name: str) -> str:
    return f"{SCHEMAS_URL}{name}{_SCHEMA_SUFFIX}"


def _read(folder: str, name: str) -> dict[str, Any]:
    document: dict[str, Any] = parse(resources.path("schemas", folder, name).read_bytes())
    return document
