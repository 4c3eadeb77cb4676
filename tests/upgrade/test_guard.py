"""Stores of guards that earlier releases kept: opened, delivered from, and as firm as ever."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from gate.client import Client
from tests.upgrade.guarding import became_of, opened, said_of
from tests.upgrade.kept import Exchange, Release


@pytest.fixture
def place(release: Release, database: Callable[[str], str]) -> str:
    """Where the store is."""
    file = release.folder / "intents.db"
    return str(file) if file.exists() else database("intents")


def test_reports_are_delivered_and_what_was_begun_does_not_begin_again(
    release: Release, service: httpx.Client, transport: httpx.WSGITransport, place: str
) -> None:
    kept = release.kept.read("guard")
    callers = release.kept.read("callers")
    registry = release.kept.read("receipt-keys")
    with (
        opened(place) as store,
        Client(
            "http://gate.example", key=callers["harbor"], registry=registry, store=store, transport=transport
        ) as client,
    ):
        for intent in kept["intents"]:
            assert said_of(store, intent["said"]["intent_id"]) == intent["said"], intent["end"]
        delivery = client.flush()
        assert (delivery.delivered, delivery.refused, delivery.failure) == (len(kept["pending"]), 0, None)
        for report in kept["pending"]:
            path = f"/api/decision/{report['decision_id']}/{report['kind']}"
            listed = Exchange("harbor", "GET", path).ask(service, callers).json()
            (told,) = next(reports for reports in listed.values() if isinstance(reports, list))
            assert told["idempotency_key"] == report["idempotency_key"]
        for intent in kept["intents"]:
            assert became_of(client, intent["asked"]) == intent["then"], intent["end"]
