"""Scores a transfer of SOL: how well it is evidenced and covered against how much and how risky it is.

    score = round((48 + evidence + quorum + budget + recipient - risk - min(18, round(sol_amount / 18))) / 1.55), 0..100

Everything is computed with exact fractions, and round is to the nearest whole number, halves up.
"""

from fractions import Fraction
from math import floor

EVIDENCE = {"thin": 28, "usable": 52, "strong": 74}
RISK = {"low": 6, "medium": 16, "high": 32}
THRESHOLD = 57


def facts(given):
    """The six inputs, with decision_score, decision_edge_points and confidence_pct."""
    points = 48 + EVIDENCE[given["evidence_level"]] - RISK[given["risk_level"]]
    points += 13 if given["quorum_signed"] else -24
    points += 13 if given["budget_within_policy"] else -24
    points += 12 if given["recipient_verified"] else -28
    points -= min(18, half_up(Fraction(given["sol_amount"]) / 18))
    score = clamp(0, half_up(Fraction(points * 100, 155)), 100)
    confidence = score + 4 if given["evidence_level"] == "strong" else score - 2
    return {
        "sol_amount": given["sol_amount"],
        "risk_level": given["risk_level"],
        "evidence_level": given["evidence_level"],
        "quorum_signed": given["quorum_signed"],
        "budget_within_policy": given["budget_within_policy"],
        "recipient_verified": given["recipient_verified"],
        "decision_score": score,
        "decision_edge_points": score - THRESHOLD,
        "confidence_pct": clamp(38, confidence, 94),
    }


def half_up(number):
    return floor(number + Fraction(1, 2))


def clamp(low, number, high):
    return max(low, min(number, high))
