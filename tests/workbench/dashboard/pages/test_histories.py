"""Imported histories: their list, and the pages that show their cases in place of the chain's decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gate.errors import AccessForbidden, OperatorError
from gate.ledger.access.authority import Scope
from tests.workbench.dashboard.decided import Site, site
from tests.workbench.dashboard.showing import Read, read, visit
from tests.workbench.support import bring_up
from workbench.dashboard.pages.routes import load
from workbench.dashboard.store.histories import Rehearsal
from workbench.history import sets, upkeep

ROOT = Path(__file__).parents[4]
FILE = ROOT / "data/history/refunds.csv"
MAP = (ROOT / "data/history/refunds.map.yaml").read_text(encoding="utf-8")
WITHOUT_VERDICT = """
history_map_version: decision_history_map_v1
id: {column: case}
occurred_at: {column: at}
policy_id: open_cases
facts: {amount: {column: amount, type: number}}
"""


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("histories")) as made:
        made.chain.grow()
        bring_up(made.instance, made.of.lake, made.of.scope)
        yield made


@pytest.fixture
def imported(of: Site) -> Scope:
    """The scope, while it has the history two_years."""
    put(of, "two_years", MAP, FILE)
    return of.of.scope


@pytest.fixture(autouse=True)
def _none_left(of: Site) -> Iterator[None]:
    yield
    for name in sets.names_of(of.of.lake, of.of.scope.scope_id):
        upkeep.remove(of.of.lake, of.of.scope.scope_id, "acme", name)


def put(of: Site, name: str, map_text: str, file: Path) -> Rehearsal:
    user = visit(of.of.scope, "/histories?scope=acme").access.user
    histories = of.store.histories
    rehearsed = histories.rehearse(of.of.scope, user, name, map_text, file)
    return histories.import_(of.of.scope, user, rehearsed, allow_refused=False)


def shown(of: Site, url: str, role: str = "author") -> Read:
    return read(load(of.store, visit(of.of.scope, url, role)))


def test_without_a_history_the_page_says_how_to_import_one(of: Site) -> None:
    page = load(of.store, visit(of.of.scope, "/histories?scope=acme", "viewer"))
    found = read(page)
    assert "No history has been imported yet." in found.text
    assert "gate history import FILE... --map MAP.yaml --scope acme --name NAME --check" in found.text
    assert "form" not in found.tags
    for role in ("author", "approver"):
        assert "form" in read(load(of.store, visit(of.of.scope, "/histories?scope=acme", role))).tags


def test_a_history_is_listed_with_all_that_names_it(of: Site, imported: Scope) -> None:
    (found,) = sets.all_of(of.of.lake, imported.scope_id)
    page = shown(of, "/histories?scope=acme", "viewer")
    assert f"{found.rows:,}" in page.text
    assert found.history_hash[:12] in page.text
    assert ("title", found.history_hash) in page.attributes
    assert "gate history remove two_years --scope acme" in page.text
    assert "10 January 2024 to" in page.text
    assert "/policy?scope=acme&policy=refund_policy&history=two_years" in page.links


def test_a_set_that_cannot_be_read_leaves_the_others_in_the_list(of: Site, imported: Scope) -> None:
    put(of, "broken", MAP, FILE)
    place = sets.directory_of(of.of.lake, imported.scope_id, "broken")
    (place / "manifest.json").write_text("{}")
    page = shown(of, "/histories?scope=acme")
    assert "unreadable" in page.text
    assert "two_years" in page.text


def test_the_policy_page_of_a_history_says_that_its_cases_are_imported_and_keeps_to_it(
    of: Site, imported: Scope
) -> None:
    page = shown(of, "/policy?scope=acme&history=two_years")
    assert "Imported cases of two_years: not in the chain." in page.text
    assert "Held for review" not in page.text
    narrowing = [link for link in page.links if link.startswith(("/decisions?", "/policy?"))]
    assert len(narrowing) > 20
    # All but the one that leads back to the chain.
    assert [link for link in narrowing if "history=two_years" not in link] == [
        "/policy?scope=acme&policy=refund_policy"
    ]


def test_what_its_numbers_lead_to_are_its_cases(of: Site, imported: Scope) -> None:
    page = shown(of, "/decisions?scope=acme&policy=refund_policy&history=two_years&verdict=no")
    assert "Imported cases of two_years: not in the chain." in page.text
    denied = sum(1 for line in FILE.read_text(encoding="utf-8").splitlines() if ",denied," in line)
    assert f"of {denied:,} decisions" in page.text
    # No record of them is in the ledger.
    assert [link for link in page.links if link.startswith("/decision?")] == []


def test_cases_without_a_verdict_are_shown_too(of: Site, tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    file.write_text("case,at,amount\n1,2026-01-05T10:00:00Z,3\n2,2026-01-06T10:00:00Z,4\n")
    put(of, "open", WITHOUT_VERDICT, file)
    for url in ("/histories?scope=acme", "/policy?scope=acme&history=open", "/decisions?scope=acme&history=open"):
        assert "open" in shown(of, url).text


def test_the_policy_page_says_where_no_verdict_is_known_and_why(of: Site, tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    file.write_text("case,at,amount,handled\n1,2026-01-05T10:00:00Z,3,\n2,2026-01-06T10:00:00Z,4,\n")
    put(of, "untold", WITHOUT_VERDICT, file)
    put(of, "unfilled", f"{WITHOUT_VERDICT}verdict: {{column: handled, values: {{paid: yes}}}}\n", file)
    for name, sentence in {
        "untold": "The map of these cases has no verdict.",
        "unfilled": "None of these cases has a verdict.",
    }.items():
        page = shown(of, f"/policy?scope=acme&history={name}")
        # In the place of the tile and of the chart.
        assert page.text.count(sentence) == 2
        assert "No decisions" not in page.text
        assert "Verdicts by week" not in page.text


def test_a_history_that_is_not_there_is_said_with_those_that_are(of: Site, imported: Scope) -> None:
    with pytest.raises(OperatorError, match="two_years"):
        load(of.store, visit(of.of.scope, "/policy?scope=acme&history=two_yaers"))


def test_answers_follow_an_erasure(of: Site, imported: Scope) -> None:
    def decisions() -> str:
        return shown(of, "/decisions?scope=acme&history=two_years").text

    before = decisions()
    rows = sets.all_of(of.of.lake, imported.scope_id)[0].rows
    assert f"of {rows:,} decisions" in before
    upkeep.erase(of.of.lake, imported.scope_id, "acme", "two_years", ["R-0001"])
    assert f"of {rows - 1:,} decisions" in decisions()


@pytest.mark.parametrize("page", ["policy", "decisions"])
def test_a_page_by_event_time_says_so_and_its_links_keep_to_it(of: Site, page: str) -> None:
    url = f"/{page}?scope=acme&policy=pricing_exception"
    recorded, occurred = shown(of, url), shown(of, f"{url}&clock=occurred")
    assert "Dates show when something happened" in occurred.text
    assert "Dates show when something happened" not in recorded.text
    kept = [link for link in occurred.links if link.startswith("/decisions?") and "clock=occurred" in link]
    assert kept
    assert load(of.store, visit(of.of.scope, f"{url}&clock=recorded")).location.clock is None


def test_a_viewer_imports_nothing(of: Site) -> None:
    user = visit(of.of.scope, "/histories?scope=acme", "viewer").access.user
    with pytest.raises(AccessForbidden, match="author or approver"):
        of.store.histories.rehearse(of.of.scope, user, "mine", MAP, FILE)


def test_another_file_than_was_rehearsed_is_not_imported(of: Site, tmp_path: Path) -> None:
    file = tmp_path / "refunds.csv"
    file.write_bytes(FILE.read_bytes())
    user = visit(of.of.scope, "/histories?scope=acme").access.user
    rehearsed = of.store.histories.rehearse(of.of.scope, user, "mine", MAP, file)
    file.write_bytes(FILE.read_bytes() + b"\n")
    with pytest.raises(OperatorError) as refused:
        of.store.histories.import_(of.of.scope, user, rehearsed, allow_refused=True)
    assert refused.value.code == "HISTORY_NOT_REHEARSED"
    assert sets.names_of(of.of.lake, of.of.scope.scope_id) == []


def test_an_import_is_in_the_operators_log_with_its_user(of: Site, imported: Scope) -> None:
    entry: Any = of.instance.ledger.operator_log.latest(1)[0]
    assert re.search(r"history\.imported.*acme/two_years", str(entry))
    assert "ada" in str(entry)
