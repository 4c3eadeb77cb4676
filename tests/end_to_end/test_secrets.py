"""No secret and no body comes to light: canaries are planted wherever a caller or an operator can put one, and looked
for in the log of a real server, its errors, its metrics, its database and what its commands print.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from gate.clock import utc_now
from gate.errors import AccessRefused, GateError
from gate.instance.settings import load_settings
from gate.ledger import open_ledger, open_store
from gate.ledger.packing import unpack
from tests.end_to_end.site import PATIENCE, Site
from tests.support.samples import rows_of, sample_request, sample_rulebook

HMAC_SECRET: Final = "hmac-canary-" + "5d41402abc4b2a76b9719d911017c592"
BODY: Final = "body-canary-9f86d081884c7d65"
WRONG_KEY: Final = "dgk_0123456789abcdef01234567_wrong-canary-2c26b46b68ffc68ff99b453c1d304134"
WRONG_TOKEN: Final = "token-canary-fcde2b2edba56bf408601fb721fe9b5c"
PASSWORD: Final = "password-canary-b94d27b9934d3e08a52e52d7"
WRONG_PASSWORD: Final = "password-canary-7c9fa136d4413fa6173637e8"
ELSEWHERE: Final = "elsewhere-canary-e3b0c44298fc1c149afb"


@pytest.fixture
def key(site: Site) -> str:
    made = site.create_key("acme")
    secret = site.home / "hmac.secret"
    secret.write_text(HMAC_SECRET)
    settings = site.home / "settings.toml"
    settings.write_text(
        re.sub(
            'receipt_signing = "ed25519"',
            f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"',
            settings.read_text(),
        )
    )
    return made


def requests(key: str) -> Iterator[dict[str, Any]]:
    """Requests that go well and requests that go wrong, a canary in each place that takes text."""
    known, wrong = {"x-api-key": key}, {"x-api-key": WRONG_KEY}
    decide: dict[str, Any] = {"method": "POST", "url": "/api/decide"}
    fact = sample_request(discount_percent=10, margin_percent=22, note=BODY)
    yield decide | {"json": fact, "headers": known | {"x-idempotency-key": "one"}}
    yield decide | {"json": sample_request(), "headers": known | {"x-idempotency-key": "one"}}
    yield decide | {"json": fact, "headers": wrong}
    yield decide | {"json": fact, "headers": {"authorization": f"Bearer {ELSEWHERE}", "cookie": f"key={ELSEWHERE}"}}
    yield decide | {"content": f'{{"a": "{BODY}", '.encode(), "headers": known | {"content-type": "application/json"}}
    yield decide | {"content": BODY.encode(), "headers": known | {"content-type": "text/plain"}}
    yield decide | {"content": b"[" * 100 + BODY.encode(), "headers": known | {"content-type": "application/json"}}
    yield decide | {"content": b" " * 2_000_000 + BODY.encode(), "headers": known}
    yield decide | {"json": {"mode": BODY}, "headers": known}
    yield decide | {"json": fact | {"verdict": BODY}, "headers": known}
    yield decide | {"json": fact | {"rulebook": sample_rulebook() | {"default_outcome": BODY}}, "headers": known}
    yield decide | {"json": fact | {"binding_mode": BODY}, "headers": known}
    for url in (f"/api/decide?x-api-key={ELSEWHERE}", f"/{ELSEWHERE}", f"/api/decision/{ELSEWHERE}"):
        yield {"method": "GET", "url": url, "headers": known | {"user-agent": ELSEWHERE, "x-forwarded-for": ELSEWHERE}}
    yield {"method": "GET", "url": f"/api/decision/policy-bundles?hash={ELSEWHERE}"}
    yield {"method": "GET", "url": "/metrics", "headers": {"x-metrics-token": WRONG_TOKEN}}
    yield {"method": "GET", "url": "/api/proof-metrics", "headers": {"x-metrics-token": WRONG_TOKEN}}
    yield {"method": "POST", "url": "/api/decision/verify", "json": {"record": {"decision_id": BODY}, "input": BODY}}


def sign_in(site: Site) -> None:
    """Adds a user, who signs in and then mistypes the password and the name."""
    file = site.home / "password"
    file.write_text(PASSWORD)
    site.gate("users", "add", "ada", "--scope", "acme", "--role", "viewer", "--password-file", str(file))
    file.unlink()
    with closing(open_ledger(load_settings(site.home, database_url=site.database_url).ledger_url)) as ledger:
        for name, password in (("ada", PASSWORD), ("ada", WRONG_PASSWORD), (WRONG_PASSWORD, PASSWORD)):
            with suppress(AccessRefused):
                ledger.users.sign_in(name, password, utc_now())


def stored_text(site: Site) -> str:
    """Everything in the ledger, unpacked."""
    with closing(open_store(load_settings(site.home, database_url=site.database_url).ledger_url)) as store:
        values = [value for rows in rows_of(store).values() for row in rows for value in row]
    return "\n".join(map(_text, values))


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        with suppress(GateError, ValueError, OSError):
            value = unpack(value)
        return bytes(value).decode("utf-8", "replace")
    return str(value)


def private_halves(home: Path) -> list[str]:
    return [line for file in (home / "keys").glob("*.pem") for line in file.read_text().splitlines() if "-" not in line]


def test_no_secret_and_no_body_comes_to_light(site: Site, key: str) -> None:
    errors: list[str] = []
    with site.serving(1) as server, httpx.Client(base_url=server.url, timeout=PATIENCE, trust_env=False) as client:
        token = (site.home / "metrics.token").read_text().strip()
        statuses = set()
        for request in requests(key):
            answer = client.request(**request)
            statuses.add(answer.status_code)
            if answer.is_error:
                errors.append(f"{answer.text}\n{answer.headers}")
        metrics = client.get("/metrics", headers={"x-metrics-token": token}).text
        proof = client.get("/api/proof-metrics", headers={"x-metrics-token": token}).text
        sign_in(site)
        listing = (["status"], ["log"], ["keys", "list"], ["scopes", "list"], ["users", "list"])
        commands = [site.gate(*command) for command in listing]
        server.stop()
    assert statuses >= {200, 400, 401, 404, 409, 413, 415, 422}
    log = server.text()
    requests_logged = [line for line in server.lines if line.startswith("{") and '"event":"request"' in line]
    assert len(requests_logged) >= len(list(requests(key)))
    assert all(json.loads(line)["request_id"] for line in requests_logged)
    own = [key.split("_", 2)[2], token, HMAC_SECRET, PASSWORD, *private_halves(site.home)]
    secrets = [*own, WRONG_KEY, WRONG_TOKEN, WRONG_PASSWORD, ELSEWHERE]
    assert len(secrets) >= 10
    shown = {"errors": "\n".join(errors), "metrics": metrics + proof, "commands": json.dumps(commands)}
    assert "argon2" not in shown["commands"]
    stored = stored_text(site)
    for secret in secrets:
        for place, text in (shown | {"log": log, "database": stored}).items():
            assert secret not in text, f"{secret} in the {place}"
    assert BODY not in log
    assert BODY not in metrics
    # The ledger keeps what it decided on: that the canary is found there shows that this test can see it.
    assert BODY in stored
