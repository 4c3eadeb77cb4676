"""Names that would run as a script: the pages about decisions show them as text, and make no element of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gate.ledger.rulebooks import OperatorAct
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import load
from tests.support.samples import sample_request, sample_rulebook
from tests.workbench.dashboard.decided import ALLOWED, HOSTILE, Site, read, site
from tests.workbench.made_up import MONDAY, MadeUp
from workbench.dashboard.views.decided import decisions, held
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page
from workbench.engines.listing import Criteria, decision_names, find_decisions, held_decisions
from workbench.engines.rendering import cut


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("hostile") / "home") as made:
        yield made


def named(name: str) -> dict[str, Any]:
    """A request in which everything that a caller may name has one name."""
    body: dict[str, Any] = sample_rulebook()
    # The schema of rulebooks limits most of their names; versions and actions are free.
    short = name[:80]
    outcome = {"decision": "review", "verdict": "HELD", "action": short, "reason_code": "HELD"}
    rules = [
        {
            "rule_id": "hostile_rule",
            "priority": 100,
            "condition": {"all": [{"field": "margin_percent", "operator": "eq", "value": name[:200]}]},
            "outcome": outcome,
        }
    ]
    body |= {"rulebook_id": "hostile", "version": short, "rules": [*rules, *body["rules"]], "default_outcome": outcome}
    request = sample_request(**{"discount_percent": 20, "margin_percent": 22, name.replace(".", ""): name})
    context = request["context"] | dict.fromkeys(("target_system", "requested_action", "mutation"), name)
    context |= {"target_object_id": name, "actor": {name: name}, "subject": name, "currency": name}
    return request | {"question": name, "rulebook": body, "context": context}


def harmless(page: Page) -> None:
    """Requires that a page is made of its own elements and attributes alone."""
    found = read(page)
    assert found.elements <= ALLOWED, found.elements - ALLOWED
    assert all(link.startswith("/") for link in found.links.values())
    assert not {"\x00", "\x1b", "\u202e", "\u2066", "\u2028"} & set(found.text + page.title)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_shown_as_text_and_nothing_else(hostile: Site, name: str) -> None:
    body = named(name)
    decision_id = hostile.chain.decide(body)
    told = {"external_ref": name[:200], "action_taken": name[:100], "observed_metrics": {name[:100]: 1.5}}
    hostile.chain.outcome(decision_id, "succeeded", **told)
    comments: Annotations = {
        "description": name,
        "rules": {"hostile_rule": {"description": name, "outcome": name}},
        "default_outcome": name,
    }
    act = OperatorAct("acme", hostile.chain.now)
    hostile.instance.ledger.rulebooks.annotate(hostile.of.scope.scope_id, load(body["rulebook"]), comments, act)
    for url in (f"/decision?scope=acme&id={decision_id}", "/decisions?scope=acme", "/held?scope=acme"):
        page = hostile.visit(url)
        harmless(page)
        assert cut(name)[:5] in read(page).text
    asked = dict.fromkeys(("policy", "version", "reason", "target", "ref", "rule"), name[:200])
    for url in (f"/decisions?{urlencode(asked)}", f"/held?{urlencode({'policy': name[:200], 'reason': name[:200]})}"):
        harmless(hostile.visit(url))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_that_no_release_lets_in_are_shown_as_text_too(name: str, tmp_path: Path) -> None:
    chain = MadeUp()
    named_so: dict[str, Any] = {"policy_id": name, "version": name, "reason": name, "rule": name, "target": name}
    chain.decide(MONDAY, verdict="review", request_id=name, **named_so)
    snapshot = chain.snapshot(tmp_path)
    names = decision_names(snapshot)
    location = Location("decisions", scope=name, policy=name)
    found = find_decisions(snapshot, Criteria())
    harmless(decisions.view(location, found, names, as_of=MONDAY, now=MONDAY))
    waiting = held_decisions(snapshot, now=MONDAY)
    harmless(held.view(Location("held", scope=name), found, waiting, names, oldest=MONDAY, now=MONDAY))
