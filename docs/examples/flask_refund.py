"""A Flask endpoint that pays refunds: on a verified yes, and once for each refund that is asked for.

    POST /orders/order-77/refund   {"refund_id": "r-1", "amount": 64.9, "reason": "changed_mind"}

    200   it is paid, now or by an earlier request with this refund_id
    202   a person has to decide; nothing was paid
    400   the request cannot be understood
    403   the gate says no; the answer has the evidence
    409   it was begun before, and did not end well, or has not ended; or something else was paid under this refund_id
    500   something failed here, and perhaps after the money had moved: ask again with the same refund_id and no other
    502   the payment side did not say that it paid; a person looks whether it did
    503   there is no verdict; ask again after Retry-After, with the same refund_id

What has neither the refund nor the evidence says `why`, in a sentence.

Whoever asks says which refund is meant and how much it is to be. What is true of the order is the shop's own knowledge:
the one who wants the money does not choose the facts.

What came of it is known hours later, and perhaps to another process. The payment side sends the decision's id back with
its event, and the outcome is reported under the event's own id, so that an event that comes twice counts once. It
delivers an event until it hears 200: 503 is for what may pass, and what never will is logged and acknowledged.

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
    """The payment side did not say that it paid."""


class Shop(Protocol):
    """What the shop knows of its orders."""

    def payment_of(self, order_id: str) -> str:
        """The id of the payment that paid an order."""

    def refund_facts(self, order_id: str, amount: float, reason: str) -> Mapping[str, Any]:
        """The facts that the policy decides over."""


class Payments(Protocol):
    """The payment side."""

    def refund(self, payment_id: str, amount: float, currency: str, *, reference: str, note: str) -> str:
        """Pays money back; its own id of the refund. A second one under one reference is refused, and so is what it
        cannot pay: PaymentFailed.
        """


def create_app(client: Client, shop: Shop, payments: Payments) -> Flask:
    """The application. The client has a store that outlives the process, and the service's pinned keys."""
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
                return {"status": "not noted", "why": "It cannot be reported now; deliver it again."}, 503
            app.logger.error("An event is given up: %r: %r", event, error)
            return {"status": "given up", "why": "It can never be reported; it is logged."}, 200
        return {"status": "noted"}, 200

    @app.errorhandler(Blocked)
    def blocked(error: Blocked) -> ResponseReturnValue:
        return {"status": "refused", **evidence(error)}, 403

    @app.errorhandler(HeldForReview)
    def held(error: HeldForReview) -> ResponseReturnValue:
        return {"status": "held for review", **evidence(error)}, 202

    @app.errorhandler(GateUnavailable)
    def unavailable(error: GateUnavailable) -> ResponseReturnValue:
        # Some of it, such as an unknown key, only heals once a person has read this line.
        app.logger.warning("A refund is held: %s", error)
        seconds = math.ceil(error.retry_after or COME_AGAIN)
        told = {"status": "not decided", "error": error.code, "why": "There is no verdict now; nothing was paid."}
        return told, 503, {"retry-after": str(seconds)}

    @app.errorhandler(PaymentFailed)
    def not_paid(error: PaymentFailed) -> ResponseReturnValue:
        app.logger.error("The payment side failed: %s", error)
        return {"status": "not known", "why": "The payment side did not say that it paid; a person looks."}, 502

    @app.errorhandler(StoreUnavailable)
    def not_kept(error: StoreUnavailable) -> ResponseReturnValue:
        # Raised on leaving the guard alone; what fails before the payment is GateUnavailable.
        app.logger.critical("A refund was paid, and that could not be kept: %s", error)
        return {"status": "paid and not kept", "why": "It was paid; do not ask for it under another refund_id."}, 500

    @app.errorhandler(MaterialRefused)
    @app.errorhandler(RequestRefused)
    def refused(error: GateError) -> ResponseReturnValue:
        return {"status": "not understood", "error": error.code, "why": error.message}, 400

    @app.errorhandler(500)
    def failed(_: Exception) -> ResponseReturnValue:
        # Flask has logged what.
        return {"status": "failed", "why": "Something failed; ask again with the same refund_id and no other."}, 500

    return app


def understood(asked: Any) -> tuple[str, float, str]:
    """Which refund is asked for, how much it is to be, and why. Raises ValueError, with a sentence for whoever asks."""
    if not isinstance(asked, dict):
        raise ValueError("The body must be a JSON object with refund_id, amount and reason.")
    refund_id, amount, reason = asked.get("refund_id"), asked.get("amount"), asked.get("reason")
    if not (isinstance(refund_id, str) and refund_id.strip() and isinstance(reason, str) and reason.strip()):
        raise ValueError("refund_id and reason must be texts, and not empty.")
    # To Python true is a number as well.
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
        raise ValueError("amount must be a finite number above zero.")
    return refund_id, amount, reason


def begun_before(error: AlreadyStarted, context: Mapping[str, Any]) -> ResponseReturnValue:
    """What became of a refund that was begun under this refund_id, held to what is asked for now."""
    known = error.execution or {}
    if error.intent is None or known.get("execution_status") != "executed":
        # It goes on, or its process died, or the payment side failed: a person looks, and `gate client settle` says.
        ended = known.get("execution_status", "not known")
        why = "It was begun before, and a person looks what became of it."
        return {"status": "begun before", "ended": ended, "why": why, "decision_id": error.decision_id}, 409
    then = error.intent.request["context"]
    if any(then[name] != context[name] for name in ("source_record_id", "amount", "currency")):
        paid = f"{then['amount']} {then['currency']} for {then['source_record_id']}"
        why = f"Under this refund_id {paid} was paid; ask for anything else under another one."
        return {"status": "another refund", "why": why, "decision_id": error.decision_id}, 409
    return {"status": "paid", "refund": known.get("external_ref"), "decision_id": error.decision_id}, 200


def is_final(error: GateError) -> bool:
    """Whether an outcome will never be taken. A proxy in front of the service cannot say so."""
    if isinstance(error, Refused):
        return not error.code.startswith("HTTP_")
    return isinstance(error, MaterialRefused | RequestRefused) or error.code in FINAL


def evidence(error: NotPermitted) -> dict[str, Any]:
    """What the gate said, for whoever asked."""
    record = error.record or {}
    return {name: record.get(name) for name in ("decision_id", "verdict", "reason_code", "evidence")}
