"""The secrets that endpoints verify with, and the headers that they sign.

    secret = endpoint_secret(key, scope_id, endpoint_id, generation)      # "whsec_..."
    headers = signed_headers([secret], event_id, body, now)

A secret is made of the instance's key file, the endpoint and the number of its rotations: it can be shown again, and
the ledger and its replicas hold none.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from standardwebhooks import Webhook

from gate.encoding.canonical import canonical

PREFIX: Final = "whsec_"

ROTATION: Final = timedelta(hours=24)
"""How long after a rotation the secret before it signs as well."""

# So that no other use of the key makes a secret.
_PURPOSE: Final = b"webhook_secret_v1\0"


def endpoint_secret(key: bytes, scope_id: str, endpoint_id: str, generation: int) -> str:
    """The secret of an endpoint.

    Args:
        key: The content of the instance's key file.
        scope_id: The scope.
        endpoint_id: The endpoint.
        generation: How often its secret was rotated.
    """
    named = canonical([scope_id, endpoint_id, generation])
    return PREFIX + base64.b64encode(hmac.digest(key, _PURPOSE + named, "sha256")).decode()


def signed_headers(secrets: Sequence[str], event_id: str, body: bytes, now: datetime) -> dict[str, str]:
    """The headers of a delivery.

    Args:
        secrets: The endpoint's secrets, the newest first; each makes a signature.
        event_id: The id of the event, the same at every try.
        body: The bytes that are sent.
        now: The moment of this try.
    """
    text = body.decode()
    signatures = [Webhook(secret).sign(event_id, now, text) for secret in secrets]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
