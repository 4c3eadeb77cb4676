"""A receiver of Decision Gate's webhooks: verifies every event, and handles each one once.

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
    """The receiver.

    Args:
        secret: The endpoint's secret; from GATE_WEBHOOK_SECRET where None.
        database: The file that remembers which events were handled.
        handle: What is done with an event. Keep it short, or put the event into a queue of your own: the gate waits 15
            seconds for an answer.
    """
    webhook = Webhook(secret or os.environ["GATE_WEBHOOK_SECRET"])
    with sqlite3.connect(database) as opened:
        opened.execute("CREATE TABLE IF NOT EXISTS handled (event_id TEXT PRIMARY KEY)")
    app = Flask(__name__)

    @app.post("/hook")
    def hook() -> tuple[str, int]:
        try:
            # The bytes as they came: parsing and writing them again would change what was signed.
            event = webhook.verify(request.get_data(), dict(request.headers))
        except WebhookVerificationError:
            return "", 401
        # An event may come more than once, always with the same webhook-id. It is remembered in the transaction that
        # handles it: where handling fails, the gate sends it again.
        with sqlite3.connect(database) as transaction:
            new = transaction.execute("INSERT OR IGNORE INTO handled VALUES (?)", [request.headers["webhook-id"]])
            if new.rowcount:
                handle(event)
        return "", 204

    return app
