"""Callers that ask for reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gate.clock import utc_now
from gate.instance.instance import Instance
from gate.ledger.access.authority import FULL_ACCESS
from tests.independent import recount
from tests.support.samples import sample_request

POLICY: Final = "/api/decision/policies/pricing_exception"


class Caller:
    """Whoever has a key; remembers what was answered, in chain order."""

    def __init__(self, client: FlaskClient, key: str) -> None:
        self._client = client
        self._headers = {"x-api-key": key}
        self.entries: list[dict[str, Any]] = []
        self.requests: dict[str, dict[str, Any]] = {}

    def decide(self, *, version: str = "1", **inputs: Any) -> str:
        """Asks for a decision; its id."""
        request = sample_request(**inputs)
        request["rulebook"]["version"] = version
        decision_id = str(self._sent("/api/decide", request)["decision_id"])
        self.requests[decision_id] = request
        return decision_id

    def tell(self, decision_id: str, status: str, **body: Any) -> None:
        """Reports an outcome."""
        self._sent(f"/api/decision/{decision_id}/outcome", {"outcome_status": status, **body})

    def executed(self, decision_id: str) -> None:
        """Reports an execution."""
        self._sent(f"/api/decision/{decision_id}/execution", {"execution_status": "executed"})

    def _sent(self, path: str, body: Any) -> dict[str, Any]:
        response = self._client.post(path, json=body, headers=self._headers)
        assert response.status_code in (200, 201), response.data
        answer: dict[str, Any] = response.get_json()
        self.entries.append(answer)
        return answer

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """What is answered to a question."""
        response = self._client.get(path, query_string=query, headers=self._headers)
        assert response.status_code == 200, response.data
        answer: dict[str, Any] = response.get_json()
        return answer

    def assert_fresh(self, **query: Any) -> None:
        """Requires that both reports have everything that was answered so far."""
        chosen = {"policy_version": None, "limit": None, "min_sample": 20} | query
        expected = recount.effectiveness(self.entries, "pricing_exception", **chosen, requests=self.requests)
        assert self.get(f"{POLICY}/effectiveness", **query) == expected
        assert self.get(f"{POLICY}/confidence", **query) == recount.confidence(
            self.entries, "pricing_exception", **chosen
        )


Change = Callable[[], None]

PATH = "/api/decision/policies/pricing_exception/confidence"


def get(client: FlaskClient, key: str, path: str = PATH, **query: Any) -> TestResponse:
    return client.get(path, query_string=query, headers={"x-api-key": key})


def other_key(instance: Instance) -> str:
    scope = instance.ledger.directory.create_scope("other", "unlimited", utc_now())
    return instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())[0]
