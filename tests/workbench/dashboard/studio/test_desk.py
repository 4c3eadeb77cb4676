"""Two authors at one draft lose nothing: the second sees it, and merges or forks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.clock import utc_now
from gate.decisions.drafts import DraftActs
from gate.drafting.merging import MINE
from gate.encoding.yaml_text import write_yaml
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.drafts.drafts import Origin
from tests.support.migrations import user
from tests.support.samples import sample_rulebook
from workbench.dashboard.studio.desk import Desk, Told
from workbench.dashboard.studio.units import Units

TEXT = write_yaml(sample_rulebook())


@pytest.fixture
def desks(ledger: Ledger, scope: Scope) -> tuple[Desk, Desk]:
    acts = DraftActs(ledger, utc_now)
    ada, ben = (user(name, scope, "author") for name in ("ada", "ben"))
    draft = acts.create(scope, ada, "prices", TEXT, Origin("empty"))
    return Desk(acts, scope, ada, draft), Desk(acts, scope, ben, draft)


def merge(desk: Desk, text: str, ledger: Ledger, scope: Scope) -> Told:
    return desk.merge(text, ledger.drafts.draft(scope.scope_id, desk.draft.draft_id))


def test_what_is_typed_is_saved_valid_or_not(desks: tuple[Desk, Desk]) -> None:
    ada, _ = desks
    told = ada.typed(TEXT.replace("priority: 50", "priority: fifty"))
    assert (told.saved, told.found.rulebook, [each.severity for each in told.found.problems]) == (True, None, ["error"])
    told = ada.typed(TEXT.replace("priority: 50", "priority: 51"))
    assert told.found.rulebook is not None
    assert (told.draft.edition, told.draft.revision) == (3, 1)


def test_the_second_is_told_and_merges(desks: tuple[Desk, Desk], ledger: Ledger, scope: Scope) -> None:
    ada, ben = desks
    ada.typed(TEXT.replace("priority: 50", "priority: 51"))
    mine = TEXT.replace("value: 15", "value: 12")
    told = ben.typed(mine)
    assert (told.saved, told.text, told.conflict and told.conflict.saved_by) == (False, mine, "ada")
    assert told.merged is not None
    assert told.merged.conflicts == 0
    told = merge(ben, mine, ledger, scope)
    assert (told.saved, told.text) == (True, mine.replace("priority: 50", "priority: 51"))
    assert told.found.rulebook is not None
    # And now the first one.
    assert ada.typed("another text").conflict is not None


def test_where_both_changed_a_line_both_stand_in_the_text(
    desks: tuple[Desk, Desk], ledger: Ledger, scope: Scope
) -> None:
    ada, ben = desks
    ada.typed(TEXT.replace("priority: 50", "priority: 51"))
    told = merge(ben, TEXT.replace("priority: 50", "priority: 52"), ledger, scope)
    assert told.saved
    assert MINE in told.text
    assert told.found.rulebook is None


def test_the_second_keeps_theirs_as_a_fork(desks: tuple[Desk, Desk], ledger: Ledger, scope: Scope) -> None:
    ada, ben = desks
    ada.typed("theirs")
    assert not ben.typed("mine").saved
    told = ben.fork("mine", "prices of ben")
    assert (told.draft.name, told.draft.text, told.draft.origin) == (
        "prices of ben",
        "mine",
        Origin("draft", ada.draft.draft_id, "1"),
    )
    assert {draft.name for draft in ledger.drafts.of(scope.scope_id)} == {"prices", "prices of ben"}
    assert ben.typed("mine 2").saved
    assert ada.typed("theirs 2").saved


@given(st.text())
def test_offsets_are_those_of_a_browser(text: str) -> None:
    units = Units(text)
    for offset in range(len(text) + 1):
        expected = len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
        assert units.of(offset) == expected
        assert units.at(expected) == offset
