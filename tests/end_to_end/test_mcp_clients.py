"""The official clients of the protocol, both lines, over real HTTP: they connect, list the tools and call every one.

Another server is a `Served` of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import jsonschema
import pytest

from api.mcp.agents.server import agents_server
from api.mcp.policies import policy_server
from api.mcp.servers import Server
from api.mcp.versions import HANDSHAKE_VERSIONS, PER_REQUEST_VERSIONS
from api.routes.questions import SERVERS
from tests.end_to_end.site import Site
from tests.mcp.clients import LINES, converse, example, misfits
from tests.support.samples import sample_request

pytestmark = pytest.mark.heavy

SESSIONS: Final = [(line, mode) for line, modes in LINES.items() for mode in modes]
OPENED: Final = {
    ("1", "legacy"): HANDSHAKE_VERSIONS[0],
    ("2", "legacy"): HANDSHAKE_VERSIONS[0],
    ("2", "auto"): PER_REQUEST_VERSIONS[0],
}
"""The version that each kind of session settles on."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is tried.

    Attributes:
        path: Its path.
        server: What it is.
        headers: The headers that let a caller in.
        calls: Calls that it answers, and calls that it refuses: [{name, arguments}].
        refused: How many of the calls, the last of them, it refuses.
    """

    path: str
    server: Server
    headers: Mapping[str, str]
    calls: Sequence[Mapping[str, Any]]
    refused: int


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    """Where the servers are."""
    with site.serving(1) as server:
        yield server.url


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("mcp") / "home", None)


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.fixture(scope="module")
def agents(site: Site, key: str, url: str) -> Served:
    """The gate, and calls of all of its tools."""
    made = httpx.post(f"{url}/api/decide", json=sample_request(), headers={"x-api-key": key}, trust_env=False).json()
    id_ = made["decision_id"]
    calls = [
        call("decide", request=sample_request(), idempotency_key="order-1", response_view="minimal"),
        call("decide", request=sample_request()),
        call("report_execution", decision_id=id_, report={"execution_status": "executed"}),
        call("report_outcome", decision_id=id_, report={"outcome_status": "succeeded"}),
        call("verify", decision_id=id_),
        call("verify", record=made),
        call("explain", decision_id=id_),
        call("replay", decision_id=id_),
        call("list_rulebooks"),
        call("explain", decision_id="dec_unknown"),
        call("decide", request={"mode": "rulebook"}),
    ]
    return Served("/api/mcp", agents_server(), {"x-api-key": key}, calls, refused=2)


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    return site.create_key("acme")


QUESTIONS: Final = [
    call("refund_eligibility", vendor="steam", region="US", days_since_purchase=3),
    call("cancellation_penalty", vendor="spotify", days_since_start=400.5, conditions_met=["direct"]),
    call("return_eligibility", vendor="nobody", days_since_delivery=3),
    call("trial_terms", vendor="github", plan="enterprise"),
]


@pytest.fixture(scope="module", params=["agents", *SERVERS])
def served(request: pytest.FixtureRequest) -> Served:
    """Each server in turn."""
    if request.param == "agents":
        found: Served = request.getfixturevalue("agents")
        return found
    server = policy_server(request.param)
    calls = [each for each in QUESTIONS if each["name"] in server.by_name]
    return Served(f"/{request.param}/api/mcp", server, {}, calls, refused=0)


@pytest.fixture(scope="module", params=SESSIONS, ids=lambda of: f"line {of[0]}, {of[1]}")
def session(request: pytest.FixtureRequest, served: Served, url: str) -> dict[str, Any]:
    """What a session of a client found."""
    line, mode = request.param
    found = converse(line, f"{url}{served.path}", served.headers, served.calls)[mode]
    assert found["version"] == OPENED[line, mode]
    return found


def test_a_client_settles_on_a_version_and_hears_what_the_server_is(session: dict[str, Any], served: Served) -> None:
    assert session["server"]["name"] == served.server.name
    assert session["server"]["version"] == served.server.version
    assert session["instructions"] == served.server.instructions


def test_a_client_sees_every_tool_as_it_is(session: dict[str, Any], served: Served) -> None:
    assert [tool["name"] for tool in session["tools"]] == [tool.name for tool in served.server.tools]
    for seen, tool in zip(session["tools"], served.server.tools, strict=True):
        assert (seen["title"], seen["description"]) == (tool.title, tool.description)
        assert seen["inputSchema"] == tool.input_schema
        assert seen["outputSchema"] == tool.output_schema
        assert seen["annotations"]["readOnlyHint"] == tool.annotations["readOnlyHint"]


def test_a_client_calls_every_tool(session: dict[str, Any], served: Served) -> None:
    assert {each["name"] for each in served.calls} == {tool.name for tool in served.server.tools}
    refused = len(served.calls) - served.refused
    for number, (sent, result) in enumerate(zip(served.calls, session["results"], strict=True)):
        assert result["isError"] == (number >= refused), result
        schema = served.server.by_name[sent["name"]].output_schema
        jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
        assert result["content"][0]["type"] == "text"


def test_every_reply_is_one_that_the_protocol_publishes(session: dict[str, Any]) -> None:
    answered = [
        {"version": session["version"], "method": each["method"], "reply": each["reply"]}
        for each in session["replies"]
        if each["reply"] is not None
    ]
    assert {each["method"] for each in answered} >= {"tools/list", "tools/call"}
    assert misfits(answered) == []
    silent = [each for each in session["replies"] if each["reply"] is None]
    assert all(each["status"] == 202 and each["method"].startswith("notifications/") for each in silent)


def test_the_example_acts_on_a_yes_alone_once_and_reports_it(site: Site, url: str, key: str, tmp_path: Path) -> None:
    def run(intent: str, **facts: object) -> str:
        file = tmp_path / f"{intent}.json"
        file.write_text(json.dumps(sample_request(**facts)))
        done = example("mcp_agent", f"{url}/api/mcp", str(file), intent, key=key)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    before = len(site.entries("acme"))
    assert run("task-1") == "performed approve_discount on crm/deal-1042, reported"
    assert run("task-2", discount_percent=10, margin_percent=9) == "held"
    assert run("task-3", discount_percent="much", margin_percent=22) == "held"
    added = [entry.link["entry_type"] for entry in site.entries("acme")[before:]]
    assert added == ["decision", "execution", "decision", "decision"]
    # A retry stands for the same record and the same report.
    assert run("task-1") == "performed approve_discount on crm/deal-1042, reported"
    assert len(site.entries("acme")) == before + 4
