"""Drafts keep everything that was typed, by whom and when, and let nobody overwrite what they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from gate.clock import utc_now
from gate.errors import GateError, MaterialRefused, NotFound
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.drafts import cases as cases_module
from gate.ledger.drafts import drafts as module
from gate.ledger.drafts.cases import MAX_CASE, read_case
from gate.ledger.drafts.drafts import MAX_NAME, MAX_TEXT, SITTING, Draft, DraftChanged, Drafts, Origin
from gate.rulebooks.testing.cases import Case

NOW = utc_now()
LATER = NOW + SITTING + timedelta(milliseconds=1)
EMPTY = Origin("empty")


@pytest.fixture
def drafts(ledger: Ledger) -> Drafts:
    return ledger.drafts


@pytest.fixture
def draft(drafts: Drafts, scope: Scope) -> Draft:
    return drafts.create(scope, " lower margin ", "a: 1\n", Origin("registered", "pricing_exception", "7"), "ada", NOW)


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(GateError) as refused:
        act()
    return refused.value.code


def test_a_draft_is_there_as_it_was_typed(drafts: Drafts, draft: Draft, scope: Scope) -> None:
    assert (draft.name, draft.edition, draft.revision, draft.saved_by) == ("lower margin", 1, 1, "ada")
    for text in ("a: 2\n", "", "<script>\u2028 🌍", "x\x00y", "{" * 100_000):
        saved = drafts.save(scope, draft.draft_id, text, after=draft.edition, by="ada", now=NOW)
        assert drafts.draft(scope.scope_id, draft.draft_id) == saved
        assert saved.text == text
        draft = saved
    (listed,) = drafts.of(scope.scope_id)
    assert {**listed.to_dict(), "text": draft.text} == draft.to_dict()
    assert listed.origin == Origin("registered", "pricing_exception", "7")


def test_what_one_author_types_in_a_sitting_is_one_revision(drafts: Drafts, draft: Draft, scope: Scope) -> None:
    for number, (by, now) in enumerate([("ada", NOW), ("ada", NOW + SITTING), ("ben", NOW + SITTING), ("ben", LATER)]):
        draft = drafts.save(scope, draft.draft_id, f"a: {number}", after=draft.edition, by=by, now=now)
    draft = drafts.save(scope, draft.draft_id, "a: 9", after=draft.edition, by="ben", now=LATER + 2 * SITTING)
    found = drafts.revisions(scope.scope_id, draft.draft_id)
    assert [(each.number, each.edition, each.saved_by) for each in found] == [
        (3, 6, "ben"),
        (2, 5, "ben"),
        (1, 3, "ada"),
    ]
    texts = [drafts.revision(scope.scope_id, draft.draft_id, each.number).text for each in found]
    assert texts == ["a: 9", "a: 3", "a: 1"]
    assert found[2].begun_at < found[2].saved_at


def test_who_did_not_see_the_latest_text_saves_nothing_and_is_told(drafts: Drafts, draft: Draft, scope: Scope) -> None:
    theirs = drafts.save(scope, draft.draft_id, "b: 1\n", after=draft.edition, by="ben", now=NOW)
    with pytest.raises(DraftChanged) as refused:
        drafts.save(scope, draft.draft_id, "c: 1\n", after=draft.edition, by="ada", now=NOW)
    assert (refused.value.code, refused.value.latest) == ("DRAFT_CHANGED", theirs)
    assert "ben saved the draft lower margin" in refused.value.message
    # Also in another page of their own.
    mine = drafts.save(scope, draft.draft_id, "b: 2\n", after=theirs.edition, by="ben", now=NOW)
    assert refusal(lambda: drafts.save(scope, draft.draft_id, "d", after=theirs.edition, by="ben", now=NOW)) == (
        "DRAFT_CHANGED"
    )
    # What is there already is nobody's loss.
    assert drafts.save(scope, draft.draft_id, "b: 2\n", after=1, by="ada", now=NOW) == mine


def test_of_many_who_save_at_once_one_does(drafts: Drafts, draft: Draft, scope: Scope) -> None:
    def save(number: int) -> int | None:
        try:
            saved = drafts.save(scope, draft.draft_id, f"n: {number}", after=1, by=f"user{number}", now=NOW)
        except DraftChanged:
            return None
        return saved.edition

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(save, range(6)))
    assert sorted(each for each in done if each is not None) == [2]
    assert [each.number for each in drafts.revisions(scope.scope_id, draft.draft_id)] == [2, 1]


def test_a_closed_draft_is_kept_and_takes_no_text(drafts: Drafts, draft: Draft, scope: Scope) -> None:
    closed = drafts.close(scope, draft.draft_id, "ben", NOW)
    assert (drafts.of(scope.scope_id), [each.draft_id for each in drafts.of(scope.scope_id, closed=True)]) == (
        [],
        [draft.draft_id],
    )
    assert drafts.close(scope, draft.draft_id, "ben", LATER) == closed
    assert refusal(lambda: drafts.save(scope, draft.draft_id, "x", after=1, by="ada", now=NOW)) == "DRAFT_CLOSED"
    assert drafts.reopen(scope, draft.draft_id, "ada", NOW) == draft
    assert drafts.save(scope, draft.draft_id, "x", after=1, by="ada", now=NOW).text == "x"


def test_drafts_are_listed_as_they_were_saved_last(drafts: Drafts, scope: Scope) -> None:
    made = [
        drafts.create(scope, name, "", EMPTY, "ada", NOW + timedelta(seconds=second))
        for second, name in enumerate(("first", "second", "third"))
    ]
    drafts.save(scope, made[0].draft_id, "x", after=1, by="ada", now=LATER)
    assert [each.name for each in drafts.of(scope.scope_id)] == ["first", "third", "second"]
    assert drafts.rename(scope, made[0].draft_id, "other", "ada", NOW).name == "other"
    assert drafts.of(scope.scope_id)[0].name == "other"


def test_a_draft_of_another_scope_is_unknown(ledger: Ledger, drafts: Drafts, draft: Draft) -> None:
    other = ledger.directory.create_scope("other", "unlimited", NOW)
    for draft_id in (draft.draft_id, "drf_none", "\x00", "\ud800"):
        for act in (
            lambda draft_id=draft_id: drafts.draft(other.scope_id, draft_id),
            lambda draft_id=draft_id: drafts.revisions(other.scope_id, draft_id),
            lambda draft_id=draft_id: drafts.revision(other.scope_id, draft_id, 1),
            lambda draft_id=draft_id: drafts.save(other, draft_id, "x", after=1, by="ada", now=NOW),
            lambda draft_id=draft_id: drafts.close(other, draft_id, "ada", NOW),
            lambda draft_id=draft_id: drafts.rename(other, draft_id, "x", "ada", NOW),
        ):
            assert refusal(act) == "DRAFT_UNKNOWN"
    assert drafts.of(other.scope_id) == []


def test_what_is_no_draft_is_refused(drafts: Drafts, draft: Draft, scope: Scope) -> None:
    for name in ("", "  ", "x" * (MAX_NAME + 1), "\ud800"):
        assert refusal(lambda name=name: drafts.create(scope, name, "", EMPTY, "ada", NOW)) == "DRAFT_NAME_INVALID"  # type: ignore[misc]
    for text in ("x" * (MAX_TEXT + 1), "\u00e9" * (MAX_TEXT // 2 + 1), "\ud800"):
        assert refusal(lambda text=text: drafts.save(scope, draft.draft_id, text, after=1, by="ada", now=NOW)) == (  # type: ignore[misc]
            "DRAFT_TOO_LARGE"
        )
    with pytest.raises(NotFound, match="Its latest revision is 1"):
        drafts.revision(scope.scope_id, draft.draft_id, 2)
    assert drafts.draft(scope.scope_id, draft.draft_id) == draft


def test_drafts_and_revisions_are_bounded(
    drafts: Drafts, draft: Draft, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_REVISIONS", 2)
    monkeypatch.setattr(module, "MAX_DRAFTS", 1)
    draft = drafts.save(scope, draft.draft_id, "b", after=1, by="ben", now=NOW)
    assert refusal(lambda: drafts.save(scope, draft.draft_id, "c", after=2, by="ada", now=NOW)) == "DRAFT_FULL"
    # The sitting that fills it goes on.
    drafts.save(scope, draft.draft_id, "d", after=2, by="ben", now=NOW)
    assert refusal(lambda: drafts.create(scope, "more", "", EMPTY, "ada", NOW)) == "DRAFTS_FULL"
    drafts.close(scope, draft.draft_id, "ada", NOW)
    drafts.create(scope, "more", "", EMPTY, "ada", NOW)
    assert refusal(lambda: drafts.reopen(scope, draft.draft_id, "ada", NOW)) == "DRAFTS_FULL"


def test_the_operator_log_has_who_made_and_closed_drafts(ledger: Ledger, draft: Draft, scope: Scope) -> None:
    ledger.drafts.save(scope, draft.draft_id, "x", after=1, by="ada", now=NOW)
    ledger.drafts.close(scope, draft.draft_id, "ben", NOW)
    found = [(entry.action, entry.operator, entry.subject) for entry in ledger.operator_log.latest(100)]
    assert [each for each in found if each[0].startswith("draft.")] == [
        ("draft.created", "ada (workbench)", draft.draft_id),
        ("draft.closed", "ben (workbench)", draft.draft_id),
    ]


def case(name: str, amount: object = 1) -> Case:
    return Case(name, {"amount": amount}, {"verdict": "no"})  # type: ignore[dict-item]


def names(ledger: Ledger, draft: Draft, scope: Scope) -> list[str]:
    return [kept.case.name for kept in ledger.draft_cases.of(scope.scope_id, draft.draft_id)]


def test_cases_are_kept_changed_and_removed_one_by_one(ledger: Ledger, draft: Draft, scope: Scope) -> None:
    cases, draft_id = ledger.draft_cases, draft.draft_id
    for name in ("small", "large \U0001f600", "x\x00"):
        cases.keep(scope, draft_id, case(name), by="ada", now=NOW)
    cases.keep(scope, draft_id, case("larger", 2), instead_of="large \U0001f600", by="ben", now=LATER)
    cases.remove(scope, draft_id, "x\x00", by="ada", now=NOW)
    found = cases.of(scope.scope_id, draft_id)
    assert [(kept.case, kept.saved_by) for kept in found] == [(case("small"), "ada"), (case("larger", 2), "ben")]
    assert found[1].saved_at > found[0].saved_at
    assert cases.take(scope, draft_id, [case("small", 9), case("new")], by="ben", now=NOW) == ["new"]
    assert names(ledger, draft, scope) == ["small", "larger", "new"]
    logged = [entry.action for entry in ledger.operator_log.latest(100) if entry.action.startswith("draft.case")]
    assert logged == [*["draft.case_added"] * 3, "draft.case_changed", "draft.case_removed", "draft.case_added"]


def test_cases_of_one_draft_are_not_those_of_another(ledger: Ledger, draft: Draft, scope: Scope) -> None:
    other = ledger.drafts.create(scope, "other", "", EMPTY, "ada", NOW)
    ledger.draft_cases.keep(scope, draft.draft_id, case("one"), by="ada", now=NOW)
    assert (names(ledger, draft, scope), names(ledger, other, scope)) == (["one"], [])


def test_cases_that_cannot_be_kept_are_refused(
    ledger: Ledger, draft: Draft, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, draft_id = ledger.draft_cases, draft.draft_id
    cases.keep(scope, draft_id, case("one"), by="ada", now=NOW)

    def keep(kept: Case, of: str = draft_id, instead_of: str | None = None) -> str:
        return refusal(lambda: cases.keep(scope, of, kept, instead_of=instead_of, by="ada", now=NOW))

    assert keep(case("one", 2)) == "CASE_NAME_TAKEN"
    assert keep(case("two"), instead_of="none") == "CASE_UNKNOWN"
    assert keep(case("two"), of="drf_none") == "DRAFT_UNKNOWN"
    assert keep(case("")) == "CASES_INVALID"
    assert keep(case("two", "x" * MAX_CASE)) == "CASE_TOO_LARGE"
    assert refusal(lambda: cases.remove(scope, draft_id, "none", by="ada", now=NOW)) == "CASE_UNKNOWN"
    monkeypatch.setattr(cases_module, "MAX_CASES", 2)
    assert refusal(lambda: cases.take(scope, draft_id, [case("2"), case("3")], by="ada", now=NOW)) == "CASES_FULL"
    assert names(ledger, draft, scope) == ["one"]
    ledger.drafts.close(scope, draft_id, "ada", NOW)
    assert keep(case("two")) == "DRAFT_CLOSED"


def test_a_case_that_is_none_is_told_by_member() -> None:
    with pytest.raises(MaterialRefused) as refused:
        read_case({"name": "x", "facts": {}, "expect": {"verdict": "maybe"}})
    assert [error.field for error in refused.value.errors] == ["expect.verdict"]


def test_of_many_who_add_cases_at_once_all_do(ledger: Ledger, draft: Draft, scope: Scope) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda n: ledger.draft_cases.keep(scope, draft.draft_id, case(str(n)), by="ada", now=NOW), range(12)
            )
        )
    assert sorted(names(ledger, draft, scope)) == sorted(str(number) for number in range(12))
