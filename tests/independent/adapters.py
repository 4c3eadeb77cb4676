"""A second, independent implementation of the adapters, from their descriptions and the formula of the score alone.

It shares no code with the product, and computes with integers, decimals and the calendar of `datetime`, where the
product has fractions and a calendar of its own, so that a mistake on one side does not hide on the other. Both take
what `json.loads` reads.
"""

from __future__ import annotations

import datetime
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from typing import Any

_EXACT = Context(prec=2000, rounding=ROUND_FLOOR)

_EVIDENCE_POINTS = {"thin": 28, "usable": 52, "strong": 74}
_RISK_POINTS = {"low": 6, "medium": 16, "high": 32}

# ISO 4217, table A.1: the minor units.
_HUNDREDTHS = frozenset(
    [
        "AED",
        "AFN",
        "ALL",
        "AMD",
        "AOA",
        "ARS",
        "AUD",
        "AWG",
        "AZN",
        "BAM",
        "BBD",
        "BDT",
        "BGN",
        "BMD",
        "BND",
        "BOB",
        "BRL",
        "BSD",
        "BTN",
        "BWP",
        "BYN",
        "BZD",
        "CAD",
        "CDF",
        "CHF",
        "CNY",
        "COP",
        "CRC",
        "CUP",
        "CVE",
        "CZK",
        "DKK",
        "DOP",
        "DZD",
        "EGP",
        "ERN",
        "ETB",
        "EUR",
        "FJD",
        "FKP",
        "GBP",
        "GEL",
        "GHS",
        "GIP",
        "GMD",
        "GTQ",
        "GYD",
        "HKD",
        "HNL",
        "HTG",
        "HUF",
        "IDR",
        "ILS",
        "INR",
        "IRR",
        "JMD",
        "KES",
        "KGS",
        "KHR",
        "KPW",
        "KYD",
        "KZT",
        "LAK",
        "LBP",
        "LKR",
        "LRD",
        "LSL",
        "MAD",
        "MDL",
        "MGA",
        "MKD",
        "MMK",
        "MNT",
        "MOP",
        "MRU",
        "MUR",
        "MVR",
        "MWK",
        "MXN",
        "MYR",
        "MZN",
        "NAD",
        "NGN",
        "NIO",
        "NOK",
        "NPR",
        "NZD",
        "PAB",
        "PEN",
        "PGK",
        "PHP",
        "PKR",
        "PLN",
        "QAR",
        "RON",
        "RSD",
        "RUB",
        "SAR",
        "SBD",
        "SCR",
        "SDG",
        "SEK",
        "SGD",
        "SHP",
        "SLE",
        "SOS",
        "SRD",
        "SSP",
        "STN",
        "SVC",
        "SYP",
        "SZL",
        "THB",
        "TJS",
        "TMT",
        "TOP",
        "TRY",
        "TTD",
        "TWD",
        "TZS",
        "UAH",
        "USD",
        "UYU",
        "UZS",
        "VES",
        "WST",
        "XCD",
        "YER",
        "ZAR",
        "ZMW",
    ]
)
_WITHOUT_MINOR_UNIT = frozenset(
    ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF")
) | {"XPF"}
_THOUSANDTHS = frozenset(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"))
_TEN_THOUSANDTHS = frozenset(("CLF", "UYW"))


def solana_execution_gate(given: dict[str, Any]) -> dict[str, Any]:
    """The facts of solana_execution_gate@1.0.0.

    score = round((48 + evidence + quorum + budget + recipient - risk - min(18, round(sol / 18))) / 1.55), from 0 to
    100; halves are rounded up.
    """
    with localcontext(_EXACT):
        # A double is a decimal of at most 1,075 digits.
        doubled = 2 * Decimal(given["sol_amount"])
        eighteenths = int((doubled + 18) // 36)
    size = eighteenths if eighteenths < 18 else 18
    signed = 13 if given["quorum_signed"] is True else -24
    covered = 13 if given["budget_within_policy"] is True else -24
    known = 12 if given["recipient_verified"] is True else -28
    evidence, risk = _EVIDENCE_POINTS[given["evidence_level"]], _RISK_POINTS[given["risk_level"]]
    hundredfold = 100 * (48 + evidence + signed + covered + known - risk - size)
    # round(x / 155) is floor((2 x + 155) / 310).
    score = sorted((0, (2 * hundredfold + 155) // 310, 100))[1]
    sure = score + 4 if given["evidence_level"] == "strong" else score - 2
    return given | {
        "decision_score": score,
        "decision_edge_points": score - 57,
        "confidence_pct": sorted((38, sure, 94))[1],
    }


def refund_facts(given: dict[str, Any]) -> dict[str, Any]:
    """The facts of refund_facts@1.0.0; one is left out where what it is made of is not given."""
    today, order, payment, claim = given["as_of"], given["order"], given["payment"], given["claim"]
    facts: dict[str, Any] = {}
    digits = _digits(payment.get("currency", ""))
    if "amount_minor" in claim and digits is not None:
        facts["amount"] = float(Decimal(claim["amount_minor"]).scaleb(-digits))
    if "amount_minor" in claim and payment.get("captured_minor", 0) > 0 and "refunded_minor" in payment:
        gone, captured = claim["amount_minor"] + payment["refunded_minor"], payment["captured_minor"]
        hundredths = (10000 * gone + captured - 1) // captured
        facts["share_of_payment_percent"] = float(Decimal(hundredths).scaleb(-2))
    if "placed_on" in order and order["placed_on"] <= today:
        facts["days_since_purchase"] = _days(order["placed_on"], today)
    # Days that are written alike come in the order of their texts.
    earlier = order.get("customer_refunds_on")
    if earlier is not None and max([today, *earlier]) == today:
        facts["prior_refunds_12_months"] = len([day for day in earlier if _days(day, today) < 366])
    if "dispute_statuses" in payment:
        disputes = payment["dispute_statuses"]
        facts |= {"chargeback_open": disputes.count("open") > 0, "chargeback_lost": disputes.count("lost") > 0}
    if "order_id" in order and "order_id" in payment:
        facts["payment_of_order"] = order["order_id"] == payment["order_id"]
    if "payout_method_id" in claim and "method_id" in payment:
        facts["to_original_payment_method"] = claim["payout_method_id"] == payment["method_id"]
    if "evidence" in claim:
        facts["evidence"] = sorted(dict.fromkeys(claim["evidence"]))
    for holder, name in ((payment, "currency"), (payment, "fraud_flag"), (claim, "reason")):
        if name in holder:
            facts[name] = holder[name]
    return facts | _of_lines(order.get("lines", []), claim.get("line_ids", []), claim.get("amount_minor"))


def _of_lines(lines: list[dict[str, Any]], claimed: list[str], amount: int | None) -> dict[str, Any]:
    ids = [line["line_id"] for line in lines]
    if not claimed or len(set(ids)) < len(ids) or len(set(claimed)) < len(claimed):
        return {}
    final, returned, left = [], [], amount
    for wanted in claimed:
        same = [line for line in lines if line["line_id"] == wanted]
        if not same:
            return {}
        final.append(same[-1].get("final_sale"))
        returned.append(same[-1].get("returned"))
        paid, back = same[-1].get("paid_minor"), same[-1].get("refunded_minor")
        left = None if left is None or paid is None or back is None else left - paid + back
    facts: dict[str, Any] = {}
    if left is not None:
        facts["exceeds_claimed_lines"] = left > 0
    if None not in final:
        facts["final_sale"] = final.count(True) > 0
    if None not in returned:
        facts |= {"item_returned": False not in returned, "some_item_returned": True in returned}
    return facts


def _digits(currency: str) -> int | None:
    if currency in _WITHOUT_MINOR_UNIT:
        return 0
    if currency in _THOUSANDTHS:
        return 3
    if currency in _TEN_THOUSANDTHS:
        return 4
    return 2 if currency in _HUNDREDTHS else None


def _days(earlier: str, later: str) -> int:
    return (datetime.date.fromisoformat(later) - datetime.date.fromisoformat(earlier)).days
