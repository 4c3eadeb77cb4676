"""A Flask endpoint that pays refunds: on a verified yes, and once for each refund that is asked for.

    POST /orders/order-77/refund   {"refund_id": "r-1", "amount": 64.9, "reason": "changed_mind"}

    200   it is paid, now or by an earlier request with this refund_id
    202   a person has to decide; nothing was paid
    400   the request cannot be understood
    403   the gate says no; the answer has the evidence
    409   it was begun before, and did not end well, or has not ended
    503   there is no verdict; ask again after Retry-After, with the same refund_id

Whoever asks says which refund is meant and how much it is to be. What is true of the order is the shop's own knowledge:
the one who wants the money does not choose the facts.

What came of it is known hours later, and perhaps to another process. The payment side sends the decision's id back with
its event, and the outcome is reported under the event's own id, so that an event that comes twice counts once.

Who may call these endpoints is checked in front of them, and left out here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Protocol

from flask import Flask, request
from flask.typing import ResponseReturnValue

from gate.client import (
    AlreadyStarted,
    ApiError,
    Blocked,
    Client,
    GateError,
    GateUnavailable,
    HeldForReview,
    MaterialRefused,
    NotPermitted,
    RequestRefused,
    Target,
)

POLICY: Final = "refund_policy@2026-09-01"
COME_AGAIN: Final = 5


class Shop(Protocol):
    """What the shop knows of its orders."""

    def payment_of(self, order_id: str) -> str:
        """The id of the payment that paid an order."""

    def refund_facts(self, order_id: str, amount: float, reason: str) -> Mapping[str, Any]:
        """The facts that the policy decides over."""


class Payments(Protocol):
    """The payment side."""

    def refund(self, payment_id: str, amount: float, currency: str, *, reference: str, note: str) -> str:
        """Pays money back; its own id of the refund. A second refund under one reference is refused."""


def create_app(client: Client, shop: Shop, payments: Payments) -> Flask:
    """The application. The client has a store that outlives the process, and the service's pinned keys."""
    app = Flask(__name__)

    @app.post("/orders/<order_id>/refund")
    def refund(order_id: str) -> ResponseReturnValue:
        asked = request.get_json()
        try:
            refund_id, amount, reason = str(asked["refund_id"]), float(asked["amount"]), str(asked["reason"])
        except (KeyError, TypeError, ValueError):
            return {"status": "not understood"}, 400
        payment_id, currency = shop.payment_of(order_id), "EUR"
        with client.guard(
            POLICY,
            shop.refund_facts(order_id, amount, reason),
            action="issue_refund",
            target=Target("payments", payment_id, "refund.create"),
            intent=refund_id,
            context={
                "workflow": "refund_request",
                "source_record_id": order_id,
                "actor": {"type": "service", "id": "shop"},
                "amount": amount,
                "currency": currency,
            },
            expected_action="issue_refund",
        ) as permit:
            paid = payments.refund(payment_id, amount, currency, reference=permit.intent_id, note=permit.decision_id)
            permit.describe(external_ref=paid)
        return {"status": "paid", "refund": paid, "decision_id": permit.decision_id}, 200

    @app.post("/payment-events")
    def payment_event() -> ResponseReturnValue:
        event = request.get_json()
        arrived = event["status"] == "arrived"
        client.report_outcome(
            event["note"],
            {
                "outcome_status": "succeeded" if arrived else "failed",
                "external_ref": event["refund"],
                "observed_metrics": {"hours_to_payout": event["hours"]},
            },
            idempotency_key=event["event_id"],
        )
        return {"status": "noted"}, 200

    @app.errorhandler(Blocked)
    def blocked(error: Blocked) -> ResponseReturnValue:
        return {"status": "refused", **evidence(error)}, 403

    @app.errorhandler(HeldForReview)
    def held(error: HeldForReview) -> ResponseReturnValue:
        return {"status": "held for review", **evidence(error)}, 202

    @app.errorhandler(GateUnavailable)
    def unavailable(error: GateUnavailable) -> ResponseReturnValue:
        app.logger.warning("A refund is held: %s", error)
        seconds = math.ceil(error.retry_after or COME_AGAIN)
        return {"status": "not decided", "error": error.code}, 503, {"retry-after": str(seconds)}

    @app.errorhandler(AlreadyStarted)
    def already_started(error: AlreadyStarted) -> ResponseReturnValue:
        known = error.execution or {}
        if known.get("execution_status") == "executed":
            return {"status": "paid", "refund": known.get("external_ref"), "decision_id": error.decision_id}, 200
        # It goes on, or its process died, or the payment side failed: a person looks, and `gate client settle` says.
        ended = known.get("execution_status", "not known")
        return {"status": "begun before", "ended": ended, "decision_id": error.decision_id}, 409

    @app.errorhandler(MaterialRefused)
    @app.errorhandler(RequestRefused)
    def refused(error: GateError) -> ResponseReturnValue:
        return {"status": "not understood", "error": error.code}, 400

    @app.errorhandler(ApiError)
    def not_reported(error: ApiError) -> ResponseReturnValue:
        # The payment side delivers an event until it is noted.
        app.logger.warning("An outcome could not be reported: %s", error)
        return {"status": "not noted"}, 503

    return app


def evidence(error: NotPermitted) -> dict[str, Any]:
    """What the gate said, for whoever asked."""
    record = error.record or {}
    return {name: record.get(name) for name in ("decision_id", "verdict", "reason_code", "evidence")}
