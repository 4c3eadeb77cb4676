"""Makes the facts of a refund policy of what the systems of record say: an order, its payment, and the claim.

Amounts come in minor units, as payment providers keep them, and dates as YYYY-MM-DD. What cannot be said for want of
what it is made of is left out, so that a policy that requires it does not approve. A claim counts for what the customer
wants and why; currency, age, share and destination of the money are the order's and the payment's.
"""

from fractions import Fraction
from math import floor

# ISO 4217: the currencies whose minor unit is not a hundredth.
DIGITS = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG"), 0),
    **dict.fromkeys(("RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}


def facts(given):
    """The facts that can be made of what is given."""
    order, payment, claim = given["order"], given["payment"], given["claim"]
    lines = claimed_lines(order.get("lines"), claim.get("line_ids"))
    made = {
        "amount": when(major, claim.get("amount_minor"), payment.get("currency")),
        "currency": payment.get("currency"),
        "share_of_payment_percent": when(
            share, claim.get("amount_minor"), payment.get("refunded_minor"), payment.get("captured_minor")
        ),
        "days_since_purchase": when(days_between, order.get("placed_on"), claim.get("claimed_on")),
        "reason": claim.get("reason"),
        "final_sale": when(any, told_of(lines, "final_sale")),
        "fraud_flag": payment.get("fraud_flag"),
        "chargeback_open": when(is_disputed, payment.get("dispute_statuses")),
        "prior_refunds_12_months": when(within_a_year, order.get("customer_refunds_on"), claim.get("claimed_on")),
        "to_original_payment_method": when(is_same, claim.get("payout_method_id"), payment.get("method_id")),
        "evidence": when(sorted, when(set, claim.get("evidence"))),
        "item_returned": when(all, told_of(lines, "returned")),
    }
    return {name: fact for name, fact in made.items() if fact is not None}


def when(make, *sources):
    """What is made of the sources, where all of them are there."""
    return None if None in sources else make(*sources)


def claimed_lines(lines, line_ids):
    """The lines of the order that are claimed; None where one of them is no line of the order, or none is claimed."""
    found = {line["line_id"]: line for line in lines or []}
    if not line_ids or any(line_id not in found for line_id in line_ids):
        return None
    return [found[line_id] for line_id in line_ids]


def told_of(lines, name):
    """What each line says, where every one of them says it."""
    told = None if lines is None else [line.get(name) for line in lines]
    return None if told is None or None in told else told


def major(minor, currency):
    """An amount in the currency's own unit."""
    digits = DIGITS.get(currency, 2)
    return minor if digits == 0 else minor / 10**digits


def share(minor, refunded, captured):
    """How much of the payment would have gone back, in percent, to two digits; halves are rounded up."""
    if captured == 0:
        return None
    return floor(Fraction((minor + refunded) * 10000, captured) + Fraction(1, 2)) / 100


def is_disputed(statuses):
    """Whether a dispute of the payment is not settled."""
    return "open" in statuses


def is_same(one, other):
    """Whether two ids are one."""
    return one == other


def within_a_year(dates, day):
    """How many of the dates are in the twelve months up to a day: 365 days."""
    return sum(0 <= days_between(date, day) <= 365 for date in dates)


def days_between(earlier, later):
    """The days from one date to another."""
    return day_number(later) - day_number(earlier)


def day_number(date):
    """The days from the 1st of March of the year 0 to a date, by the Gregorian calendar."""
    year, month, day = (int(part) for part in date.split("-"))
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
