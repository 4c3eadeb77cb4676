"""Makes the facts of a refund policy of what the systems of record say: an order, its payment, and the claim.

Amounts come in minor units, as payment providers keep them, and dates as YYYY-MM-DD. What cannot be said for want of
what it is made of, or because that contradicts itself, is left out, so that a policy that requires it does not approve.
What the customer wants and why is the claim's; currency, share and destination of the money are the payment's, and the
age of the purchase runs from the order's day to the day that whoever calls decides as of.
"""

from fractions import Fraction
from math import ceil

# ISO 4217: the currencies whose minor unit is a hundredth, and of all how many digits it has.
HUNDREDTHS = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY "
    "COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR "
    "ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
    "MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP "
    "SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW"
)
DIGITS = {
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys(HUNDREDTHS.split(), 2),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}


def facts(given):
    """The facts that can be made of what is given."""
    day, order, payment, claim = given["as_of"], given["order"], given["payment"], given["claim"]
    lines = claimed_lines(order.get("lines"), claim.get("line_ids"))
    made = {
        "amount": when(major, claim.get("amount_minor"), payment.get("currency")),
        "currency": payment.get("currency"),
        "share_of_payment_percent": when(
            share, claim.get("amount_minor"), payment.get("refunded_minor"), payment.get("captured_minor")
        ),
        "exceeds_claimed_lines": when(
            exceeds, claim.get("amount_minor"), told_of(lines, "paid_minor"), told_of(lines, "refunded_minor")
        ),
        "payment_of_order": when(is_same, payment.get("order_id"), order.get("order_id")),
        "days_since_purchase": when(age, order.get("placed_on"), day),
        "reason": claim.get("reason"),
        "final_sale": when(any, told_of(lines, "final_sale")),
        "fraud_flag": payment.get("fraud_flag"),
        "chargeback_open": when(has_one, payment.get("dispute_statuses"), "open"),
        "chargeback_lost": when(has_one, payment.get("dispute_statuses"), "lost"),
        "prior_refunds_12_months": when(within_a_year, order.get("customer_refunds_on"), day),
        "to_original_payment_method": when(is_same, claim.get("payout_method_id"), payment.get("method_id")),
        "evidence": when(sorted, when(set, claim.get("evidence"))),
        "item_returned": when(all, told_of(lines, "returned")),
        "some_item_returned": when(any, told_of(lines, "returned")),
    }
    return {name: fact for name, fact in made.items() if fact is not None}


def when(make, *sources):
    """What is made of the sources, where all of them are there."""
    return None if None in sources else make(*sources)


def claimed_lines(lines, line_ids):
    """The lines of the order that are claimed; None where none is, or one is no single line of the order."""
    found = {line["line_id"]: line for line in lines or []}
    # Of two lines with one id, nobody can tell which is meant; and a line that is claimed twice was paid once.
    if not line_ids or len(found) != len(lines or []) or len(set(line_ids)) != len(line_ids):
        return None
    return [found[line_id] for line_id in line_ids] if all(line_id in found for line_id in line_ids) else None


def told_of(lines, name):
    """What each line says, where every one of them says it."""
    told = None if lines is None else [line.get(name) for line in lines]
    return None if told is None or None in told else told


def major(minor, currency):
    """An amount in the currency's own unit; None where that is not known."""
    digits = DIGITS.get(currency)
    return None if digits is None else minor / 10**digits


def share(minor, refunded, captured):
    """How much of the payment would have gone back, in percent, rounded up to two digits: more than all is over 100."""
    return None if captured == 0 else ceil(Fraction((minor + refunded) * 10000, captured)) / 100


def exceeds(minor, paid, refunded):
    """Whether an amount is more than what is left of the payment for the lines."""
    return minor > sum(paid) - sum(refunded)


def has_one(statuses, status):
    """Whether a dispute of the payment is in that state."""
    return status in statuses


def is_same(one, other):
    """Whether two ids are one."""
    return one == other


def age(placed, day):
    """The days from an order to a day; None where the order comes after it."""
    days = days_between(placed, day)
    return days if days >= 0 else None


def within_a_year(dates, day):
    """How many of the dates are the day itself or one of the 365 days before it; None where one comes after it."""
    ages = [days_between(date, day) for date in dates]
    return None if any(days < 0 for days in ages) else sum(days <= 365 for days in ages)


def days_between(earlier, later):
    """The days from one date to another."""
    return day_number(later) - day_number(earlier)


def day_number(date):
    """The days from the 1st of March of the year 0 to a date, by the Gregorian calendar."""
    year, month, day = (int(part) for part in date.split("-"))
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
