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
from api.mcp.agents.texts import ADVICE
from api.mcp.policies import policy_server
from api.mcp.servers import Server
from api.mcp.versions import HANDSHAKE_VERSIONS, PER_REQUEST_VERSIONS
from api.routes.questions import SERVERS
from gate.instance.instance import create_instance
from tests.end_to_end.site import Site
from tests.end_to_end.support import ROOT, free_port
from tests.mcp.clients import LINES, converse, example, misfits
from tests.support import upstreams
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
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An instance with an advisory upstream that answers yes."""
    home = tmp_path_factory.mktemp("mcp") / "home"
    create_instance(home)
    with upstreams.serving() as upstream, (home / "settings.toml").open("a") as settings:
        settings.write(f'advisory_url = "{upstream.url}"\nadvisory_model = "model-1"\n')
        settings.flush()
        yield Site(home, None)


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


@pytest.fixture(scope="module")
def sessions() -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """What all sessions of a line found of a server, once they were held."""
    return {}


@pytest.fixture(scope="module", params=SESSIONS, ids=lambda of: f"line {of[0]}, {of[1]}")
def session(
    request: pytest.FixtureRequest,
    served: Served,
    url: str,
    sessions: dict[tuple[str, str], dict[str, dict[str, Any]]],
) -> dict[str, Any]:
    """What a session of a client found."""
    line, mode = request.param
    if (line, served.path) not in sessions:
        sessions[line, served.path] = converse(line, f"{url}{served.path}", served.headers, served.calls)
    found = sessions[line, served.path][mode]
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


@dataclass(frozen=True, slots=True)
class Agent:
    """The example, run against the gate."""

    site: Site
    url: str
    key: str
    folder: Path

    def run(
        self,
        order: str,
        request: Mapping[str, Any],
        *,
        wanted: Sequence[str] = ("crm", "deal-1042", "approve_discount"),
        key: str | None = "",
        url: str = "",
        program: str = "mcp_agent",
        programs: Path = ROOT / "docs" / "examples",
    ) -> str:
        """What the example prints."""
        file = self.folder / "request.json"
        file.write_text(json.dumps(request))
        arguments = (url or f"{self.url}/api/mcp", str(file), order, *wanted)
        done = example(program, *arguments, key=self.key if key == "" else key, folder=programs)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    def types(self) -> list[str]:
        """The types of the scope's entries."""
        return [str(entry.link["entry_type"]) for entry in self.site.entries("acme")]

    def receipts(self) -> list[dict[str, Any]]:
        """The execution receipts of the last decision."""
        entries = self.site.entries("acme")
        id_ = next(entry.link["decision_id"] for entry in reversed(entries) if entry.link["entry_type"] == "decision")
        answer = httpx.get(f"{self.url}/api/decision/{id_}/execution", headers={"x-api-key": self.key}, trust_env=False)
        found: list[dict[str, Any]] = answer.json()["executions"]
        return found


class TestExample:
    @pytest.fixture
    def agent(self, site: Site, url: str, key: str, tmp_path: Path) -> Agent:
        return Agent(site, url, key, tmp_path)

    def test_it_acts_on_a_yes_once_and_reports_it(self, agent: Agent) -> None:
        before = len(agent.types())
        assert agent.run("order-10", sample_request()) == "performed approve_discount on crm/deal-1042, reported"
        assert agent.types()[before:] == ["decision", "execution"]
        (receipt,) = agent.receipts()
        assert (receipt["execution_status"], receipt["action_binding_match"], receipt["flags"]) == (
            "executed",
            True,
            [],
        )
        assert receipt["execution_result"] == "performed approve_discount on crm/deal-1042"
        # The retry is answered the same yes.
        held = "held: order-10 was begun before; find out whether it was performed"
        assert agent.run("order-10", sample_request()) == held
        assert agent.types()[before:] == ["decision", "execution"]

    @pytest.mark.parametrize(
        ("order", "facts", "said"),
        [
            ("order-20", {"discount_percent": 10, "margin_percent": 9}, "no (MARGIN_FLOOR_BREACH)"),
            ("order-21", {"discount_percent": "much", "margin_percent": 22}, "review (INPUT_SCHEMA_FAILED)"),
        ],
    )
    def test_what_is_no_yes_holds_it_and_is_reported(
        self, agent: Agent, order: str, facts: dict[str, Any], said: str
    ) -> None:
        held = f"held: {said} does not permit approve_discount on crm/deal-1042"
        assert agent.run(order, sample_request(**facts)) == f"{held}, reported"
        (receipt,) = agent.receipts()
        assert (receipt["execution_status"], receipt["execution_result"]) == ("skipped", held)
        assert receipt["action_binding_match"] is True

    @pytest.mark.parametrize(
        ("order", "wanted"),
        [
            ("order-30", ("crm", "deal-7", "approve_discount")),
            ("order-31", ("erp", "deal-1042", "approve_discount")),
            ("order-32", ("crm", "deal-1042", "wire_money")),
        ],
    )
    def test_a_yes_to_something_else_holds_it(self, agent: Agent, order: str, wanted: tuple[str, str, str]) -> None:
        system, resource, action = wanted
        assert agent.run(order, sample_request(), wanted=wanted).splitlines() == [
            f"held: yes (STANDARD_EXCEPTION_ALLOWED) does not permit {action} on {system}/{resource}, reported",
            "The record binds: system crm, resource deal-1042, proposed_action approve_discount.",
        ]
        assert [receipt["execution_status"] for receipt in agent.receipts()] == ["skipped"]

    @pytest.mark.parametrize("resource", ["deal-1042", ""])
    def test_a_yes_to_a_misspelt_target_holds_it(self, agent: Agent, resource: str) -> None:
        request = sample_request()
        request["context"]["target_objectid"] = request["context"].pop("target_object_id")
        became, note = agent.run(
            f"order-4{resource}", request, wanted=("crm", resource, "approve_discount")
        ).splitlines()
        assert became.startswith("held: yes (STANDARD_EXCEPTION_ALLOWED) does not permit approve_discount on crm/")
        assert "context.target_objectid is not part of the action binding; did you mean target_object_id?" in note

    def test_an_advisory_yes_holds_it_and_is_called_advice(self, agent: Agent) -> None:
        target = {"target_system": "crm", "target_object_id": "deal-1042", "requested_action": "approve_discount"}
        request = {"mode": "single", "question": "May this discount be given?", "context": target}
        became, note = agent.run("order-45", request).splitlines()
        assert became == "held: yes (ADVISORY_YES) does not permit approve_discount on crm/deal-1042, reported"
        assert note == ADVICE
        assert "authorizes nothing" in note
        assert [receipt["execution_status"] for receipt in agent.receipts()] == ["skipped"]

    def test_an_action_that_fails_is_reported_as_failed_and_not_tried_again(self, agent: Agent, tmp_path: Path) -> None:
        source = (ROOT / "docs" / "examples" / "mcp_agent.py").read_text()
        act = 'return f"performed {wanted.proposed_action} on {wanted.system}/{wanted.resource}"'
        assert source.count(act) == 1
        (tmp_path / "failing.py").write_text(source.replace(act, 'raise OSError("the CRM is down")'))
        became = agent.run("order-50", sample_request(), program="failing", programs=tmp_path)
        assert became == "failed: the CRM is down, reported"
        (receipt,) = agent.receipts()
        assert (receipt["execution_status"], receipt["action_binding_match"]) == ("failed", True)
        assert agent.run("order-50", sample_request()).startswith("held: order-50 was begun before;")

    def test_without_an_answer_nothing_is_done(self, agent: Agent) -> None:
        before = agent.types()
        assert agent.run("order-60", sample_request(), key="dgk_wrong") == (
            "held: there was no usable answer (status 401: the gate does not know the key in GATE_KEY)"
        )
        assert agent.run("order-60", sample_request(), key=None) == (
            "held: GATE_KEY is not set; set it to the API key of this agent"
        )
        nobody = f"http://127.0.0.1:{free_port()}/api/mcp"
        became = agent.run("order-60", sample_request(), url=nobody)
        assert became.startswith("held: there was no usable answer (Connect")
        assert agent.run("order-60", {"mode": "rulebook"}).startswith("held: The body is not a Decision Request;")
        assert agent.types() == before

    @pytest.mark.parametrize("arguments", [0, 1, 5, 7])
    def test_a_wrong_number_of_arguments_gets_the_usage(self, agent: Agent, arguments: int) -> None:
        done = example("mcp_agent", *["x"] * arguments, key=agent.key)
        usage = "usage: GATE_KEY=... python mcp_agent.py URL REQUEST_FILE ORDER SYSTEM RESOURCE ACTION\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", usage)

    @pytest.mark.parametrize(
        ("content", "says"), [(None, "cannot be read: No such file or directory"), ("{", "is not JSON: Expecting")]
    )
    def test_a_request_that_cannot_be_read_is_named(self, agent: Agent, content: str | None, says: str) -> None:
        file = agent.folder / "request.json"
        if content is not None:
            file.write_text(content)
        wanted = ("crm", "deal-1042", "approve_discount")
        done = example("mcp_agent", f"{agent.url}/api/mcp", str(file), "order-61", *wanted, key=agent.key)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"held: {file} {says}")

    def test_an_order_that_cannot_be_stored_holds_it(self, agent: Agent) -> None:
        (agent.folder / "begun.db").mkdir()
        became = agent.run("order-62", sample_request())
        assert became == "held: nothing was done (OperationalError: unable to open database file)"

    def test_what_was_done_is_said_where_it_cannot_be_reported(self, agent: Agent) -> None:
        access = ("--access", "decide", "--access", "read")
        key = agent.site.gate("keys", "create", "--scope", "acme", *access)["key"]
        became = agent.run("order-70", sample_request(), key=key)
        assert became.startswith(
            "performed approve_discount on crm/deal-1042, not reported: This is an error, not an approval"
        )
        assert "lacks the access 'report'" in became
