"""A rulebook is tried on an imported history from the pages: the what-if, and the dry run of a draft."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gate.clock import utc_now
from gate.encoding.yaml_text import read_yaml, write_yaml
from gate.ledger.access.authority import Scope
from gate.ledger.drafts.drafts import Draft, Origin
from gate.rulebooks.rulebook import Rulebook, load
from tests.workbench.dashboard.serving import Channel, Site
from tests.workbench.dashboard.showing import visit
from workbench.dashboard.store.histories import Histories
from workbench.history import upkeep
from workbench.lake.entries import Personal

ROOT = Path(__file__).parents[3]
HISTORY, BODY = ROOT / "data/history", ROOT / "data/rulebooks/refund_policy.json"
POLICY = "refund_policy"
WITHOUT_RULEBOOK = """
history_map_version: decision_history_map_v1
id: {column: case}
occurred_at: {column: at}
policy_id: nobody_has_it
facts: {amount: {column: amount, type: number}}
"""
VERDICTS = {"paid": "yes", "denied": "no", "desk": "review"}
NUMBERS = {"amount": "amount", "share": "share_of_payment_percent"}
WHOLE = {"days": "days_since_purchase", "prior": "prior_refunds_12_months"}
TEXTS = {"currency": "currency", "reason": "reason"}
SIGNS = {
    "final_sale": "final_sale",
    "fraud": "fraud_flag",
    "chargeback": "chargeback_open",
    "original_method": "to_original_payment_method",
    "returned": "item_returned",
}


@pytest.fixture(scope="module")
def rulebook(decided: Any) -> Rulebook:
    """The policy of the history, which is registered and has decided nothing."""
    found = load(json.loads(BODY.read_bytes()))
    decided.instance.gate().sources.register(decided.scope.scope_id, found)
    return found


@contextmanager
def imported(site: Site, scope: Scope, name: str, file: Path, map_text: str) -> Iterator[str]:
    """A history, while the block runs."""
    histories, user = (
        Histories(site.instance, Personal(), site.clock),
        visit(scope, "/histories?scope=acme").access.user,
    )
    rehearsed = histories.rehearse(scope, user, name, map_text, file)
    histories.import_(scope, user, rehearsed, allow_refused=False)
    yield name
    upkeep.remove(site.instance.settings.lake_directory, scope.scope_id, scope.name, name)


@pytest.fixture
def past(site: Site, acme: Scope, rulebook: Rulebook) -> Iterator[str]:
    """The sample history."""
    map_text = (HISTORY / "refunds.map.yaml").read_text(encoding="utf-8")
    with imported(site, acme, "past", HISTORY / "refunds.csv", map_text) as name:
        yield name


@pytest.fixture
def draft(site: Site, acme: Scope, rulebook: Rulebook) -> Iterator[Draft]:
    """A draft of the policy under another version."""
    body = {**json.loads(BODY.read_bytes()), "version": "2099-01-01"}
    drafts = site.instance.ledger.drafts
    made = drafts.create(acme, "refunds", write_yaml(body), Origin("empty"), "cem", utc_now())
    yield made
    drafts.close(acme, made.draft_id, "cem", utc_now())


def rows() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The rows of the file: id, verdict and facts."""
    with (HISTORY / "refunds.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            facts: dict[str, Any] = {field: float(row[name]) for name, field in NUMBERS.items() if row[name]}
            facts |= {field: int(row[name]) for name, field in WHOLE.items() if row[name]}
            facts |= {field: row[name] for name, field in TEXTS.items() if row[name]}
            facts |= {field: row[name] == "yes" for name, field in SIGNS.items() if row[name]}
            yield row["case"], VERDICTS[row["handled"]], facts


def turned(rulebook: Rulebook, **others: Any) -> Counter[tuple[str, str]]:
    """How many rows the rulebook would decide otherwise, by the verdict of the file and its own."""
    found: Counter[tuple[str, str]] = Counter()
    for _, was, facts in rows():
        then = rulebook.evaluator.decide({**facts, **others}).decision
        found[was, then] += was != then
    return +found


def shown(part: str) -> Counter[tuple[str, str]]:
    """The table from verdict to verdict."""
    was, then = (rf'<td data-label="{label}">(\w+)</td>' for label in ("Was", "Would be"))
    cells = re.findall(rf'{was}{then}<td data-label="Decisions" class="n">(\d+)', part)
    return Counter({(was, then): int(decisions) for was, then, decisions in cells})


def what_if(page: Channel, lines: Mapping[str, Any], **more: str) -> str:
    told = page.act("what_if", policy=POLICY, lines=lines, **more)
    return str(told["parts"]["many"]) if "parts" in told else str(told["fault"])


@pytest.fixture
def page(site: Site, past: str) -> Iterator[Channel]:
    """The what-if of a history, as a viewer has it."""
    url = f"/whatif?scope=acme&history={past}"
    with site.browser("ana").open(url) as channel:
        channel.go(url)
        yield channel


def test_the_what_if_decides_imported_cases_by_the_registered_version(
    page: Channel, rulebook: Rulebook, past: str
) -> None:
    expected = turned(rulebook)
    assert sum(expected.values()) > 50
    found = what_if(page, {}, history=past)
    assert shown(found) == expected
    assert f"{sum(expected.values())} of 240 imported cases" in found
    # The ledger has no story of them; each leads to its row in the list.
    linked = re.findall(r'href="(/decisions\?[^"]+)"', found)
    assert linked
    assert "/decision?" not in found
    listed = page.go(linked[0].replace("&amp;", "&")).html
    assert "Imported cases of past: not in the chain." in listed
    assert "1 decision with the ID row:" in listed


def test_other_facts_of_imported_cases_are_those_of_the_form(page: Channel, rulebook: Rulebook, past: str) -> None:
    lines = {"fraud_flag": {"is": "value", "text": "true"}}
    assert shown(what_if(page, lines, history=past)) == turned(rulebook, fraud_flag=True)
    narrowed = shown(what_if(page, lines, history=past, verdict="yes", by=rulebook.version))
    assert set(narrowed) == {("yes", "no")}


def test_the_what_if_over_cases_without_verdicts_says_what_the_version_would_decide(
    site: Site, acme: Scope, rulebook: Rulebook
) -> None:
    map_: Any = read_yaml((HISTORY / "refunds.map.yaml").read_bytes()).value
    del map_["verdict"]
    then = Counter(rulebook.evaluator.decide(facts).decision for _, _, facts in rows())
    with (
        imported(site, acme, "untold", HISTORY / "refunds.csv", json.dumps(map_)) as name,
        site.browser("ana").open(f"/whatif?scope=acme&history={name}") as channel,
    ):
        channel.go(f"/whatif?scope=acme&history={name}")
        found = what_if(channel, {}, history=name, metric="refund_cost")
    said = ", ".join(f"{then[verdict]} {verdict}" for verdict in ("yes", "no", "review") if then[verdict])
    assert f"The file has no verdicts; this version would decide {said}." in found
    assert "than in the file" not in found
    assert "more would be approved" not in found
    assert set(re.findall(r'<td data-label="Was">(none)</td><td data-label="Would be">(\w+)</td>', found)) == {
        ("none", verdict) for verdict in then
    }


def test_a_period_cuts_imported_cases_by_when_they_happened_whatever_the_clock(page: Channel, past: str) -> None:
    whole = shown(what_if(page, {}, history=past))
    cut = [shown(what_if(page, {}, history=past, until="2024-06-30", **of)) for of in ({}, {"clock": "occurred"})]
    rest = shown(what_if(page, {}, history=past, since="2024-07-01"))
    assert cut[0] == cut[1] == whole - rest
    assert cut[0]
    assert rest


def test_the_page_offers_the_source_and_says_whose_cases_they_are(site: Site, page: Channel, past: str) -> None:
    found = page.go(f"/whatif?scope=acme&history={past}").html
    assert "Imported cases of past: not in the chain." in found
    assert "data-at-once" in found
    # The policy of the history, whatever the address says.
    assert "What if: refund_policy" in page.go(f"/whatif?scope=acme&policy=pricing_exception&history={past}").html
    # Of the chain's decisions nothing is computed before a fact is changed.
    assert "data-at-once" not in page.go("/whatif?scope=acme&policy=pricing_exception").html


def test_a_history_of_no_registered_rulebook_says_which_to_register(site: Site, acme: Scope, tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    file.write_text("case,at,amount\n1,2026-01-05T10:00:00Z,3\n")
    with (
        imported(site, acme, "alone", file, WITHOUT_RULEBOOK),
        site.browser("ana").open("/whatif?scope=acme&history=alone") as channel,
    ):
        found = channel.go("/whatif?scope=acme&history=alone").html
    assert "No registered rulebook can decide these cases yet" in found
    assert "nobody_has_it" in found
    assert "gate rulebook register FILE --scope acme" in found


def test_a_decision_is_asked_about_by_its_own_policy_beside_a_history_of_another(
    site: Site, page: Channel, acme: Scope, past: str
) -> None:
    entry = next(iter(site.instance.ledger.entries.walk(acme.scope_id, up_to=1))).entry_id
    assert "What if: a" in page.go(f"/whatif?scope=acme&id={entry}&history={past}").html
    told = page.act("what_if", policy="pricing_exception", decision=entry, lines={}, history=past)
    assert "refund_policy" in told["fault"]


def test_a_draft_is_proved_on_imported_cases_which_are_no_evidence(
    site: Site, acme: Scope, rulebook: Rulebook, draft: Draft, past: str
) -> None:
    url, of = f"/propose?scope=acme&id={draft.draft_id}", {"draft": draft.draft_id}
    with site.browser("cem").open(url) as channel:
        assert f'<option value="{past}">Imported: {past}</option>' in channel.go(url).html
        channel.act("dry_run", **of, migration_id="refunds.tried", history=past)
        found = channel.part("proof", "Dry run of")
        assert "over imported cases" in found
        assert "imported cases of the history past" in found
        assert "240 past decisions" in found
        assert ">Propose</button>" not in found
        assert "/decision?" not in found
        head = site.instance.ledger.entries.head(acme.scope_id)
        assert "cannot be evidence" in channel.act("propose", **of)["fault"]
        assert site.instance.ledger.entries.head(acme.scope_id) == head
        # Over the decisions here it can be proposed.
        channel.act("dry_run", **of, migration_id="refunds.tried")
        assert ">Propose</button>" in channel.part("proof", "Dry run of")


def test_a_dry_run_on_a_history_that_is_gone_names_those_that_are_there(site: Site, draft: Draft, past: str) -> None:
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        channel.go("/drafts?scope=acme")
        channel.act("dry_run", draft=draft.draft_id, migration_id="refunds.tried", history="gone")
        assert past in channel.part("proof", "gone")
