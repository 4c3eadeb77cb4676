"""A search of decisions as a sentence.

1,204 decisions of refund_policy in the week of 13 July 2026 are held
No decision about order-1042 was answered yes and has no outcome
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from gate.policy.bounds import span
from gate.policy.confidence import Counts
from workbench.columns import ADVISORY
from workbench.engines.listing import Criteria
from workbench.engines.rendering import cut
from workbench.engines.wording import counted, day, decided_by, joined
from workbench.engines.wording import moment as shown_moment

# What is true of many decisions, and of one.
_VERDICTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "yes": ("were answered yes", "was answered yes"),
        "no": ("were answered no", "was answered no"),
        "review": ("were sent to review", "was sent to review"),
    }
)
_STATES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "held": ("are held", "is held"),
        "advisory": ("are advisory and have no receipt", "is advisory and has no receipt"),
        "approved": ("are approved and have no receipt", "is approved and has no receipt"),
        "refused": ("are refused and have no receipt", "is refused and has no receipt"),
        "granted": ("were granted and have no receipt", "was granted and has no receipt"),
        "expired": ("expired unanswered and have no receipt", "expired unanswered and has no receipt"),
        "executed": ("were executed", "was executed"),
        "queued": ("are queued", "is queued"),
        "skipped": ("were skipped", "was skipped"),
        "failed": ("failed to execute", "failed to execute"),
        "blocked": ("were blocked", "was blocked"),
        "reviewed": ("were reviewed", "was reviewed"),
        "reverted": ("were reverted after execution", "was reverted after execution"),
    }
)
_OUTCOMES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        **{status: (f"have the outcome {status}", f"has the outcome {status}") for status in Counts._fields},
        "unreported": ("have no outcome", "has no outcome"),
    }
)
_WEEK: Final = timedelta(days=7)


def found(total: int, criteria: Criteria) -> str:
    """How many decisions meet some criteria, as a sentence.

    Args:
        total: How many do.
        criteria: The criteria.
    """
    number = "No decision" if total == 0 else counted(total, "decision")
    about = [
        _policy(criteria),
        f"about {cut(criteria.target)}" if criteria.target is not None else "",
        f"with the ID {cut(criteria.ref)}" if criteria.ref is not None else "",
        _period(criteria),
    ]
    one = total < 2
    did = [_VERDICTS[criteria.verdict][one]] if criteria.verdict is not None else []
    if criteria.rule == ADVISORY:
        did.append("is advisory" if one else "are advisory")
    elif criteria.rule:
        did.append(f"{'was' if one else 'were'} decided by {cut(decided_by(criteria.rule))}")
    did += [f"{'has' if one else 'have'} the reason {cut(criteria.reason_code)}"] if criteria.reason_code else []
    did += [_STATES[criteria.state][one]] if criteria.state is not None else []
    did += [_OUTCOMES[criteria.outcome_status][one]] if criteria.outcome_status is not None else []
    if criteria.erased is not None:
        did.append(f"{'was' if one else 'were'} {'' if criteria.erased else 'not '}erased")
    return " ".join(part for part in (number, *about, joined(did) if did else "") if part)


def waiting(total: int, criteria: Criteria, longest: str | None, age: str | None = None) -> str:
    """How many decisions wait for somebody, and the oldest for how long.

    Args:
        total: How many.
        criteria: The criteria that they meet.
        longest: How long the oldest of them has waited, in words; None where there is none.
        age: The age that they were searched by, one of `listing.AGES`.
    """
    told = found(total, criteria) + (f" for {age}" if age is not None else "")
    if longest is None or not total:
        return told
    return f"{told}, for {longest}" if total == 1 else f"{told}, the oldest for {longest}"


def _policy(criteria: Criteria) -> str:
    named = [] if criteria.policy_id is None else [cut(criteria.policy_id)]
    named += [] if criteria.policy_version is None else [f"version {cut(criteria.policy_version)}"]
    return f"of {' '.join(named)}" if named else ""


def _period(criteria: Criteria) -> str:
    """The period of some criteria within a sentence; its end, which is not in it, is named by its last day."""
    since, until = span(criteria.since, criteria.until)
    if until is None:
        return "" if since is None else f"since {shown_moment(since)}"
    last = day(until - timedelta(days=1)) if _is_midnight(until) else shown_moment(until)
    if since is None:
        return f"until {last}"
    if not (_is_midnight(since) and _is_midnight(until)):
        return f"from {shown_moment(since)} to {last}"
    if until - since == _WEEK and since.weekday() == 0:
        return f"in the week of {day(since)}"
    return f"on {last}" if until - since == timedelta(days=1) else f"from {day(since)} to {last}"


def _is_midnight(at: datetime) -> bool:
    return (at.astimezone(UTC).hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0)
