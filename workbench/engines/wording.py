"""Names, dates, and shares as people read them, the same in every table and chart.

    heading("terminal_coverage")      Terminal coverage
    described("revenue_eur")          Revenue (EUR)
    day(date(2026, 7, 14))            14 July 2026

Dates are in UTC.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any, Final

from gate.policy.effectiveness import Standing
from gate.policy.questions import VERDICTS
from workbench.columns import NO_VERDICT

# From here on a number has more digits than anybody reads, or than a double holds.
_GREATEST: Final = 1e15
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_HEADINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "as_of": "As of",
        "count": "Decisions",
        "decisions_at_least": "Their decisions, at least",
        "delta": "Difference from the median",
        "high": "High end of the interval",
        "holds": "Value",
        "low": "Low end of the interval",
        "last_hit_at": "Last hit",
        "median_hours": "Median (hours)",
        "modified_z": "Distance in robust standard deviations",
        "name": "Name",
        "needs_input": "Would fail the schema",
        "p10": "10th percentile",
        "p25": "25th percentile",
        "p50": "Median",
        "p75": "75th percentile",
        "p90": "90th percentile",
        "p90_hours": "90th percentile (hours)",
        "policy_id": "Policy",
        "rate": "Share",
        "rule": "Decided by",
        "scopes_at_least": "Other scopes, at least",
        "terminal": "Cases (terminal outcomes)",
        "then_rule": "Would be decided by",
        "then_verdict": "New verdict",
        "unknown": "Facts unknown",
        "until": "To",
        "usual": "Usual value",
        "verdict_changed": "Would get another verdict",
        "when": "Decided in",
        "whole": "Of all",
    }
)
"""The columns whose heading is not their name in words."""

# A name as programs write it: lower case, with underscores or dots.
_CODE: Final = re.compile(r"[a-z][a-z0-9]*([_.][a-z0-9]+)*", re.ASCII)
_UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{currency: currency.upper() for currency in ("eur", "usd", "gbp", "chf", "jpy", "cad", "aud", "sek", "nok")},
        "percent": "%",
        "pct": "%",
        "ms": "ms",
        "milliseconds": "ms",
        "seconds": "s",
        "minutes": "min",
        "hours": "h",
        "days": "days",
        "weeks": "weeks",
        "months": "months",
        "bytes": "bytes",
        "kg": "kg",
        "km": "km",
    }
)
_RULES: Final[Mapping[str, str]] = MappingProxyType(
    {"rule:default": "the default outcome", "schema:failed": "the schema check", "advisory": "no rulebook (advisory)"}
)


def heading(column: str) -> str:
    """The heading of a column or a field of a report."""
    return _HEADINGS.get(column) or phrase(column)


def phrase(code: str) -> str:
    """A code in words, such as a recommendation: `review_version` is `Review version`."""
    words = code.replace("_", " ")
    return words[:1].upper() + words[1:]


def described(name: str) -> str:
    """A metric or a fact as the title of an axis: in words, with its unit if the name states one.

    A name that is not a code, such as `Größe in m²`, stays the same.
    """
    if _CODE.fullmatch(name) is None:
        return name
    words = re.split("[_.]", name)
    unit = _UNITS.get(words[-1]) if len(words) > 1 else None
    if unit is not None:
        return f"{phrase(' '.join(words[:-1]))} ({unit})"
    return phrase(" ".join(words))


def in_words(name: str) -> str:
    """A metric or a fact within a sentence: `minutes_of_handling` is `minutes of handling`."""
    shown = described(name)
    return shown if shown == name else f"{shown[0].lower()}{shown[1:]}"


def decided_by(rule: str) -> str:
    """What decided, from the evidence of a record: a rule's id, the default outcome, the schema check, or, for an
    advisory decision, no rulebook.
    """
    return _RULES.get(rule, rule.removeprefix("rule:"))


def day(moment: date) -> str:
    """A date, or the UTC date of a moment, such as `14 July 2026`."""
    if isinstance(moment, datetime):
        moment = moment.astimezone(UTC)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def moment(value: datetime) -> str:
    """A moment to the minute, such as `14 July 2026, 05:20 UTC`; only the date at midnight."""
    at = value.astimezone(UTC)
    return day(at) if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{day(at)}, {at:%H:%M} UTC"


def stated(timestamp: str | None) -> str:
    """A timestamp of a report in the format of `moment`; a dash if there is none."""
    return "-" if timestamp is None else moment(datetime.fromisoformat(timestamp))


def month(text: str | None) -> str:
    """A month, or the month of a timestamp, such as `September 2026`; a dash if there is none."""
    return "-" if text is None else f"{_MONTHS[int(text[5:7]) - 1]} {text[:4]}"


def span(hours: float) -> str:
    """A length of time in a suitable unit: `40 minutes`, `5.5 hours`, `3.2 days`."""
    for most, unit, each in ((1, "minute", 60.0), (48, "hour", 1.0)):
        if hours < most:
            return _measured(hours * each, unit)
    return _measured(hours / 24, "day")


def _measured(number: float, unit: str) -> str:
    shown = f"{number:,.0f}" if number >= 100 else f"{number:.2g}"
    return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"


def amount(value: float) -> str:
    """A measured number with six digits; larger ones are whole: `1,234,567` rather than `1.23457e+06`."""
    return f"{value:,.0f}" if 1e6 <= abs(value) < _GREATEST else f"{value:,.6g}"


def whole_percent(rate: float) -> str:
    """A share in whole percent. It is 0% or 100% only if it is none or all."""
    if 0 < rate < 0.005:
        return "less than 1%"
    if 0.995 <= rate < 1:
        return "more than 99%"
    return f"{rate:.0%}"


def joined(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun: `1 case`, `2,460 cases`, and `2 entries` if the plural is given."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def without_verdict(body: Mapping[str, Any]) -> str:
    """A sentence about imported cases without a verdict and what they would get; empty if every case has a verdict.

    Args:
        body: A counterfactual report.
    """
    before, after = body["verdicts"]["before"], body["verdicts"]["after"]
    cases = before.get(NO_VERDICT, 0)
    if not cases:
        return ""
    if cases == body["redecided"]:
        thens, subject = Counter(after), "The file has no verdicts"
    else:
        thens, subject = Counter(), f"The file has no verdict for {counted(cases, 'more case')}"
        for each in body["transitions"]:
            if each["verdict"] == NO_VERDICT:
                thens[each["then_verdict"]] += each["decisions"]
    told = ", ".join(f"{thens[verdict]:,} {verdict}" for verdict in VERDICTS if thens[verdict])
    return " ".join([f"{subject}; this version would decide {told}.", *_how_they_ended(body)])


def _how_they_ended(body: Mapping[str, Any]) -> Iterator[str]:
    """How cases without a verdict ended, by what they would get; nothing where not all of them are listed."""
    if body["coverage"]["transitions"] > len(body["transitions"]):
        return
    ended: dict[str, Counter[str]] = {}
    for each in body["transitions"]:
        if each["verdict"] == NO_VERDICT:
            ended.setdefault(each["then_verdict"], Counter()).update(each["outcomes"])
    found = {verdict: Standing(**of).terminal for verdict, of in ended.items()}
    told = [
        f"{ended[verdict]['succeeded']:,} of the {found[verdict]:,} that would get {verdict}"
        for verdict in VERDICTS
        if found.get(verdict)
    ]
    if told:
        yield f"Of those with a final outcome, {joined(told)} had succeeded."
