"""A receiver of Decision Gate's webhooks. It verifies every event and handles each one once.

    GATE_WEBHOOK_SECRET=whsec_... flask --app docs/examples/webhook_receiver.py run --port 9000

`gate webhooks add` prints the secret. Needs `pip install flask standardwebhooks`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any

from flask import Flask, request
from standardwebhooks import Webhook, WebhookVerificationError


def create_app(
    secret: str | None = None,
    database: str = "received.db",
    handle: Callable[[dict[str, Any]], object] = print,
) -> Flask:
    """Creates the receiver.

    Args:
        secret: The endpoint's secret; if None, GATE_WEBHOOK_SECRET.
        database: The file with the ids of handled events.
        handle: Handles an event. Keep it short, or put the event into your own queue: the gate waits 15 seconds for a
            response.
    """
    webhook = Webhook(secret or os.environ["GATE_WEBHOOK_SECRET"])
    with sqlite3.connect(database) as opened:
        opened.execute("CREATE TABLE IF NOT EXISTS handled (event_id TEXT PRIMARY KEY)")
    app = Flask(__name__)

    @app.post("/hook")
    def hook() -> tuple[str, int]:
        try:
            # Verify the raw bytes: serializing the parsed event again could change the signed text.
            event = webhook.verify(request.get_data(), dict(request.headers))
        except WebhookVerificationError:
            return "", 401
        # An event may arrive more than once, always with the same webhook-id. The id is stored in the transaction that
        # handles the event: if handling fails, the gate sends it again.
        with sqlite3.connect(database) as transaction:
            new = transaction.execute("INSERT OR IGNORE INTO handled VALUES (?)", [request.headers["webhook-id"]])
            if new.rowcount:
                handle(event)
        return "", 204

    return app
