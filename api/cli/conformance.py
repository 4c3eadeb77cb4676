"""`gate conformance`: check that a service answers as the published contract says. Needs no instance."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Final

import httpx
import orjson
import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json, read_file
from api.cli.output import note, print_json, say
from api.cli.verify import ATTESTATION_KEYS_PATH, RECEIPT_KEYS_PATH
from gate.contract.conformance import Answer, Check, Deviation, checks, document_deviations
from gate.contract.published import CONFORMANCE_URL, REPLAY_URL, published
from gate.errors import MaterialRefused, OperatorError
from gate.labels import INTERFACE_VERSION
from gate.proof.signing import KeyRegistry, load_registry
from gate.verify import Trust

app = typer.Typer(add_completion=False)

_MAX_ANSWER: Final = 16 * 1024 * 1024
_MAX_WAIT: Final = 120
_MAX_WAITS: Final = 5


@app.command()
def conformance(
    endpoint: Annotated[str, typer.Option(help="The service's base address, for example https://gate.example.")],
    api_key_file: Annotated[Path, typer.Option(help="A file with an API key that may decide and register.")],
    only: Annotated[
        str,
        typer.Option(
            metavar="PREFIX", help="Run only the checks whose names start with this, such as replay/operators.eq."
        ),
    ] = "",
    timeout: Annotated[int, typer.Option(min=1, max=600, help="The time limit of each answer, in seconds.")] = 30,
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check a service against the published contract of this release: 0 conforms, 1 does not, 2 cannot be checked.

    The service must publish the same schemas, conformance fixtures and golden replays as this installation. The command
    sends it each fixture and golden case, then compares and verifies the answers. Every golden case creates a record in
    the scope of the key. The command waits up to two minutes when the service limits its rate, and follows no redirect.

    With `--json`, `signatures_checked` is false if no signature could be verified, and `deviations` lists the check,
    the member, and the expected and actual value of each deviation.
    """
    base = _base_address(endpoint)
    key = _api_key(api_key_file)
    documents = {path: document for path, document in published().items() if path[1:].startswith(only)}
    chosen = [check for check in checks() if check.name.startswith(only)]
    if not documents and not chosen:
        raise OperatorError("USAGE_INVALID", f"No check starts with {only!r}; leave out --only to run all checks.")
    if base.scheme == "http" and not _is_loopback(base.host):
        note(f"gate: The API key is sent to {base.host} unencrypted; use https unless the network is private.")
    report = _Report(silent=as_json)
    with _Service(base, key, timeout) as service:
        for path, document in documents.items():
            report.add(path[1:], document_deviations(path[1:], document, service.ask(path[1:], "GET", path)))
        trust = _trust(service, report) if chosen else Trust()
        for check in chosen:
            report.add(check.name, check.deviations(service.send(check), trust))
    if as_json:
        print_json(report.to_dict(str(base), trust))
    else:
        report.say_summary(str(base), trust)
    raise typer.Exit(1 if report.deviations else 0)


class _Report:
    """What was checked, and what deviates; for people each deviation is a line as soon as it is found."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self.checked: list[str] = []
        self.deviations: list[Deviation] = []

    def add(self, name: str, deviations: list[Deviation]) -> None:
        self.checked.append(name)
        self.deviations += deviations
        if not self._silent:
            for deviation in deviations:
                say(deviation.sentence(), style="red")

    def failed(self) -> list[str]:
        deviating = {deviation.check for deviation in self.deviations}
        return [name for name in self.checked if name in deviating]

    def to_dict(self, endpoint: str, trust: Trust) -> dict[str, object]:
        return {
            "conforms": not self.deviations,
            "endpoint": endpoint,
            "interface_version": INTERFACE_VERSION,
            "conformance_hash": published()[CONFORMANCE_URL].document["conformance_hash"],
            "corpus_hash": published()[REPLAY_URL].document["corpus_hash"],
            "signatures_checked": _signatures_checked(trust),
            "checked": len(self.checked),
            "failed": self.failed(),
            "deviations": [deviation.to_dict() for deviation in self.deviations],
        }

    def say_summary(self, endpoint: str, trust: Trust) -> None:
        checked = len(self.checked)
        if self.deviations:
            say(f"DOES NOT CONFORM: {len(self.failed())} of {checked} checks fail at {endpoint}", style="red")
        else:
            say(f"conforms: {checked} checks pass at {endpoint}", style="green")
        if not _signatures_checked(trust):
            say("  Signatures were not checked, because the service publishes no active key.")


def _signatures_checked(trust: Trust) -> bool:
    return trust.receipt_keys is not None and trust.receipt_keys.active_key_id is not None


class _Service:
    """The service that is checked, over HTTP."""

    def __init__(self, base: httpx.URL, key: str, timeout: int) -> None:
        self._base = str(base).rstrip("/")
        self._key = key
        self._timeout = timeout
        self._client = httpx.Client(
            timeout=timeout, follow_redirects=False, trust_env=bool(os.environ.get("HTTPS_PROXY"))
        )

    def __enter__(self) -> _Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(self, check: Check) -> Answer:
        """What the service answers to a check's request.

        Raises:
            OperatorError: As `ask`; KEY_REFUSED.
        """
        sent = check.request
        headers = {**sent["headers"], "x-api-key": self._key}
        answer = self.ask(check.name, sent["method"], sent["path"], headers, orjson.dumps(sent["body"]))
        if answer.status in (401, 403):
            raise OperatorError(
                "KEY_REFUSED",
                f"The service answered {check.name} with {answer.status}: {_message(answer)} Give a file with a key "
                f"that may decide and register.",
            )
        return answer

    def ask(
        self, name: str, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> Answer:
        """What the service answers; where it says that it was asked too often, after the time it names.

        Raises:
            OperatorError: ENDPOINT_UNREACHABLE, or ENDPOINT_LIMITED where that time is too long to wait.
        """
        for waited in count():
            answer, retry_after = self._ask(name, method, path, headers, content)
            if answer.status != 429 or not retry_after.isdecimal() or waited == _MAX_WAITS:
                break
            if int(retry_after) > _MAX_WAIT:
                raise OperatorError(
                    "ENDPOINT_LIMITED",
                    f"The service accepts {name} only after {retry_after} seconds: {_message(answer)} Use a key of "
                    f"another scope or plan.",
                )
            note(f"gate: The service limits the rate; waiting {retry_after} seconds.")
            time.sleep(int(retry_after))
        return answer

    def _ask(
        self, name: str, method: str, path: str, headers: Mapping[str, str] | None, content: bytes | None
    ) -> tuple[Answer, str]:
        deadline = time.monotonic() + self._timeout
        try:
            with self._client.stream(method, self._base + path, headers=headers, content=content) as response:
                body = b""
                for piece in response.iter_bytes():
                    body += piece
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout(f"the answer did not end within {self._timeout} seconds")
                    if len(body) > _MAX_ANSWER:
                        break
                return Answer(response.status_code, body), response.headers.get("retry-after", "")
        except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
            return Answer(None, str(error).encode()), ""
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise OperatorError(
                "ENDPOINT_UNREACHABLE", f"{self._base} did not answer {name}: {why.rstrip('.')}."
            ) from error


def _trust(service: _Service, report: _Report) -> Trust:
    return Trust(
        receipt_keys=_registry(service, report, "keys/receipt", RECEIPT_KEYS_PATH),
        attestation_keys=_registry(service, report, "keys/attestation", ATTESTATION_KEYS_PATH),
        source="registry",
    )


def _registry(service: _Service, report: _Report, name: str, path: str) -> KeyRegistry | None:
    """The public keys that the service publishes; that it publishes none that can be read is a deviation."""
    try:
        registry = load_registry(service.ask(name, "GET", path).json())
    except MaterialRefused as error:
        report.add(name, [Deviation(name, "body", "a key registry", error.message)])
        return None
    report.add(name, [])
    return registry


def _message(answer: Answer) -> str:
    body = answer.json()
    message = body.get("message") if isinstance(body, dict) else None
    return message if isinstance(message, str) else "it gave no reason."


def _base_address(endpoint: str) -> httpx.URL:
    try:
        base = httpx.URL(endpoint)
    except httpx.InvalidURL:
        base = httpx.URL("")
    if base.scheme not in ("http", "https") or not base.host or base.userinfo or base.query or base.fragment:
        raise OperatorError(
            "ENDPOINT_INVALID",
            "--endpoint is not the base address of a service; give one such as https://gate.example, without "
            "credentials or a query.",
        )
    return base


def _api_key(file: Path) -> str:
    key = read_file(file).decode("utf-8", "replace").strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise OperatorError("KEY_INVALID", f"{file} does not hold an API key; it must hold one key and nothing else.")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
