"""What endpoints verify with, as the library of the specification verifies it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from gate.clock import utc_now
from gate.services.webhooks.retries import DELAYS, JITTER, MAX_TRIES, next_try
from gate.services.webhooks.secrets import endpoint_secret, signed_headers

KEY = bytes(range(32))
BODY = '{"type":"decision.review","data":{"policy_version":"ü-1"}}'.encode()


def test_a_signed_event_verifies_and_an_altered_one_does_not() -> None:
    secret = endpoint_secret(KEY, "s", "whe_1", 1)
    headers = signed_headers([secret], "evt_1", BODY, utc_now())
    assert Webhook(secret).verify(BODY, headers)["type"] == "decision.review"
    for altered in (
        {**headers, "webhook-id": "evt_2"},
        {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)},
        {**headers, "webhook-signature": headers["webhook-signature"][:-4] + "AAA="},
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(BODY, altered)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(BODY.replace(b"review", b"reveal"), headers)


def test_an_old_event_is_refused_by_its_timestamp() -> None:
    secret = endpoint_secret(KEY, "s", "whe_1", 1)
    headers = signed_headers([secret], "evt_1", BODY, utc_now() - timedelta(minutes=6))
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(secret).verify(BODY, headers)


def test_during_a_rotation_both_secrets_verify() -> None:
    old, new = (endpoint_secret(KEY, "s", "whe_1", generation) for generation in (1, 2))
    headers = signed_headers([new, old], "evt_1", BODY, utc_now())
    for secret in (old, new):
        Webhook(secret).verify(BODY, headers)


def test_every_endpoint_and_every_generation_has_a_secret_of_its_own() -> None:
    named = [("s", "whe_1", 1), ("s", "whe_1", 2), ("s", "whe_2", 1), ("s2", "whe_1", 1), ("sw", "he_1", 1)]
    secrets = {endpoint_secret(KEY, *each) for each in named} | {endpoint_secret(bytes(32), "s", "whe_1", 1)}
    assert len(secrets) == len(named) + 1


def test_an_event_is_tried_ten_times_at_growing_distances_and_then_given_up() -> None:
    now = utc_now()
    waits = []
    for failed in range(1, MAX_TRIES):
        first, last = next_try(failed, now, 0.0), next_try(failed, now, 1.0)
        assert first is not None
        assert last is not None
        assert last - first == (first - now) * JITTER
        waits.append(first - now)
    assert waits == sorted(waits) == list(DELAYS)
    assert waits[0] == timedelta(seconds=5)
    assert sum(waits, timedelta()) > timedelta(days=3)
    assert next_try(MAX_TRIES, now, 0.5) is None
