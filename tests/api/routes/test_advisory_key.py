"""The key that an upstream is asked with is shown nowhere, whatever the upstream does and whatever is asked for."""

from __future__ import annotations

import json
from contextlib import suppress
from io import BytesIO
from typing import Any, Final

import pytest
from flask.testing import FlaskClient
from typer.testing import CliRunner

from api.cli.main import app
from gate.errors import GateError
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.ledger.packing import unpack
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.upstream import Upstream
from tests.api.deciding import chain_size, decide
from tests.api.mcp.messages import PATH
from tests.support.samples import rows_of
from tests.support.upstreams import BEHAVIORS, Handler, completion, fitting, serving

KEY: Final = "key-canary-9f86d081884c7d65"
QUESTION: Final = {"question": "May we refund order 7?"}


def _echoes(handler: Handler) -> None:
    """Repeats the key in its status, its headers and its body."""
    said = handler.headers["authorization"]
    handler.send(json.dumps({"error": said}).encode(), status=401, www_authenticate=said)


def _answers_with_the_key(handler: Handler) -> None:
    handler.send(completion(json.dumps({**fitting("single"), "reason": handler.headers["authorization"]})))


def _keeps_the_key_to_itself(handler: Handler) -> None:
    handler.send(completion(json.dumps(fitting("single")), system_fingerprint=handler.headers["authorization"]))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        with suppress(GateError, ValueError, OSError):
            value = unpack(value)
        return bytes(value).decode("utf-8", "replace")
    return str(value)


def test_the_key_of_the_upstream_is_shown_nowhere(
    client: FlaskClient,
    key: str,
    instance: Instance,
    scope: Scope,
    log: BytesIO,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    shown: dict[str, str] = {}
    with serving() as upstream:
        monkeypatch.setitem(instance.__dict__, "advisor", Advisor(Upstream(upstream.url, "model-1", 0.5, KEY)))
        behaviors: dict[str, Any] = {name: behave for name, (behave, _) in BEHAVIORS.items()}
        behaviors |= {"echoes": _echoes, "answers with the key": _answers_with_the_key}
        # Each of these takes as long as a call may.
        for name in ("drips", "drips its head"):
            del behaviors[name]
        for name, upstream.behave in behaviors.items():
            refusal = decide(client, key, QUESTION)
            assert refusal.status_code == 502, name
            shown[name] = f"{refusal.headers}{refusal.get_data(as_text=True)}"
        assert chain_size(instance, scope) == 0
        upstream.behave = _keeps_the_key_to_itself
        record = decide(client, key, QUESTION).get_json()
        arguments = {"name": "decide", "arguments": {"request": QUESTION}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
        shown["mcp"] = client.post(PATH, json=message, headers={"x-api-key": key}).get_data(as_text=True)
        # The canary was there to be seen.
        assert {headers["authorization"] for _, headers, _ in upstream.asked} == {f"Bearer {KEY}"}
        replay = client.post(record["replay_url"], json={}, headers={"x-api-key": key})
        assert replay.status_code == 200, replay.get_json()
        shown["replay"] = replay.get_data(as_text=True)
    shown["record"] = json.dumps(record)
    token = {"x-metrics-token": instance.settings.metrics_token.read_text().strip()}
    paths = (
        "/api/decision/status",
        "/readyz",
        "/api/runtime-config",
        "/api/proof-metrics",
        "/metrics",
        "/openapi.json",
        record["decision_url"],
        record["verify_url"],
        f"{record['decision_url']}/packet?include_input=true",
    )
    for path in paths:
        answer = client.get(path, headers={"x-api-key": key, **token})
        assert answer.status_code in (200, 503), path
        shown[path] = f"{answer.headers}{answer.get_data(as_text=True)}"
    values = [value for rows in rows_of(instance.ledger.store).values() for row in rows for value in row]
    shown["database"] = "\n".join(map(_text, values))
    # What is packed in it can be seen.
    assert QUESTION["question"] in shown["database"]
    shown["log"] = log.getvalue().decode()
    shown["output"] = "".join(capfd.readouterr())
    for place, text in shown.items():
        assert text or place == "output", place
        assert KEY not in text, place
        assert "canary" not in text, place


def test_commands_do_not_show_the_key(instance: Instance, home: Any, tmp_path: Any) -> None:
    file = tmp_path / "advisory.key"
    file.write_text(KEY)
    file.chmod(0o600)
    with (home / "settings.toml").open("a") as settings:
        settings.write(
            f'advisory_url = "http://127.0.0.1:9/v1"\nadvisory_model = "model-1"\nadvisory_key_file = "{file}"\n'
        )
    for command in (["status"], ["log"], ["keys", "list"]):
        done = CliRunner().invoke(app, [*command, "--json", "--home", str(home)])
        assert done.exit_code == 0, done.output
        assert "canary" not in done.output
        if command == ["status"]:
            assert json.loads(done.stdout)["backends"]["advisory"] == "ready"
