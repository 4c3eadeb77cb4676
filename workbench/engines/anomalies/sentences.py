"""What pages write about anomalies: the finding over each part, and reasons and severities in words.

    The share of outcomes that succeeded fell.
    3 rates changed, 2 of them certainly
    27 anomalies in 4 policies: 2 high, 7 medium and 18 low; 25 are open

The finding of one anomaly, and that of a whole report, are in `workbench.engines.findings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from gate.policy.anomalies.anomaly import AnomalyDocument
from gate.policy.anomalies.breaks import RULES
from gate.policy.anomalies.counted import ENDED, WORSE
from gate.policy.anomalies.scores import HIGH, INDEX, MEDIUM, SEVERITIES
from gate.policy.anomalies.telling.levels import QUARTILES, SHARES, differing
from gate.policy.anomalies.weekly.levels import LOCATION, SPREAD
from gate.policy.anomalies.weekly.tails import ABOVE, TAILS
from gate.policy.questions import OPEN_DAYS
from workbench.engines.rendering import cut, on_one_line
from workbench.engines.wording import amount, counted, day, described, in_words, joined, phrase, whole_percent

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lifecycle_break": "Broken promise",
        "outcome_shift": "Outcomes shifted",
        "verdict_shift": "Verdicts shifted",
        "metric_shift": "Metric shifted",
        "volume": "Volume",
        "metric_outlier": "Metric outlier",
        "fact_drift": "Facts drifted",
    }
)
"""Every kind of anomaly in two words."""

_SHIFTS: Final[Mapping[str, str]] = MappingProxyType(
    {"verdict": "The share of verdict", "reason": "The share of reason", "outcome": "The share of outcomes"}
)
_METRICS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "metric_rose": "Values of {} are higher than before",
        "metric_fell": "Values of {} are lower than before",
        "metric_spread_grew": "Values of {} lie farther apart than before",
        "metric_spread_shrank": "Values of {} lie closer together than before",
    }
)
_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "policy_version_changed": "A new version took over at least half of the decisions at the same time",
        "more_decisions_than_usual": "There were more decisions than usual",
        "fewer_decisions_than_usual": "There were fewer decisions than usual",
        "slow": "It was gradual: the weeks are compared with those half a year earlier",
        "metric_far_from_usual": "Values of the metric are unusual",
    }
)


_COUNTED: Final = ("lifecycle_break", "metric_shift", "metric_outlier")
"""The kinds whose effect is a count of decisions, and no estimate."""


def days(anomaly: AnomalyDocument) -> str:
    """From which day to which day it was: `12 October 2026 to 18 October 2026`, or one day."""
    first, last = _window(anomaly)
    return first if first == last else f"{first} to {last}"


def reasons(anomaly: AnomalyDocument) -> list[str]:
    """Why it is one, a sentence for each of its reasons."""
    return [f"{_reason(code)}." for code in anomaly["reasons"]]


def improved(anomaly: AnomalyDocument) -> bool:
    """Whether it is about outcomes and none got worse: a recovery, which needs no attention."""
    if anomaly["kind"] != "outcome_shift":
        return False
    changes = anomaly["numbers"]["changes"]
    return all((change["difference"]["rate"] > 0) != WORSE[change["value"]] for change in changes)


def severity_means(severity: str) -> str:
    """What a severity says, in a line."""
    if severity == "high":
        return f"High is a score from {HIGH}: an alert until {OPEN_DAYS} days after its window. Scores go from 0 to 1."
    if severity == "medium":
        return f"Medium is a score from {MEDIUM} to below {HIGH}: worth a review, but no alert. Scores go from 0 to 1."
    return f"Low is a score below {MEDIUM}: worth watching. Scores go from 0 to 1."


def counts(anomaly: AnomalyDocument) -> str:
    """What the number of its decisions counts: those that show it, or all among which it shows."""
    number = anomaly["decisions"]
    match anomaly["kind"]:
        case "outcome_shift":
            return f"{counted(number, 'case')} in its window"
        case "verdict_shift" | "metric_shift" | "fact_drift":
            return f"{number:,} in its window"
        case "volume":
            return f"{number:,} at that time"
    return f"{number:,} {'shows' if number == 1 else 'show'} it"


def shown(anomaly: AnomalyDocument, number: int) -> str:
    """How many decisions a page lists: those that show it, or those of the window that it is of."""
    if anomaly["kind"] in ("lifecycle_break", "metric_outlier"):
        return f"{counted(number, 'decision')} {'shows' if number == 1 else 'show'} it"
    return f"{counted(number, 'decision')} of the window"


def effect(anomaly: AnomalyDocument, metric: str | None = None) -> str:
    """What it costs: `About 24 decisions, lasting, for the worse`; without about where the decisions are counted.

    Args:
        anomaly: It.
        metric: The metric in which its report estimates costs; None where it does not.
    """
    of = anomaly["effect"]
    cases = counted(of["cases"], "decision")
    parts = [cases if anomaly["kind"] in _COUNTED else f"About {cases}"]
    if metric is not None and of["value"] is not None:
        parts.append(f"{of['value']:,.2f} of {cut(described(metric))}")
    if of["lasting"]:
        parts.append("lasting")
    if of["harm"] is not None:
        parts.append("for the worse" if of["harm"] else "for the better")
    return ", ".join(parts)


def several(listed: Sequence[AnomalyDocument], *, of: str, opened: int | None = None) -> str:
    """The number of anomalies in a list.

    Args:
        listed: The anomalies.
        of: Their subject: `4 policies`, or the name of one.
        opened: The number that are open; None to leave it out.
    """
    if not listed:
        return f"No anomalies in {of}"
    severities = [anomaly["severity"] for anomaly in listed]
    parts = joined([f"{severities.count(each):,} {each}" for each in SEVERITIES if each in severities])
    whole = f"{counted(len(listed), 'anomaly', 'anomalies')} in {of}"
    return f"{whole}: {parts}" if opened is None else f"{whole}: {parts}; {_open(opened, len(listed))}"


def strongest(listed: Sequence[AnomalyDocument]) -> str:
    """The strongest anomaly of a list that is not empty."""
    first = max(listed, key=lambda anomaly: anomaly["anomaly_score"])
    summary = on_one_line(first["summary"]).removesuffix(".")
    return f"The strongest has score {first['anomaly_score']:.2f}: {summary[0].lower()}{summary[1:]}"


def surroundings(anomaly: AnomalyDocument) -> str:
    """The finding over its chart: what it stands out from."""
    numbers = anomaly["numbers"]
    match anomaly["kind"]:
        case "lifecycle_break":
            first, last = _window(anomaly)
            return f"It happened on {first}" if first == last else f"The first was on {first}, the last on {last}"
        case "volume":
            many = "many" if "more_decisions_than_usual" in anomaly["reasons"] else "few"
            unit = counted(numbers["cells"], numbers["grain"])
            times = f"{numbers['times']:.1f} times as {many} as usual"
            return f"{counted(numbers['decisions'], 'decision')} in {unit}: {times}"
        case "metric_outlier":
            farthest = numbers["farthest"][0]["modified_z"]
            return (
                f"The farthest value lies {farthest:,.3g} robust standard deviations from usual; a value stands out "
                f"from {numbers['required_z']:.1f}"
            )
        case "metric_shift":
            level = numbers["levels"][0]
            what = "the middle half of " if level["of"] == SPREAD else ""
            before, within = _levels(level)
            others = "with other versions" if level["version"] is not None else "before"
            return f"{what.capitalize()}{cut(described(numbers['metric']))}: {within}, {before} {others}"
        case "fact_drift":
            fact = numbers["facts"][0]
            return (
                f"{cut(described(fact['fact']))} has a stability index of {fact['stability_index']:.2f}; a large "
                f"change starts at {INDEX.considerable}"
            )
    change = numbers["changes"][0]
    before, within = change["before"], change["within"]
    return (
        f"{cut(_share(change))} {whole_percent(within['rate'])} of {within['of']:,} in the window, "
        f"{whole_percent(before['rate'])} of {before['of']:,} before"
    )


def evidence(anomaly: AnomalyDocument) -> str:
    """The finding over its numbers."""
    numbers = anomaly["numbers"]
    match anomaly["kind"]:
        case "lifecycle_break":
            share = whole_percent(numbers["share"])
            return f"{numbers['count']:,} of the {counted(numbers['of'], 'decision')} that could have it ({share})"
        case "volume":
            return (
                f"The count lies {numbers['modified_z']:.1f} robust standard deviations from usual; it stands out from "
                f"{numbers['required_z']:.1f}"
            )
        case "metric_outlier":
            named = cut(in_words(numbers["metric"]))
            return f"{anomaly['decisions']:,} of {counted(numbers['values'], 'value')} of {named} stand out"
        case "metric_shift":
            level = numbers["levels"][0]
            certain = "by more than chance explains" if level["p_value"] <= level["required_p"] else "maybe by chance"
            return (
                f"Cliff's delta is {level['cliffs_delta']:+.2f}, and at least {level['least_delta']:.2f}; it "
                f"changed {certain}"
            )
        case "fact_drift":
            facts = numbers["facts"]
            return f"{counted(len(facts), 'fact')} drifted, {cut(in_words(facts[0]['fact']))} most"
    changes = numbers["changes"]
    certain = sum(change["p_value"] <= change["required_p"] for change in changes)
    if certain == len(changes):
        return f"{counted(certain, 'rate')} changed, by more than chance explains"
    return f"{counted(len(changes), 'rate')} changed; chance may explain {len(changes) - certain:,} of the changes"


def grown(then: str, then_score: float, now: AnomalyDocument) -> str:
    """Whether an anomaly is stronger than it was.

    Args:
        then: Its severity then.
        then_score: Its score then.
        now: As it is now.
    """
    before = f"{phrase(then)}, score {then_score:.2f}, then"
    after = f"{now['severity']}, score {now['anomaly_score']:.2f}, now"
    if now["anomaly_score"] > then_score:
        return f"It has grown since: {before[0].lower()}{before[1:]}; {after}"
    return f"It has not grown since: {before[0].lower()}{before[1:]}; {after}"


def _levels(level: Mapping[str, Any]) -> list[str]:
    """What differs, before and within: medians, quartiles or shares."""
    if level["of"] in TAILS:
        tail, where = level["tail"], "above" if level["of"] == ABOVE else "of at most"
        return [
            f"{whole_percent(tail[when]['rate'])} of values {where} {amount(tail['cut'])}"
            for when in ("before", "within")
        ]
    if level["of"] != LOCATION:
        ends = (level["before"], level["within"])
        return [f"{amount(of['lower_quartile'])} to {amount(of['upper_quartile'])}" for of in ends]
    name, *values = differing(level)
    if name in SHARES:
        return [f"{whole_percent(share)} of values {name} {amount(level['before']['median'])}" for share in values]
    called = f"an {QUARTILES[name]}" if name == "upper_quartile" else f"a {QUARTILES.get(name, 'median')}"
    return [f"{called} of {amount(value)}" for value in values]


def _open(opened: int, whole: int) -> str:
    if opened == whole:
        return "open" if whole == 1 else "all are open"
    return "none is open" if not opened else f"{opened:,} {'is' if opened == 1 else 'are'} open"


def _reason(code: str) -> str:
    known = _REASONS.get(code)
    if known is not None:
        return known
    if code in RULES:
        return RULES[code].meaning
    what, _, name = code.partition(":")
    if what == "fact_drifted":
        return f"The values of {cut(in_words(name))} changed"
    if what in _METRICS:
        return _METRICS[what].format(cut(in_words(name)))
    of, _, moved = what.rpartition("_")
    return f"{_SHIFTS[of]} {cut(ENDED.get(name, name) if of == 'outcome' else name)} {moved}"


def _share(change: Mapping[str, Any]) -> str:
    """What a rate is the share of, to go before it."""
    if change["of"] == "outcome":
        return f"{phrase(change['value'])}:"
    return f"{phrase(change['of'])} {change['value']}:"


def _window(anomaly: AnomalyDocument) -> tuple[str, str]:
    first, last = (datetime.fromisoformat(anomaly["window"][end]) for end in ("from", "to"))
    # A window ends where it is over: of days and weeks, at the midnight after the last.
    return day(first), day(max(first, last - timedelta(milliseconds=1)))
