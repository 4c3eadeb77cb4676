"""A scope whose chain holds binding and advisory decisions, and reports about both, all made over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from flask.testing import FlaskClient

from api.app import attach, unattached_app
from api.http.logs import open_log
from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.instance.instance import Instance
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.templates import template
from gate.services.advisory.upstream import Upstream
from tests.support.reports import FixedReports
from tests.support.samples import sample_request, sample_rulebook
from tests.support.upstreams import OPTIONS, Server, serving

MODEL: Final = "model-1"

NAMESAKE: Final = "advisory.single"
"""The id of a rulebook that is called as the advisory decisions of mode single are."""

_TARGET: Final = {"target_system": "shop", "requested_action": "settle_complaint"}

# Facts by the verdict that the sample rulebook gives them.
_FACTS: Final = {
    "yes": {"discount_percent": 10, "margin_percent": 22},
    "no": {"discount_percent": 10, "margin_percent": 3},
    "review": {"discount_percent": 20, "margin_percent": 22},
}

QUESTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "single": {"question": "May we refund order 7?", "context": {**_TARGET, "target_object_id": "order-7"}},
    "refused": {"question": "May we refund order 8?", "context": {**_TARGET, "target_object_id": "order-8"}},
    "unclear": {"question": "May we refund order 9?", "context": {**_TARGET, "target_object_id": "order-9"}},
    "multi": {
        "mode": "multi",
        "question": "How well does each remedy fit order 10?",
        # It looks like the facts of a binding decision, and is only context.
        "context": {
            **_TARGET,
            "target_object_id": "order-10",
            "options": OPTIONS,
            "inputs": {"discount_percent": 99, "margin_percent": 1},
            "amount": 1200.5,
        },
    },
    "runtime": {
        "mode": "runtime",
        "question": "Which remedy fits order 11?",
        "context": {**_TARGET, "target_object_id": "order-11", "options": OPTIONS},
    },
    "erased": {"question": "May we refund Ada Lovelace?", "context": {**_TARGET, "target_object_id": "order-12"}},
}
"""The advisory requests, by what becomes of them."""

ACTED_ON: Final = ("single", "multi", "runtime", "erased")
"""The advice that somebody executed."""

_ANSWERS: Final = {
    "refused": {"answer": "no", "reason": "The order is too old."},
    "unclear": {"answer": "unclear", "reason": "Nothing says when it was delivered."},
    "erased": {"answer": "yes", "reason": "Ada Lovelace is a good customer."},
}


@dataclass
class Advice:
    """The scope.

    Attributes:
        key: A key of it.
        client: An HTTP client of the service.
        upstream: What answers the advisory modes.
        binding: The records of the sample rulebook's decisions, by verdict.
        namesake: The records of the decisions by a rulebook called `advisory.single`, whose version, verdict and action
            are those of advice.
        advisory: The advisory records, by their names in `QUESTIONS`.
        entries: How many entries its chain has.
    """

    key: str
    client: FlaskClient
    upstream: Server
    binding: dict[str, dict[str, Any]] = field(default_factory=dict)
    namesake: list[dict[str, Any]] = field(default_factory=list)
    advisory: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: int = 0

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """What the service answers, which it accepts."""
        response = self.client.post(
            path, data=json.dumps(body), content_type="application/json", headers={"x-api-key": self.key}
        )
        assert response.status_code in (200, 201), response.get_json()
        self.entries += 1
        answer: dict[str, Any] = response.get_json()
        return answer

    def get(self, path: str) -> Any:
        """What the service answers."""
        response = self.client.get(path, headers={"x-api-key": self.key})
        assert response.status_code == 200, response.get_json()
        return response.get_json()

    def report(self, record: Mapping[str, Any], kind: str, **body: Any) -> dict[str, Any]:
        """Reports an execution, an outcome or a crm-sync about a decision."""
        return self.post(f"/api/decision/{record['decision_id']}/{kind}", body)


@contextmanager
def advice(instance: Instance, key: str) -> Iterator[Advice]:
    """Fills the scope of a key, and answers its questions until the block ends."""
    application = unattached_app()
    attach(application, instance, log=open_log(stream=BytesIO()), analytics=FixedReports())
    with serving() as server:
        instance.__dict__["advisor"] = Advisor(Upstream(server.url, MODEL, 5.0, None))
        made = Advice(key, application.test_client(), server)
        _bind(made)
        _advise(made)
        erase(instance.ledger, made.advisory["erased"]["decision_id"], "They asked for it.", utc_now())
        made.entries += 1
        made.report(made.advisory["erased"], "outcome", outcome_status="failed")
        yield made
        del instance.__dict__["advisor"]


def namesake_rulebook() -> dict[str, Any]:
    """A rulebook that takes the id, the version and the action of advice of mode single."""
    body = {**sample_rulebook(), "rulebook_id": NAMESAKE, "version": template("single").version}
    # Its rule of the sample's name matches all that has a low discount.
    body["rules"] = [
        {**rule, "outcome": {**rule["outcome"], "action": "hold_for_binding_decision"}} for rule in body["rules"]
    ]
    return body


def _bind(made: Advice) -> None:
    for verdict, facts in _FACTS.items():
        record = made.post("/api/decide", sample_request(**facts))
        assert record["verdict"] == verdict
        made.binding[verdict] = record
    made.report(made.binding["yes"], "execution", execution_status="executed")
    for _ in range(2):
        request = {**sample_request(**_FACTS["yes"]), "rulebook": namesake_rulebook()}
        made.namesake.append(made.post("/api/decide", request))
    made.report(made.namesake[0], "execution", execution_status="executed")


def _advise(made: Advice) -> None:
    """Asks all questions, and reports outcomes of the answers before any of a binding decision."""
    behave = made.upstream.behave
    for name, question in QUESTIONS.items():
        made.upstream.behave = behave
        if name in _ANSWERS:
            made.upstream.answer(_ANSWERS[name])
        made.advisory[name] = made.post("/api/decide", question)
    made.upstream.behave = behave
    for name in ACTED_ON:
        record = made.advisory[name]
        made.report(record, "outcome", outcome_status="failed", observed_metrics={"margin": -1e6, "advice": 1})
        made.report(record, "crm-sync", sync_status="written")
        made.report(record, "execution", execution_status="executed", action_taken="refund")
    made.report(made.advisory["multi"], "outcome", outcome_status="succeeded", action_executed=True)
    made.report(made.binding["yes"], "outcome", outcome_status="succeeded", observed_metrics={"margin": 12})
    made.report(made.namesake[0], "outcome", outcome_status="succeeded", observed_metrics={"margin": 7})
