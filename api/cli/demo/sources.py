"""The input of adapters in the demo: sources from which an adapter makes the drawn facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Final, NamedTuple, TypeAlias, TypedDict, cast

from api.cli.demo.drawing import Values
from api.cli.demo.requests import Decided
from gate.adapters.manifest import Adapter
from gate.encoding.strict_json import Json, JsonObject
from gate.records.documents import DecisionBody

# Nine of them are within a year.
_DAYS_BETWEEN_REFUNDS: Final = 37


class _RefundValues(TypedDict):
    """The drawn values of a refund that its sources contain."""

    amount: float
    share_of_payment_percent: float
    order: int
    customer: int
    to_original_payment_method: bool
    prior_refunds_12_months: int
    days_since_purchase: int
    currency: str
    fraud_flag: bool
    chargeback_open: bool
    reason: str
    evidence: list[Json]
    final_sale: bool
    item_returned: bool | None


class _Given(NamedTuple):
    """The input of an adapter, and the facts that it makes in addition to the drawn ones."""

    input: JsonObject
    more: JsonObject


def by_adapter(decided: Decided, adapter: Adapter, day: date) -> Decided:
    """Returns the same decision with a request for an adapter, without the facts that the adapter does not make."""
    made = adapter.manifest["output_schema"]["properties"]
    facts = {name: value for name, value in decided.facts.items() if name in made}
    given, more = _SOURCES[adapter.name](facts, decided.values, day)
    invocation: JsonObject = {
        "adapter_id": adapter.adapter_id,
        "version": adapter.version,
        "manifest_hash": adapter.manifest_hash,
        "input": given,
    }
    # The context without `inputs`: a request has its facts from the caller or from an adapter, never from both.
    request: DecisionBody = {**decided.request, "context": decided.context, "adapter": invocation}
    return replace(decided, request=request, facts=facts | more)


def _refund_sources(facts: Mapping[str, Json], drawn: Values, day: date) -> _Given:
    """Returns an order, its payment, and a claim, from which `refund_facts` makes facts. For a missing fact, its source
    is missing.

    Args:
        facts: The facts.
        drawn: All drawn values, including missing facts.
        day: The day of the decision.
    """
    values = cast("_RefundValues", drawn)
    claimed = round(values["amount"] * 100)
    captured, refunded = claimed, 0
    if values["share_of_payment_percent"] != 100:
        # What was paid back before makes the share, which has one digit, exact to the cent.
        tenths = round(values["share_of_payment_percent"] * 10)
        tens = -(-claimed // tenths)
        captured, refunded = tens * 1000, tens * tenths - claimed
    order_id, method = f"order-{values['order']}", f"method-{values['customer']}"
    line = f"{order_id}-1"
    payout = method if values["to_original_payment_method"] else f"{method}-other"
    earlier = range(1, values["prior_refunds_12_months"] + 1)
    told: Mapping[str, Mapping[str, tuple[str, Json]]] = {
        "order": {
            "placed_on": ("days_since_purchase", _days_before(day, values["days_since_purchase"])),
            "customer_refunds_on": (
                "prior_refunds_12_months",
                [_days_before(day, _DAYS_BETWEEN_REFUNDS * number) for number in earlier],
            ),
        },
        "payment": {
            "currency": ("currency", values["currency"]),
            "captured_minor": ("share_of_payment_percent", captured),
            "refunded_minor": ("share_of_payment_percent", refunded),
            "fraud_flag": ("fraud_flag", values["fraud_flag"]),
            "dispute_statuses": ("chargeback_open", ["open"] if values["chargeback_open"] else []),
        },
        "claim": {
            "amount_minor": ("amount", claimed),
            "reason": ("reason", values["reason"]),
            "payout_method_id": ("to_original_payment_method", payout),
            "evidence": ("evidence", values["evidence"]),
        },
    }
    order, payment, claim = (
        {name: value for name, (fact, value) in sources.items() if fact in facts} for sources in told.values()
    )
    of_line = {"final_sale": "final_sale", "returned": "item_returned"}
    states = {name: drawn[fact] for name, fact in of_line.items() if fact in facts}
    paid: JsonObject = {"line_id": line, "paid_minor": claimed, "refunded_minor": 0}
    given: JsonObject = {
        "as_of": day.isoformat(),
        "order": {**order, "order_id": order_id, "lines": [{**paid, **states}]},
        "payment": {**payment, "order_id": order_id, "method_id": method},
        "claim": {**claim, "line_ids": [line]},
    }
    more: JsonObject = {"payment_of_order": True}
    more |= {"exceeds_claimed_lines": False} if "amount" in facts else {}
    more |= {"chargeback_lost": False} if "chargeback_open" in facts else {}
    more |= {"some_item_returned": facts["item_returned"]} if "item_returned" in facts else {}
    return _Given(given, more)


def _days_before(day: date, days: int) -> str:
    return (day - timedelta(days=days)).isoformat()


_Sources: TypeAlias = Callable[[Mapping[str, Json], Values, date], _Given]

_SOURCES: Final[Mapping[str, _Sources]] = {"refund_facts@1.0.0": _refund_sources}
"""The function that makes the input of each adapter that scopes may name."""
