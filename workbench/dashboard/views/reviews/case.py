"""One review as a story: the action that was asked for, why the rulebook holds it, and the owner's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from gate.encoding.canonical import content_hash
from gate.ledger.chain.reviews import EXECUTED, GRANTED, HELD
from gate.ledger.reviews import ReviewRow
from gate.records.explanation import WAITS, reasons
from gate.records.reports.breaches import last_executed_at
from gate.records.reports.resolution import EXPIRED, REFUSED
from gate.verify.members import at
from workbench.dashboard.store.ledger import Story
from workbench.dashboard.store.reviews import Around
from workbench.dashboard.views import links
from workbench.dashboard.views.decided.checks import value
from workbench.dashboard.views.html import lasting, render, when
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.dashboard.views.reviews.changed import changed_values
from workbench.dashboard.views.reviews.standing import Done, standing
from workbench.dashboard.views.reviews.words import STATES, asked, due, owned, waits, worth
from workbench.engines.wording import counted, joined, phrase

MOST_FACTS: Final = 100
"""How many facts are shown; the decision's page has more."""

# What stands at the top in words of its own.
_TOLD: Final = ("system", "resource", "proposed_action", "amount", "currency")


def view(
    location: Location,
    story: Story,
    review: ReviewRow,
    around: Around,
    *,
    done: Done | None,
    refused: str | None,
    now: datetime,
) -> Page:
    """The page of a review.

    Args:
        location: Where it is.
        story: Its decision.
        review: The review.
        around: What stands around it in the queue.
        done: The review that was resolved a moment ago.
        refused: Why the user may not answer it; None where they may.
        now: The moment.
    """
    record = story.record
    decision_url = links.decision(location, review.decision_id)
    if story.verification.checks.get("members") is False:
        context: dict[str, Any] = {"decision_url": decision_url, "queue_url": _queue(location)}
        return Page(location, "The record of this review is unreadable", render("review_unreadable.html", context))
    is_held = review.state == HELD
    is_late = location.done == review.decision_id and not is_held
    why = reasons(record)
    receipts: list[Mapping[str, Any]] = list(story.executions.reports)
    context = {
        "review": review,
        "held": is_held,
        "owner": owned(review.owner),
        "waits": waits(review.created_at, now),
        "due": due(review.due_at, now),
        "due_at": review.due_at,
        "verified": story.verification.verified,
        "is_altered": not story.verification.integrity_valid,
        "message": story.verification.message,
        "record": record,
        "binding": [(phrase(name), value(told)) for name, told in _binding(record)],
        "amount": worth(record),
        "target": record["action_binding"]["resource"],
        "system": record["action_binding"]["system"],
        "proposed": record["action_binding"]["proposed_action"],
        "question": at(story.request, "question"),
        "sentences": [*why.because, f"{why.action} {WAITS}" if is_held else why.action],
        "unmatched": why.unmatched,
        "unmatched_title": _unmatched(record, len(why.unmatched)),
        "changed": [(each.name, value(each.old), value(each.proposed)) for each in changed_values(story.request)],
        "facts": [(name, value(of)) for name, of in list((story.facts or {}).items())[:MOST_FACTS]],
        "more_facts": max(0, len(story.facts or ()) - MOST_FACTS),
        "erased": story.facts is None,
        "like": _like(around.like),
        "position": at(record, "audit_chain", "chain_position"),
        "binding_hash": content_hash(record["action_binding"]),
        "executed": last_executed_at(receipts),
        "shut": story.shut if review.state in (HELD, GRANTED) else None,
        "standing": standing(location, story, now),
        "answers": None if not is_held else _answers(record, review, story.shut),
        "refused": refused,
        "late": _late(review) if is_late else None,
        "done": None if is_late else done,
        "decision_url": decision_url,
        "policy_url": links.policy(location, record["policy_id"]),
        "queue_url": _queue(location),
        "later_url": _other(location, around.later),
        "earlier_url": _other(location, around.earlier),
        "owner_filter": location.owner,
        "decided": when(record["created_at"]),
    }
    return Page(location, f"{phrase(STATES[review.state])}: {asked(record)}", render("review.html", context))


def _late(review: ReviewRow) -> str:
    """Why the user's answer came too late."""
    return "The review expired before your answer." if review.state == EXPIRED else "The review already has an answer."


def _unmatched(record: Mapping[str, Any], number: int) -> str:
    """How many rules did not match, as what opens their list."""
    other = "rule" if record["matched_rule_id"] is None else "other rule"
    return f"{counted(number, other)} did not match"


def _answers(record: Mapping[str, Any], review: ReviewRow, shut: str | None) -> dict[str, str]:
    """What each answer comes to, as sentences for who confirms it."""
    what, final = asked(record), "The answer is final and is recorded in your name."
    lasts = lasting(timedelta(seconds=review.grant_seconds))
    follows = f"It may start once, within {lasts} from now." if shut is None else shut.replace("`", "")
    return {
        "granted": f"You are about to grant this action: {what}. {follows} {final}",
        "refused": f"You are about to refuse this action: {what}. It stays held permanently. {final}",
    }


def _binding(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((name, told) for name, told in record["action_binding"].items() if name not in _TOLD and told != "")


def _like(like: Mapping[str, int]) -> str | None:
    """How similar reviews ended, as a sentence; None where there are none."""
    number = sum(like.values())
    if not number:
        return None
    if number == 1:
        (state,) = like
        was = "" if state == EXPIRED else "was "
        return f"The latest review of the same policy and action that ended {was}{STATES[state]}."
    ended = []
    if refused := like.get(REFUSED):
        ended.append(f"{refused:,} {'was' if refused == 1 else 'were'} refused")
    if expired := like.get(EXPIRED):
        ended.append(f"{expired:,} expired")
    if granted := like.get(GRANTED, 0) + like.get(EXECUTED, 0):
        ended.insert(0, _granted(granted, like.get(EXECUTED, 0)))
    return f"Of the {counted(number, 'latest review')} of the same policy and action that ended, {joined(ended)}."


def _granted(granted: int, executed: int) -> str:
    """How many were granted, and how many of these were executed."""
    told = f"{granted:,} {'was' if granted == 1 else 'were'} granted"
    if not executed:
        return told
    if granted == executed:
        return f"{told} and executed" if granted == 1 else f"{told} and all of them executed"
    return f"{told} ({executed:,} of them {'was' if executed == 1 else 'were'} executed)"


def _queue(location: Location) -> str:
    return Location("reviews", scope=location.scope, owner=location.owner).url


def _other(location: Location, decision_id: str | None) -> str | None:
    return None if decision_id is None else location.to("review", id=decision_id, done=None).url
