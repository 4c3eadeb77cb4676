"""gate conformance against services that answer rightly, wrongly, not at all, and too slowly, each over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from api.app import create_app
from gate.clock import utc_now
from gate.contract.published import published
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import Scope
from tests.end_to_end.support import free_port
from tests.support.command_line import run_gate

Alter = Callable[[Request, Response], Response]
Conformance = Callable[..., "CompletedProcess[str]"]

APPROVAL = "conformance/direct_approval"
SAME_NUMBER = "replay/operators.eq.same_number"


@pytest.fixture
def key_file(tmp_path: Path, key: str) -> Path:
    file = tmp_path / "api.key"
    file.write_text(f"{key}\n")
    return file


@pytest.fixture
def conformance(key_file: Path) -> Conformance:
    """Runs `gate conformance` against an address."""

    def run(url: str, *options: str, keys: Path = key_file) -> CompletedProcess[str]:
        return run_gate("conformance", "--endpoint", url, "--api-key-file", str(keys), *options)

    return run


@contextmanager
def altered(instance: Instance, alter: Alter) -> Iterator[str]:
    """The address of a server that answers as the service does, but for what is altered."""
    app = create_app(instance)

    def wsgi(environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        body = request.get_data()
        answer = alter(request, Response.from_app(app, {**environ, "wsgi.input": BytesIO(body)}))
        return answer(environ, start_response)

    server = make_server("127.0.0.1", 0, wsgi, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rightly(request: Request, response: Response) -> Response:
    return response


def changing(change: Callable[[dict[str, Any]], object], status: int = 200) -> Alter:
    """Alters the body of what decide answers with a status."""

    def alter(request: Request, response: Response) -> Response:
        if request.path != "/api/decide" or response.status_code != status:
            return response
        body = json.loads(response.data)
        change(body)
        return Response(json.dumps(body), status, content_type="application/json")

    return alter


def instead(status: int, body: bytes, path: str = "/api/decide", **headers: str) -> Alter:
    """Answers a path always alike."""

    def alter(request: Request, response: Response) -> Response:
        if request.path != path:
            return response
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(body, status, sent, content_type="application/json")

    return alter


def accepting(code: str) -> Alter:
    """Approves what should be refused with a code."""
    approved = json.dumps({"decision_record_version": "decision_record_v1", "c": "yes", "verdict": "yes"}).encode()

    def alter(request: Request, response: Response) -> Response:
        refused = response.status_code == 422 and json.loads(response.data)["error"] == code
        return Response(approved, 200, content_type="application/json") if refused else response

    return alter


def unsign(record: dict[str, Any]) -> None:
    for name in [name for name in record if name.startswith("receipt_") and name != "receipt_hash"]:
        del record[name]


def test_a_service_that_answers_rightly_conforms(instance: Instance, conformance: Conformance) -> None:
    with altered(instance, rightly) as url:
        done = conformance(url, "--only", "conformance/")
    # Two addresses of the index, the fixtures' documents, the fixtures themselves, and two key registries.
    assert done.stdout == f"conforms: {2 + 6 + 6 + 2} checks pass at {url}\n"
    assert (done.returncode, done.stderr) == (0, "")


WRONG: list[tuple[str, str, Alter, str]] = [
    (
        "flips the verdict",
        APPROVAL,
        changing(lambda body: body.update(verdict="no")),
        'verdict should be "yes", but is',
    ),
    (
        "flips the verdict of a golden case",
        SAME_NUMBER,
        changing(lambda body: body.update(verdict="no")),
        'verdict should be "yes", but is "no"',
    ),
    (
        "names another rule",
        SAME_NUMBER,
        changing(lambda body: body.update(matched_rule_id=None)),
        'matched_rule_id should be "eq_number", but is null',
    ),
    (
        "hashes the bundle to something else",
        SAME_NUMBER,
        changing(lambda body: body["rulebook_attestation"].update(bundle_hash="0" * 64)),
        "rulebook_attestation.bundle_hash should be",
    ),
    (
        "shows another bundle under the right hash",
        SAME_NUMBER,
        changing(lambda body: body["rulebook_attestation"]["bundle"].update(engine="another")),
        "H(rulebook_attestation.bundle) should be",
    ),
    (
        "cites another rulebook",
        SAME_NUMBER,
        changing(lambda body: body["rulebook"].update(hash="0" * 64)),
        "rulebook.hash should be",
    ),
    (
        "follows another schema",
        SAME_NUMBER,
        changing(lambda body: body["rulebook_contract"].update(schema_hash="0" * 64)),
        "rulebook_contract.schema_hash should be",
    ),
    (
        "leaves out what is missing",
        "replay/inputs.required.one_missing",
        changing(lambda body: body["evaluation"].update(missing_fields=[])),
        'evaluation.missing_fields should be ["amount"], but is []',
    ),
    (
        "evaluates in another order",
        "replay/priority.negative",
        changing(lambda body: body["evaluation"]["rules"].reverse()),
        'evaluation.rules[0].rule_id should be "block_fraud", but is "watch"',
    ),
    (
        "changes what no expectation names",
        SAME_NUMBER,
        changing(lambda body: body.update(created_at="2020-01-01T00:00:00.000Z")),
        'verification should be "verified", but is "The record was changed',
    ),
    (
        "signs with nothing",
        SAME_NUMBER,
        changing(
            lambda body: [body.pop(name) for name in list(body) if name.startswith("receipt_") and "hash" not in name]
        ),
        'verification should be "verified", but is',
    ),
    (
        "signs wrongly",
        SAME_NUMBER,
        changing(lambda body: body.update(receipt_signature="ed25519:" + "A" * 86)),
        'verification should be "verified", but is "The record is not authentic',
    ),
    (
        "answers partially",
        SAME_NUMBER,
        changing(lambda body: body.pop("evaluation")),
        "evaluation should be",
    ),
    (
        "accepts output material at the root",
        "conformance/output_material_at_root",
        accepting("RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"),
        "output_material_at_root_rejected: status should be 422, but is 200",
    ),
    (
        "accepts output material in the facts",
        "conformance/output_material_in_inputs",
        accepting("RULEBOOK_OUTPUT_MATERIAL_FORBIDDEN"),
        "output_material_in_inputs_rejected: status should be 422, but is 200",
    ),
    (
        "runs the caller's code",
        "conformance/executable_payload",
        accepting("RULEBOOK_INVALID"),
        "executable_payload_rejected: status should be 422, but is 200",
    ),
    (
        "finds another member at fault",
        "conformance/executable_payload",
        changing(lambda body: body["errors"][0].update(field="rulebook"), 422),
        'errors[0].field should be "rulebook.rules[1].execute", but is "rulebook"',
    ),
    (
        "refuses with a verdict",
        "conformance/executable_binding_mode",
        changing(lambda body: body.update(verdict="yes"), 422),
        'verdict should be absent, but is "yes"',
    ),
    (
        "answers 500",
        APPROVAL,
        instead(500, b'{"error": "BROKEN", "message": "It broke."}'),
        'status should be 200, but is "500 BROKEN: It broke."',
    ),
    ("answers no JSON", APPROVAL, instead(200, b"<html>"), 'body should be "a JSON object", but is "<html>"'),
    ("answers no object", APPROVAL, instead(200, b"[]"), 'body should be "a JSON object", but is "[]"'),
    ("answers twice the same member", APPROVAL, instead(200, b'{"c": "no", "c": "yes"}'), "body should be"),
    ("redirects", APPROVAL, instead(302, b"", location="/elsewhere"), "status should be 200, but is 302"),
    (
        "says for ever that it was asked too often",
        APPROVAL,
        instead(429, b"{}", retry_after="0"),
        "status should be 200, but is 429",
    ),
    (
        "publishes another schema",
        "schemas/rulebook-v1",
        instead(200, b"{}", "/schemas/rulebook-v1.schema.json"),
        "schemas/rulebook-v1.schema.json: hash should be",
    ),
    (
        "publishes no corpus",
        "replay/index",
        instead(404, b"{}", "/replay/index.json"),
        "replay/index.json: status should be 200, but is 404",
    ),
    (
        "publishes no JSON",
        "replay/index",
        instead(200, b"{", "/replay/index.json"),
        "replay/index.json: body should be",
    ),
    (
        "publishes no keys",
        APPROVAL,
        instead(200, b"{}", "/api/decision/receipt-keys"),
        'keys/receipt: body should be "a key registry"',
    ),
    (
        "publishes other keys",
        APPROVAL,
        instead(200, b'{"keys": [], "active_key_id": null}', "/api/decision/receipt-keys"),
        'verification should be "verified"',
    ),
]


@pytest.mark.parametrize(("only", "alter", "said"), [wrong[1:] for wrong in WRONG], ids=[wrong[0] for wrong in WRONG])
def test_a_service_that_answers_wrongly_does_not_conform(
    instance: Instance, conformance: Conformance, only: str, alter: Alter, said: str
) -> None:
    with altered(instance, alter) as url:
        done = conformance(url, "--only", only)
    assert done.returncode == 1, done.stderr
    assert said in done.stdout
    assert "DOES NOT CONFORM: " in done.stdout
    assert any(line.startswith((only, "keys/receipt")) for line in done.stdout.splitlines())


def test_machines_are_told_what_was_checked_and_what_deviates(instance: Instance, conformance: Conformance) -> None:
    def change(body: dict[str, Any]) -> None:
        if body["verdict"] == "no":
            del body["verdict"]

    with altered(instance, changing(change)) as url:
        done = conformance(url, "--only", "replay/priority.", "--json")
    report = json.loads(done.stdout)
    index = published()["/replay/index.json"].document
    assert done.returncode == 1
    assert (report["conforms"], report["endpoint"], report["corpus_hash"]) == (False, url, index["corpus_hash"])
    assert report["signatures_checked"] is True
    (document,) = [file for file in index["files"] if file["path"] == "priority.json"]
    # The file, its cases, and two key registries.
    assert report["checked"] == 1 + document["cases"] + 2
    assert set(report["failed"]) == {deviation["check"] for deviation in report["deviations"]}
    first = next(
        deviation for deviation in report["deviations"] if deviation["check"] == "replay/priority.highest_first"
    )
    assert first == {"check": "replay/priority.highest_first", "member": "verdict", "expected": "no"}


@pytest.mark.parametrize("receipt_signing", ["off", "hmac-sha256"])
def test_a_service_without_published_signatures_conforms_and_it_is_said(
    home: Path, key: str, conformance: Conformance, receipt_signing: str
) -> None:
    (home / "secret").write_text("a secret that only the operator of the service has")
    (home / "settings.toml").write_text(
        f'receipt_signing = "{receipt_signing}"\nregistry_signing = "off"\nreceipt_hmac_secret_file = "{home}/secret"\n'
    )
    instance = open_instance(load_settings(home))
    try:
        with altered(instance, rightly) as url:
            done = conformance(url, "--only", APPROVAL)
    finally:
        instance.close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Signatures were not checked" in done.stdout


def test_a_service_that_is_asked_too_often_is_asked_again_when_it_says(
    instance: Instance, conformance: Conformance
) -> None:
    refused: list[str] = []

    def alter(request: Request, response: Response) -> Response:
        if request.path == "/api/decide" and len(refused) < 2:
            refused.append(request.path)
            return Response(b"{}", 429, {"retry-after": "1"})
        return response

    with altered(instance, alter) as url:
        done = conformance(url, "--only", SAME_NUMBER)
    assert done.returncode == 0, done.stdout
    assert done.stderr.count("waiting 1 s") == len(refused) == 2


@pytest.mark.parametrize(
    ("alter", "code"),
    [
        (instead(429, b'{"message": "The cap is reached."}', retry_after="86400"), "ENDPOINT_LIMITED"),
        (instead(401, b'{"message": "No such key."}'), "KEY_REFUSED"),
        (instead(403, b"{}"), "KEY_REFUSED"),
    ],
)
def test_what_cannot_be_found_out_is_no_deviation(
    instance: Instance, conformance: Conformance, alter: Alter, code: str
) -> None:
    with altered(instance, alter) as url:
        done = conformance(url, "--only", APPROVAL, "--json")
    assert (done.returncode, done.stdout, json.loads(done.stderr)["error"]) == (2, "", code)


def test_a_key_that_may_not_register_is_told_so(
    instance: Instance, scope: Scope, conformance: Conformance, tmp_path: Path
) -> None:
    keys = tmp_path / "deciding.key"
    keys.write_text(instance.ledger.directory.create_key(scope, frozenset({"decide"}), None, utc_now())[0])
    with altered(instance, rightly) as url:
        done = conformance(url, "--only", SAME_NUMBER, keys=keys)
    assert done.returncode == 2
    assert "KEY_REFUSED" in done.stderr
    assert "register" in done.stderr


def test_no_service_is_an_error_of_one_line(conformance: Conformance) -> None:
    done = conformance(f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gate: ")
    assert done.stderr.count("\n") == 1
    assert "did not answer conformance/" in done.stderr or "did not answer schemas/" in done.stderr


def test_a_service_that_never_ends_its_answer_is_not_waited_for(instance: Instance, conformance: Conformance) -> None:
    stop = threading.Event()

    def endless() -> Iterator[bytes]:
        while not stop.wait(0.1):
            yield b" "

    def alter(request: Request, response: Response) -> Response:
        return Response(endless()) if request.path == "/api/decide" else response

    with altered(instance, alter) as url:
        done = conformance(url, "--only", SAME_NUMBER, "--timeout", "1")
        stop.set()
    assert (done.returncode, done.stdout) == (2, "")
    assert "ENDPOINT_UNREACHABLE" in done.stderr
    assert SAME_NUMBER in done.stderr


def test_what_speaks_no_http_does_not_conform(conformance: Conformance) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"NOT HTTP AT ALL\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = conformance(f"http://127.0.0.1:{listening.getsockname()[1]}", "--only", "conformance/index")
        thread.join(10)
    assert done.returncode == 1, done.stderr
    assert 'conformance/index.json: status should be 200, but is "no HTTP' in done.stdout


@pytest.mark.parametrize(
    "url",
    [
        "gate.example",
        "ftp://gate.example",
        "http://",
        "http://user:secret@gate.example",
        "http://h/?q=1",
        "http://h:port",
    ],
)
def test_what_is_no_base_address_is_refused(conformance: Conformance, url: str) -> None:
    done = conformance(url)
    assert done.returncode == 2
    assert "ENDPOINT_INVALID" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("content", [None, "", "two words", "dgk_\u00fc", "dgk_1\ndgk_2"])
def test_a_file_without_a_key_is_refused(conformance: Conformance, tmp_path: Path, content: str | None) -> None:
    keys = tmp_path / "keys"
    if content is not None:
        keys.write_text(content)
    done = conformance("http://127.0.0.1:9", keys=keys)
    assert done.returncode == 2
    assert ("FILE_UNREADABLE" if content is None else "KEY_INVALID") in done.stderr
    assert "dgk" not in done.stderr


def test_a_prefix_that_names_nothing_is_refused(conformance: Conformance) -> None:
    done = conformance("http://127.0.0.1:9", "--only", "replay/nothing")
    assert done.returncode == 2
    assert "USAGE_INVALID" in done.stderr


def test_whoever_sends_a_key_unencrypted_is_warned(conformance: Conformance) -> None:
    warned = conformance("http://gate.invalid", "--timeout", "5")
    assert "gate.invalid unencrypted" in warned.stderr
    assert "ENDPOINT_UNREACHABLE" in warned.stderr
    assert "unencrypted" not in conformance("https://gate.invalid", "--timeout", "5").stderr
    assert "unencrypted" not in conformance(f"http://[::1]:{free_port()}").stderr
