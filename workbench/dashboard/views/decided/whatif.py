"""Decisions with other facts: levers for the facts, and the decisions that they change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gate.drafting.levers import Lever
from gate.rulebooks.rulebook import Rulebook
from workbench.dashboard.views import links, offered
from workbench.dashboard.views.drafting import parts
from workbench.dashboard.views.html import render
from workbench.dashboard.views.imported.source import source_of
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Choice, Entry, Page
from workbench.engines import findings
from workbench.engines.wording import without_verdict
from workbench.lake.reader import ImportedSet
from workbench.whatif import Redecided

_TRANSITIONS_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Offered:
    """The choices of the page.

    Attributes:
        policies: The policies that decided something.
        versions: The registered versions of the policy, those registered last first.
        decided_by: The versions by which past decisions were made.
        values: The values that can be summed over past decisions.
        histories: The names of the scope's imported histories.
        imported: The history whose cases are decided again; None for the chain's decisions.
    """

    policies: Sequence[str]
    versions: Sequence[str]
    decided_by: Sequence[str]
    values: Sequence[str]
    histories: Sequence[str]
    imported: ImportedSet | None


def nowhere(location: Location) -> Page:
    """Where no policy has decided anything by a registered rulebook."""
    return Page(
        location,
        "No decisions yet",
        Markup("<p>This page needs past decisions. Make one with <code>POST /api/decide</code>.</p>"),
    )


def unregistered(
    location: Location, policies: Sequence[str], histories: Sequence[str], imported: ImportedSet | None
) -> Page:
    """A history of whose policy no rulebook is registered.

    Args:
        location: Where it is.
        policies: The policies of the history.
        histories: The names of the scope's imported histories.
        imported: The history.
    """
    context = {"source": source_of(location, imported), "policies": policies, "scope": location.scope}
    html = render("whatif_unregistered.html", context)
    return Page(
        location, "No registered rulebook can decide these cases yet", html, offered.sources(location, histories)
    )


def whatif(
    location: Location,
    found: Offered,
    rulebook: Rulebook,
    levers: Sequence[Lever],
    record: Mapping[str, Any] | None,
    *,
    erased: bool,
) -> Page:
    """The levers of a policy's facts.

    Args:
        location: Where it is.
        found: The choices.
        rulebook: The rulebook whose facts are changed.
        levers: Its facts.
        record: The decision; None where the whole slice is looked at.
        erased: Whether the facts of the decision were erased.
    """
    asked = {
        "policy": location.policy,
        "by": location.by,
        # Past decisions are decided by their own versions, and this one by its own.
        "own": None if record is None else rulebook.version,
        "decision": None if record is None else record["decision_id"],
        "version": location.version,
        "verdict": location.verdict,
        "since": location.since,
        "until": location.until,
        "clock": location.clock,
        "history": location.history,
    }
    context = {
        "asked": json.dumps({name: value for name, value in asked.items() if value is not None}),
        "levers": levers,
        "values": found.values,
        "metric": location.metric or "",
        "source": source_of(location, found.imported),
        # Other facts are still to be chosen; another rulebook is chosen already.
        "at_once": location.by is not None or location.history is not None,
        "record": record,
        "erased": erased and record is not None,
        "one": None if record is None or erased else one(record, rulebook, {}, first=True),
        "decision_url": None
        if record is None
        else Location("decision", scope=location.scope, id=record["decision_id"]).url,
        "rulebook": rulebook,
    }
    by = "its own version" if location.history is None else f"latest: {found.versions[0]}"
    filters: tuple[Choice | Entry, ...] = (
        Choice("policy", "Policy", {name: name for name in found.policies}),
        Choice("by", "Decide by", {"": by, **{version: version for version in found.versions}}),
        Choice("version", "Only decisions of version", {"": "all", **{name: name for name in found.decided_by}}),
        Choice("verdict", "Only decisions with verdict", {"": "all", "yes": "yes", "no": "no", "review": "review"}),
        Entry("since", "Since (UTC)", "2026-06-01"),
        Entry("until", "Until (UTC)", "2026-06-30"),
        *offered.sources(location, found.histories),
    )
    title = f"What if: {location.policy}" if record is None else f"What if: a {record['verdict']} of {location.policy}"
    return Page(location, title, render("whatif.html", context), filters)


def one(record: Mapping[str, Any], rulebook: Rulebook, facts: Mapping[str, object], *, first: bool = False) -> Markup:
    """What a decision would be with other facts.

    Args:
        record: The decision.
        rulebook: What decides.
        facts: The facts then.
        first: Whether nothing was changed yet.
    """
    then = None if first else parts.explained(rulebook, facts)
    now = None if first else rulebook.evaluator.decide(facts).decision
    context = {"was": record["verdict"], "reason": record["reason_code"], "then": then, "now": now}
    return render("whatif_one.html", context)


def many(redecided: Redecided, location: Location) -> Markup:
    """What a slice of past decisions would be with other facts: {verdict to verdict} with decisions and value.

    Args:
        redecided: The result for it.
        location: The page, with the history whose cases they are.
    """
    changed = redecided.transitions
    rows = [
        {
            **each,
            "urls": [(id_, links.case(location, id_)) for id_ in each["decision_ids"]],
        }
        for each in changed[:_TRANSITIONS_SHOWN]
    ]
    context = {
        "body": redecided.body,
        "imported": redecided.body["coverage"].get("history"),
        "rows": rows,
        "more": len(changed) - len(rows),
        "told": redecided.told,
        "without_verdict": without_verdict(redecided.body),
        "verdicts": [*redecided.verdicts, *redecided.untold],
        "metric": next(iter(redecided.metrics), None),
        "approvals": findings.approvals(redecided.body),
        "failing": findings.failing(redecided.body),
    }
    return render("whatif_many.html", context)


def nothing_changed() -> Markup:
    """The content while no fact is changed."""
    return Markup('<p class="quiet">Change a fact to see which past decisions would get another verdict.</p>')


def flips(found: Sequence[Mapping[str, Any]]) -> Markup:
    """The smallest changes that give another verdict, each to be tried."""
    rows = [{"text": each["text"], "changes": json.dumps(each["changes"], ensure_ascii=False)} for each in found]
    return render("whatif_flips.html", {"flips": rows})
