"""Reports over HTTP, and the refusals of them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.clock import utc_now
from gate.encoding import resources
from gate.instance.instance import Instance
from gate.ledger.access.authority import Scope
from gate.records.reports.receipts import Kind
from tests.api.deciding import decide
from tests.support.samples import REPORTS, sample_request


class Caller:
    """A caller, and decisions of its scope."""

    def __init__(self, client: FlaskClient, key: str, instance: Instance, scope: Scope) -> None:
        self.client = client
        self.key = key
        self.instance = instance
        self.scope = scope

    def decide(self, **inputs: Any) -> dict[str, Any]:
        """A record."""
        record: dict[str, Any] = decide(self.client, self.key, sample_request(**inputs)).get_json()
        return record

    def report(
        self, kind: Kind, decision_id: str, body: Any = ..., *, key: str | None = None, used: str | None = None
    ) -> TestResponse:
        """Reports, by default as little as may be.

        Args:
            kind: What is reported.
            decision_id: About which decision.
            body: The body, or its bytes.
            key: The API key; the caller's where None.
            used: The idempotency key.
        """
        sent = REPORTS[kind.name] if body is ... else body
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        headers = {"x-api-key": self.key if key is None else key}
        if used is not None:
            headers["x-idempotency-key"] = used
        return self.client.post(
            f"/api/decision/{decision_id}/{kind.name}", data=data, content_type="application/json", headers=headers
        )

    def list(self, kind: Kind, decision_id: str, query: str = "", *, key: str | None = None) -> TestResponse:
        """Asks for what was reported."""
        headers = {"x-api-key": self.key if key is None else key}
        return self.client.get(f"/api/decision/{decision_id}/{kind.name}{query}", headers=headers)

    def new_key(self, *access: str) -> str:
        """Another key of the scope."""
        return self.instance.ledger.directory.create_key(self.scope, frozenset(access), None, utc_now())[0]

    def disable(self, key: str) -> None:
        """Disables a key behind the back of the process that remembers it."""
        self.instance.ledger.directory.disable_key(key.split("_")[1], utc_now())

    def size(self) -> int:
        """How many entries the scope's chain has."""
        return self.instance.ledger.entries.head(self.scope.scope_id).size


def refused(response: TestResponse, status: int, error: str) -> dict[str, Any]:
    assert (response.status_code, response.json["error"] if response.json else None) == (status, error)
    body: dict[str, Any] = response.get_json()
    jsonschema.Draft202012Validator(resources.schema("error")).validate(body)
    assert body["message"].endswith(".")
    assert not [name for name, _ in response.headers if name.startswith(("x-decision-", "x-idempotency"))]
    return body
