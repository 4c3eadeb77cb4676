"""A guard that is answered by a sandbox runs nothing."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from gate.client import Client, GateUnavailable
from tests.gate.client.conftest import Service
from tests.gate.client.guarding import YES, guarding
from tests.support.samples import sample_request
from tests.support.sandbox import DISGUISES


@pytest.mark.parametrize("disguise", DISGUISES)
def test_no_body_runs_on_an_answer_of_the_sandbox(gate: Client, service: Service, disguise: str) -> None:
    other: Any = gate.decide(sample_request(discount_percent=12, margin_percent=30))
    asked = len(service.requests)

    def sandboxed(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if request.url.path != "/api/decide":
            return response
        answered = gate.try_decide(json.loads(request.content))
        return httpx.Response(200, json=DISGUISES[disguise](dict(answered), other))

    service.rewrite = sandboxed
    ran = False
    with pytest.raises(GateUnavailable), guarding(gate, YES):
        ran = True
    assert not ran
    assert service.asked("/api/sandbox/decide") > 0
    assert not [each for each in service.requests[asked:] if each.url.path.endswith("/execution")]
