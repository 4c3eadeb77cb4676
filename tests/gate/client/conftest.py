"""A client of the real application, over its WSGI entry, and a guard's store in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask.testing import FlaskClient

from gate.client import Client, SqliteStore
from gate.instance.instance import Instance

Rewrite = Callable[[httpx.Request, httpx.Response], httpx.Response]


class Service(httpx.BaseTransport):
    """The application, with whatever a test lets happen to answers on their way.

    Attributes:
        requests: What was sent, in order.
        rewrite: What becomes of an answer; it may raise as a network does.
    """

    def __init__(self, client: FlaskClient) -> None:
        """Takes the application's client."""
        self._app = httpx.WSGITransport(client.application)
        self.requests: list[httpx.Request] = []
        self.rewrite: Rewrite = lambda request, response: response

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answers."""
        self.requests.append(request)
        response = self._app.handle_request(request)
        response.read()
        return self.rewrite(request, response)

    def asked(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(request.url.path == path or request.url.path.endswith(path) for request in self.requests)


@pytest.fixture
def service(client: FlaskClient) -> Service:
    """The application."""
    return Service(client)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A guard's store."""
    with SqliteStore(tmp_path / "intents.db") as opened:
        yield opened


@pytest.fixture
def make(service: Service, instance: Instance, key: str, store: SqliteStore) -> Iterator[Callable[..., Client]]:
    """Makes clients; what is not said is usual."""
    made: list[Client] = []

    def make(**said: Any) -> Client:
        usual: dict[str, Any] = {
            "key": key,
            "registry": instance.trust().receipt_keys.to_dict(),  # type: ignore[union-attr]
            "store": store,
            "transport": service,
            "tries": 1,
        }
        made.append(Client("http://gate.example", **(usual | said)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def gate(make: Callable[..., Client]) -> Client:
    """A client of the application."""
    return make()
