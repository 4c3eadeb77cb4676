"""Names that would run as a script: the pages about decisions show them as text, and make no element of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.samples import sample_request, sample_rulebook
from tests.workbench.dashboard.decided import ALLOWED, HOSTILE, Site, read, site
from workbench.dashboard.views.page import Page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("hostile") / "home") as made:
        yield made


def named(name: str) -> dict[str, Any]:
    """A request in which everything that a caller may name has one name."""
    body: dict[str, Any] = sample_rulebook()
    # Rulebooks hold shorter names than requests.
    short = name[:100]
    outcome = {"decision": "review", "verdict": short, "action": short, "reason_code": short}
    rules = [
        {
            "rule_id": short,
            "priority": 100,
            "condition": {"all": [{"field": "margin_percent", "operator": "eq", "value": name[:200]}]},
            "outcome": outcome,
        }
    ]
    body |= {"rulebook_id": short, "version": short, "rules": [*rules, *body["rules"]], "default_outcome": outcome}
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
    hostile.chain.outcome(
        decision_id, "succeeded", external_ref=name[:200], action_taken=name[:200], observed_metrics={name[:100]: 1.5}
    )
    hostile.chain.now = hostile.chain.now.replace(microsecond=0)
    for url in (
        f"/decision?scope=acme&id={decision_id}",
        "/decisions?scope=acme",
        "/held?scope=acme",
        f"/decisions?{urlencode({'policy': name[:100], 'reason': name[:100], 'target': name[:100]})}",
        f"/decisions?{urlencode({'ref': name[:100], 'version': name[:100], 'policy': name[:100]})}",
        f"/held?{urlencode({'policy': name[:100], 'reason': name[:100]})}",
    ):
        harmless(hostile.visit(url))
