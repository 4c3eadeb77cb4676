"""The published contract: schemas, conformance fixtures, golden replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gate.client.transport.building import asked, member
from gate.client.transport.calls import Call

if TYPE_CHECKING:
    from gate.client.types import ConformanceFixture, ConformanceIndex, ContractIndex, GoldenReplayIndex, GoldenReplays


def list_schemas(*, request_id: str | None = None) -> Call[ContractIndex]:
    """Every schema with its hash."""
    return asked("listSchemas", "/schemas/", request_id=request_id, credential=None)


def get_schema(name: str, *, request_id: str | None = None) -> Call[dict[str, Any]]:
    """A JSON Schema, by its name in the index."""
    path = f"/schemas/{member('name', name)}.schema.json"
    return asked("getSchema", path, request_id=request_id, credential=None)


def list_conformance_fixtures(*, request_id: str | None = None) -> Call[ConformanceIndex]:
    """The conformance fixtures with their hashes."""
    return asked("listConformanceFixtures", "/conformance/", request_id=request_id, credential=None)


def get_conformance_fixture(fixture_id: str, *, request_id: str | None = None) -> Call[ConformanceFixture]:
    """A request, and what every answer to it has in common."""
    path = f"/conformance/{member('fixture_id', fixture_id)}.json"
    return asked("getConformanceFixture", path, request_id=request_id, credential=None)


def list_golden_replays(*, request_id: str | None = None) -> Call[GoldenReplayIndex]:
    """The files of the golden replay corpus with their hashes."""
    return asked("listGoldenReplays", "/replay/", request_id=request_id, credential=None)


def get_golden_replays(file: str, *, request_id: str | None = None) -> Call[GoldenReplays]:
    """Rulebooks and cases on one theme; `file` is a path of the index without `.json`."""
    path = f"/replay/{member('file', file)}.json"
    return asked("getGoldenReplays", path, request_id=request_id, credential=None)
