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
from typing import Any, Final, NotRequired, TypedDict

from gate.encoding import resources
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import JsonObject, parse
from gate.labels import COMPATIBILITY_POLICY, INTERFACE_VERSION
from gate.rulebooks.documents import AdapterInvocation, InvalidField, RulebookBody, TrustedAdapter
from gate.rulebooks.facts import Facts

SCHEMAS_URL: Final = "/schemas/"
CONFORMANCE_URL: Final = "/conformance/index.json"
REPLAY_URL: Final = "/replay/index.json"

_SCHEMA_SUFFIX: Final = ".schema.json"


class ListedSchema(TypedDict):
    """A schema in the contract's index."""

    name: str
    title: str
    url: str
    hash: str


class ContractIndex(TypedDict):
    """What `GET /schemas/` answers."""

    ok: bool
    interface_version: str
    compatibility_policy: str
    schemas: list[ListedSchema]
    conformance_url: str
    replay_url: str


class FixtureRequest(TypedDict):
    """A request to a service."""

    method: str
    path: str
    headers: dict[str, str]
    body: Mapping[str, object]


class FixtureExpectation(TypedDict):
    """The required result of a request: fields of the body with their values, and fields that must be absent."""

    status: int
    body: Mapping[str, object]
    absent: list[str]


class Fixture(TypedDict):
    """A conformance fixture; `schemas/conformance-fixture.schema.json`."""

    fixture_id: str
    title: str
    request: FixtureRequest
    expected: FixtureExpectation


class NamedRulebook(TypedDict):
    """The rulebook of a golden case, which its file holds once."""

    rulebook_id: str
    version: str


class GoldenExpectation(TypedDict):
    """The expected decision of a golden case."""

    verdict: str
    application_verdict: str
    action: str
    reason_code: str
    matched_rule_id: str | None
    missing_fields: list[str]
    invalid_fields: list[InvalidField]
    evaluated_rules: NotRequired[list[str]]


class Frozen(TypedDict):
    """The hashes that a golden case must give for ever."""

    trusted_adapter: NotRequired[TrustedAdapter]
    rulebook_hash: str
    input_hash: str
    bundle_hash: str


class GoldenCaseBody(TypedDict):
    """A golden case as its file holds it; `schemas/golden-replay-cases.schema.json`."""

    case_id: str
    title: str
    covers: list[str]
    rulebook: NamedRulebook
    inputs: NotRequired[JsonObject]
    adapter: NotRequired[AdapterInvocation]
    adapter_facts: NotRequired[JsonObject]
    expected: GoldenExpectation
    frozen: Frozen


class _ListedFile(TypedDict):
    path: str


class _FixtureIndex(TypedDict):
    fixtures: list[_ListedFile]


class _ReplayIndex(TypedDict):
    files: list[_ListedFile]
    corpus_hash: str


class _ReplayFile(TypedDict):
    rulebooks: list[RulebookBody]
    cases: list[GoldenCaseBody]


@dataclass(frozen=True, slots=True)
class Published:
    """A document of the contract.

    Attributes:
        document: Its JSON value, of whatever kind. Shared: callers do not change it.
        hash: H(document).
    """

    document: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One case of the golden replay corpus.

    Attributes:
        case: The case as its file holds it.
        rulebook: The body of the rulebook that the case names.
    """

    case: GoldenCaseBody
    rulebook: RulebookBody

    def request(self) -> dict[str, object]:
        """The Decision Request that asks a service for the case's verdict."""
        if "adapter" in self.case:
            return {"mode": "rulebook", "rulebook": self.rulebook, "adapter": self.case["adapter"], "context": {}}
        context = {"inputs": self.case["inputs"]} if "inputs" in self.case else {}
        return {"mode": "rulebook", "rulebook": self.rulebook, "context": context}

    @property
    def facts(self) -> Facts:
        """The facts of the case, either sent or computed by its adapter."""
        values = self.case.get("adapter_facts", self.case.get("inputs", {}))
        return Facts(values, plain=False, trusted_adapter=self.case["frozen"].get("trusted_adapter"))


@cache
def published() -> Mapping[str, Published]:
    """Every document of the contract by the path under which a service publishes it."""
    documents: dict[str, Mapping[str, object]] = {}
    for name in _schema_names():
        documents[_schema_url(name)] = resources.schema(name)
    documents[SCHEMAS_URL] = contract_index()
    for folder, files in (("conformance", _fixture_index()["fixtures"]), ("replay", _replay_index()["files"])):
        documents[f"/{folder}/"] = documents[f"/{folder}/index.json"] = _read(folder, "index.json")
        for file in files:
            documents[f"/{folder}/{file['path']}"] = _read(folder, file["path"])
    return {path: Published(document, content_hash(document)) for path, document in documents.items()}


def contract_index() -> ContractIndex:
    """The answer of `GET /schemas/`. It does not depend on the service that answers."""
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


def fixtures() -> list[Fixture]:
    """The conformance fixtures, in the order of their index."""
    return [_read("conformance", file["path"]) for file in _fixture_index()["fixtures"]]


def corpus_hash() -> str:
    """The hash of the golden replay corpus: that of the list of its files' hashes."""
    return _replay_index()["corpus_hash"]


def golden_cases() -> list[GoldenCase]:
    """The cases of the golden replay corpus, in the order of its index and files."""
    files: list[_ReplayFile] = [_read("replay", file["path"]) for file in _replay_index()["files"]]
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


def _fixture_index() -> _FixtureIndex:
    index: _FixtureIndex = _read("conformance", "index.json")
    return index


def _replay_index() -> _ReplayIndex:
    index: _ReplayIndex = _read("replay", "index.json")
    return index


@cache
def _read(folder: str, name: str) -> Any:
    """A shipped document. Shared: callers do not change it; they name its type."""
    return parse(resources.path("schemas", folder, name).read_bytes())
