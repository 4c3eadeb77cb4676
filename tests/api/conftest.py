"""Fixtures: an upstream for the advisory modes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from gate.instance.instance import Instance
from gate.services.advisory.advisor import Advisor
from gate.services.advisory.upstream import Upstream
from tests.support.upstreams import UPSTREAM_KEY, Server, serving, well


@pytest.fixture(scope="module")
def _server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def upstream(_server: Server, instance: Instance, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The upstream that the instance of `client` asks."""
    _server.asked.clear()
    _server.behave = well
    monkeypatch.setitem(instance.__dict__, "advisor", Advisor(Upstream(_server.url, "model-1", 5.0, UPSTREAM_KEY)))
    return _server
