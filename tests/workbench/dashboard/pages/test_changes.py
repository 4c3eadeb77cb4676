"""What a version of a policy changed, on the policy's page, from the rulebooks that the ledger holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.samples import sample_request
from tests.workbench.dashboard.decided import Read, Site, read, site

RULE = "approve_standard_exception"


def asked(version: str, limit: float, *, field: str | None = None) -> dict[str, Any]:
    """A request whose rulebook approves up to a discount; a field says that its schema has one more."""
    request = sample_request(discount_percent=10, margin_percent=40)
    book = request["rulebook"]
    book["version"] = version
    rule = next(rule for rule in book["rules"] if rule["rule_id"] == RULE)
    rule["condition"] = {"field": "discount_percent", "operator": "lte", "value": limit}
    if field is not None:
        book["input_schema"]["properties"][field] = {"type": "string"}
    return request


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("changes") / "home") as made:
        made.chain.decide(asked("v1", 15))
        # Registered last, and yet the first by name.
        made.chain.decide(asked("a2", 40, field="coupon"))
        made.chain.decide(asked("same", 40, field="coupon"))
        yield made


def page(of: Site, version: str) -> Read:
    policy = asked("v1", 1)["rulebook"]["rulebook_id"]
    return read(of.visit(f"/policy?scope=acme&policy={policy}&version={version}"))


def test_a_version_is_compared_with_the_one_registered_before_it(told: Site) -> None:
    found = page(told, "a2")
    assert "From version v1 to a2, 1 rule was changed and 1 input field was added" in found.text
    (rule,) = [row for row in found.rows if row and row[0].startswith(RULE)][:1]
    assert "changed: condition" in rule[0]
    assert ["discount_percent lte 15" in rule[1], "discount_percent lte 40" in rule[2]] == [True, True]
    assert ["coupon", "added", "missing", "string, optional"] in found.rows


def test_a_version_that_changed_nothing_and_the_first_one_say_so(told: Site) -> None:
    assert "From version a2 to same, no rule, input field or default outcome changed" in page(told, "same").text
    assert "No version before v1 to compare with" in page(told, "v1").text


def test_each_version_leads_to_what_it_changed(told: Site) -> None:
    policy = asked("v1", 1)["rulebook"]["rulebook_id"]
    found = read(told.visit(f"/policy?scope=acme&policy={policy}"))
    assert "From version" not in found.text
    assert found.text.count("Changes") == 3
    assert found.links["Changes"].startswith(f"/policy?scope=acme&policy={policy}&version=")
