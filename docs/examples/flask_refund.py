"""A Flask endpoint that pays refunds: only on a verified yes, and once per requested refund.

    POST /orders/order-77/refund   {"refund_id": "r-1", "amount": 64.9, "reason": "changed_mind"}

    200   the refund was paid, now or by an earlier request with this refund_id
    202   a person has to decide; nothing was paid
    400   the request is invalid
    403   the gate says no; the response has the evidence
    409   the refund began before and failed or has not ended, or another refund was paid under this refund_id
    500   something failed here, perhaps after the money moved: retry with the same refund_id, never with another one
    502   the payment service did not confirm the payment; a person has to check
    503   there is no verdict; retry after Retry-After with the same refund_id

A response without a refund or evidence has a sentence in `why`.

The requester chooses the refund and its amount. The facts about the order come from the shop, because a requester who
wants the money must not choose them.

The outcome is known hours later, perhaps in another process. The payment service returns the decision's id with its
event. The event's id is the idempotency key of the outcome, so that a repeated event counts once. The payment service
repeats an event until it gets 200: this endpoint returns 503 for temporary errors, and logs and accepts the rest.

Authentication happens in front of these endpoints and is omitted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Protocol

from flask import Flask, request
from flask.typing import ResponseReturnValue

from gate.client import (
    AlreadyStarted,
    Blocked,
    Client,
    GateError,
    GateUnavailable,
    HeldForReview,
    MaterialRefused,
    NotPermitted,
    Refused,
    RequestRefused,
    StoreUnavailable,
    Target,
)

POLICY: Final = "refund_policy@2026-09-01"
COME_AGAIN: Final = 5
FINAL: Final = ("SVC_DECISION_NOT_FOUND", "SVC_OUTCOME_IDEMPOTENCY_CONFLICT")


class PaymentFailed(Exception):
    """The payment service did not confirm the payment."""


class Shop(Protocol):
    """The shop's data about its orders."""

    def payment_of(self, order_id: str) -> str:
        """The id of the payment for an order."""

    def refund_facts(self, order_id: str, amount: float, reason: str) -> Mapping[str, Any]:
        """The facts that the policy decides on."""


class Payments(Protocol):
    """The payment service."""

    def refund(self, payment_id: str, amount: float, currency: str, *, reference: str, note: str) -> str:
        """Pays a refund and returns its id. Raises PaymentFailed if it cannot pay, or if the reference was used."""


def create_app(client: Client, shop: Shop, payments: Payments) -> Flask:
    """Creates the application. The client needs a store that outlives the process, and the service's pinned keys."""
    app = Flask(__name__)

    @app.post("/orders/<order_id>/refund")
    def refund(order_id: str) -> ResponseReturnValue:
        try:
            refund_id, amount, reason = understood(request.get_json(silent=True))
        except ValueError as error:
            return {"status": "not understood", "why": str(error)}, 400
        payment_id, currency = shop.payment_of(order_id), "EUR"
        context = {
            "workflow": "refund_request",
            "source_record_id": order_id,
            "actor": {"type": "service", "id": "shop"},
            "amount": amount,
            "currency": currency,
        }
        try:
            with client.guard(
                POLICY,
                shop.refund_facts(order_id, amount, reason),
                action="issue_refund",
                target=Target("payments", payment_id, "refund.create"),
                intent=refund_id,
                context=context,
            ) as permit:
                paid = payments.refund(
                    payment_id, amount, currency, reference=permit.intent_id, note=permit.decision_id
                )
                permit.describe(external_ref=paid)
        except AlreadyStarted as error:
            return begun_before(error, context)
        return {"status": "paid", "refund": paid, "decision_id": permit.decision_id}, 200

    @app.post("/payment-events")
    def payment_event() -> ResponseReturnValue:
        event: Any = request.get_json(silent=True)
        try:
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
        except (KeyError, TypeError, GateError) as error:
            if isinstance(error, GateError) and not is_final(error):
                app.logger.warning("An outcome could not be reported: %s", error)
                return {"status": "not noted", "why": "The outcome cannot be reported now; send the event again."}, 503
            app.logger.error("An event is given up: %r: %r", event, error)
            return {"status": "given up", "why": "The outcome cannot be reported; the event is logged."}, 200
        return {"status": "noted"}, 200

    @app.errorhandler(Blocked)
    def blocked(error: Blocked) -> ResponseReturnValue:
        return {"status": "refused", **evidence(error)}, 403

    @app.errorhandler(HeldForReview)
    def held(error: HeldForReview) -> ResponseReturnValue:
        return {"status": "held for review", **evidence(error)}, 202

    @app.errorhandler(GateUnavailable)
    def unavailable(error: GateUnavailable) -> ResponseReturnValue:
        # A person has to fix some causes, such as an unknown key, so log them.
        app.logger.warning("A refund is held: %s", error)
        seconds = math.ceil(error.retry_after or COME_AGAIN)
        told = {"status": "not decided", "error": error.code, "why": "There is no verdict now; nothing was paid."}
        return told, 503, {"retry-after": str(seconds)}

    @app.errorhandler(PaymentFailed)
    def not_paid(error: PaymentFailed) -> ResponseReturnValue:
        app.logger.error("The payment service failed: %s", error)
        return {"status": "not known", "why": "The payment service did not confirm it; a person will check."}, 502

    @app.errorhandler(StoreUnavailable)
    def not_kept(error: StoreUnavailable) -> ResponseReturnValue:
        # Raised only on leaving the guard; a store that fails before the payment raises GateUnavailable.
        app.logger.critical("A refund was paid, but its end could not be stored: %s", error)
        return {"status": "paid and not kept", "why": "It was paid; do not request it with another refund_id."}, 500

    @app.errorhandler(MaterialRefused)
    @app.errorhandler(RequestRefused)
    def refused(error: GateError) -> ResponseReturnValue:
        return {"status": "not understood", "error": error.code, "why": error.message}, 400

    @app.errorhandler(500)
    def failed(_: Exception) -> ResponseReturnValue:
        # Flask has logged the exception.
        return {"status": "failed", "why": "Something failed; retry with the same refund_id, never another."}, 500

    return app


def understood(asked: Any) -> tuple[str, float, str]:
    """Returns refund_id, amount and reason. Raises ValueError with a sentence for the requester."""
    if not isinstance(asked, dict):
        raise ValueError("The body must be a JSON object with refund_id, amount and reason.")
    refund_id, amount, reason = asked.get("refund_id"), asked.get("amount"), asked.get("reason")
    if not (isinstance(refund_id, str) and refund_id.strip() and isinstance(reason, str) and reason.strip()):
        raise ValueError("refund_id and reason must be non-empty strings.")
    # In Python, True is also an int.
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
        raise ValueError("amount must be a finite number above zero.")
    return refund_id, amount, reason


def begun_before(error: AlreadyStarted, context: Mapping[str, Any]) -> ResponseReturnValue:
    """The response for a refund that began before under this refund_id, compared with the current request."""
    known = error.execution or {}
    if error.intent is None or known.get("execution_status") != "executed":
        # It is still running, its process died, or the payment failed: a person checks and uses `gate client settle`.
        ended = known.get("execution_status", "not known")
        why = "The refund began before, and a person will check how it ended."
        return {"status": "begun before", "ended": ended, "why": why, "decision_id": error.decision_id}, 409
    then = error.intent.request["context"]
    if any(then[name] != context[name] for name in ("source_record_id", "amount", "currency")):
        paid = f"{then['amount']} {then['currency']} for {then['source_record_id']}"
        why = f"{paid} was paid under this refund_id; use another refund_id for another refund."
        return {"status": "another refund", "why": why, "decision_id": error.decision_id}, 409
    return {"status": "paid", "refund": known.get("external_ref"), "decision_id": error.decision_id}, 200


def is_final(error: GateError) -> bool:
    """Whether the service will never accept an outcome. The response of a proxy does not prove that."""
    if isinstance(error, Refused):
        return not error.code.startswith("HTTP_")
    return isinstance(error, MaterialRefused | RequestRefused) or error.code in FINAL


def evidence(error: NotPermitted) -> dict[str, Any]:
    """The decision, for the requester."""
    record = error.record or {}
    return {name: record.get(name) for name in ("decision_id", "verdict", "reason_code", "evidence")}
