"""What people do on pages, as a browser says it, or as somebody writes it: roles, scopes and nonsense."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gate.clock import utc_now
from gate.encoding.yaml_text import write_yaml
from gate.ledger.access.authority import Scope
from gate.ledger.drafts.cases import read_case
from gate.ledger.drafts.drafts import Draft, Origin
from tests.support.migrations import candidate, desk
from tests.support.samples import sample_rulebook
from tests.workbench.dashboard.serving import Site
from workbench.dashboard.acts import examining
from workbench.dashboard.acts.routes import ACTS
from workbench.dashboard.acts.turn import MAX_MESSAGE
from workbench.history.sets import names_of

TEXT = write_yaml(sample_rulebook())
CASE = {"name": "a", "facts": {"discount_percent": 1, "margin_percent": 40}, "expect": {"verdict": "yes"}}

# These only read, so a viewer may do them.
LOOKS = {
    "look", "complete", "give", "take_facts", "examine", "cancel", "measure", "boundaries", "compare", "what_if",
    "flips", "watch_proof",
}  # fmt: skip
NO_TEXTS: tuple[Any, ...] = (1, None, [], {}, True)


@pytest.fixture
def draft(site: Site, acme: Scope) -> Iterator[Draft]:
    """A draft in acme, with a case."""
    ledger = site.instance.ledger
    made = ledger.drafts.create(acme, "prices", TEXT, Origin("empty"), "cem", utc_now())
    yield made
    ledger.drafts.close(acme, made.draft_id, "cem", utc_now())


@pytest.fixture(scope="module")
def migration(_site: Site, decided: Any) -> tuple[str, str]:
    """A migration of acme that waits, by ada: its id and the hash of its evidence."""
    standing = desk(_site.instance, decided.scope).propose("acts.waiting", candidate("2099-01-01", 16))
    return standing.migration_id, standing.evidence_hash


def act(site: Site, user: str, act: str, /, **more: Any) -> dict[str, Any]:
    """What a user is answered who does something on the page of a scope."""
    browser = site.browser(user)
    with browser.open("/drafts?scope=acme") as channel:
        channel.go("/drafts?scope=acme")
        return channel.act(act, **more)


def messages(draft: Draft, migration: tuple[str, str], decision: str = "dec_0") -> dict[str, dict[str, Any]]:
    """Everything that changes something, as a page says it."""
    of, named = {"draft": draft.draft_id}, {"migration": migration[0]}
    return {
        "new_draft": {"name": "mine"},
        "rename_draft": {**of, "name": "mine"},
        "close_draft": of,
        "reopen_draft": of,
        "type": {**of, "text": "a: 1"},
        "merge": {**of, "text": "a: 1"},
        "fork": {**of, "text": "a: 1", "name": "mine"},
        "edit": {**of, "text": TEXT, "do": "add_rule"},
        "keep_case": {**of, "name": "b", "facts": "{}", "verdict": "no"},
        "remove_case": {**of, "name": "a"},
        "take_cases": {**of, "cases": [CASE]},
        "case_of": {**of, "decision": decision},
        "send_file": {"file": "a.csv", "size": 1, "at": 0, "piece": "YQ=="},
        "rehearse_history": {"name": "mine", "map": "a: 1"},
        "import_history": {"history": "mine"},
        "dry_run": {**of, "migration_id": "acts.mine"},
        "stop_proof": of,
        "propose": of,
        "approve": {**named, "evidence": migration[1]},
        "reject": named,
        "apply": named,
        "roll_back": {"rulebook": "pricing_exception", "active": "0" * 64, **named},
        "start_shadow": named,
        "stop_shadow": named,
        "resolve": {"decision": decision, "record_hash": "0" * 64, "answer": "granted"},
    }


def state(site: Site, scope: Scope) -> tuple[Any, ...]:
    """All that an act could change."""
    ledger = site.instance.ledger
    drafts = ledger.drafts.of(scope.scope_id) + ledger.drafts.of(scope.scope_id, closed=True)
    cases = [ledger.draft_cases.of(scope.scope_id, each.draft_id) for each in drafts]
    histories = names_of(site.instance.settings.lake_directory, scope.scope_id)
    return drafts, cases, ledger.entries.head(scope.scope_id), site.instance.migrations().shadows(scope), histories


def test_every_act_either_looks_or_is_held_to_a_role(draft: Draft, migration: tuple[str, str]) -> None:
    assert set(messages(draft, migration)) | LOOKS == set(ACTS)


def test_a_viewer_changes_nothing(site: Site, acme: Scope, draft: Draft, migration: tuple[str, str]) -> None:
    before = state(site, acme)
    walked = site.instance.ledger.entries.walk(acme.scope_id, up_to=1)
    for name, more in messages(draft, migration, next(walked).entry_id).items():
        told = act(site, "ana", name, **more)
        assert "ana" in told.get("fault", ""), (name, told)
        assert "role" in told["fault"] or "may" in told["fault"], (name, told)
    assert state(site, acme) == before


def test_of_a_user_of_another_scope_a_draft_is_not_there(site: Site, acme: Scope, draft: Draft) -> None:
    before = state(site, acme)
    with site.browser("eve").open("/drafts?scope=other") as channel:
        channel.go("/drafts?scope=other")
        for name in ("type", "watch_proof", "compare", "boundaries"):
            told = channel.act(name, draft=draft.draft_id, text="a: 1", base="revision 1")
            assert "no draft" in told["fault"], (name, told)
        # Nor does the address of a page let anybody into its scope.
        channel.go("/drafts?scope=acme")
        told = channel.act("type", draft=draft.draft_id, text="a: 1")
        assert "fault" in told
    assert state(site, acme) == before


def test_an_author_writes_and_cannot_approve(site: Site, acme: Scope, draft: Draft, migration: tuple[str, str]) -> None:
    told = act(site, "cem", "type", draft=draft.draft_id, text="# mine\n" + TEXT)
    assert told["saved"] is True
    assert site.instance.ledger.drafts.draft(acme.scope_id, draft.draft_id).text == "# mine\n" + TEXT
    before = state(site, acme)
    told = act(site, "cem", "approve", **messages(draft, migration)["approve"])
    assert "cem" in told["fault"]
    assert "approve" in told["fault"]
    assert state(site, acme) == before


def test_what_a_page_must_send_is_asked_for(site: Site, acme: Scope, draft: Draft) -> None:
    before = state(site, acme)
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        channel.go("/drafts?scope=acme")
        for name in sorted(set(ACTS) - {"cancel", "examine", "look"}):
            told = channel.act(name)
            assert told["fault"].endswith(("oad the page again.", "Fix it first.")), (name, told)
        for value in NO_TEXTS:
            assert "fault" in channel.act("type", draft=draft.draft_id, text=value)
    assert state(site, acme) == before


def test_a_decision_that_is_not_there_is_told_by_its_id(site: Site, draft: Draft) -> None:
    told = act(site, "cem", "case_of", draft=draft.draft_id, decision="dec_0")
    assert told["fault"] == "The scope acme has no decision dec_0; check the id."


def test_a_case_that_is_changed_keeps_what_the_form_shows_of_it(site: Site, acme: Scope, draft: Draft) -> None:
    cases = site.instance.ledger.draft_cases
    expect = {
        "verdict": "review", "application_verdict": "REVIEW", "action": "ask", "reason_code": "AB",
        "matched_rule_id": None, "missing_fields": ["a", "b"], "invalid_fields": [],
    }  # fmt: skip
    cases.take(acme, draft.draft_id, [read_case({"name": "a", "facts": {}, "expect": expect})], by="cem", now=utc_now())
    typed = {**expect, "matched_rule_id": "none", "missing_fields": "a, b", "invalid_fields": "none"}
    more = {"draft": draft.draft_id, "name": "b", "facts": '{"x": 1}', "instead_of": "a", **typed}
    assert act(site, "cem", "keep_case", **more)["say"] == "Saved the case b."
    (kept,) = cases.of(acme.scope_id, draft.draft_id)
    assert (kept.case.name, kept.case.facts, dict(kept.case.expect)) == ("b", {"x": 1}, expect)
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        page = channel.go(f"/cases?scope=acme&id={draft.draft_id}").html
    for name in ("missing_fields", "invalid_fields", "action", "application_verdict", "reason_code"):
        assert re.search(f'name="{name}"[^>]*value="{typed[name]}"', page), name


def test_a_dry_run_is_stale_once_the_cases_are_others_and_gone_once_it_is_proposed(
    site: Site, acme: Scope, draft: Draft
) -> None:
    of = {"draft": draft.draft_id}
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        channel.go("/drafts?scope=acme")
        assert channel.act("type", **of, text=TEXT.replace('"1"', '"2098-01-01"'))["saved"]

        def proved() -> str:
            channel.act("dry_run", **of, migration_id="acts.proved")
            return channel.part("proof", "Dry run of")

        assert ">Propose</button>" in proved()
        channel.act("keep_case", **of, name="late", facts="{}", verdict="review")
        assert "or its cases have changed" in channel.act("watch_proof", **of)["parts"]["proof"]
        assert "cases have changed" in channel.act("propose", **of)["fault"]
        proved()
        assert channel.act("propose", **of)["go"].startswith("/migration?")
        assert channel.act("watch_proof", **of).get("parts") is None
        assert "no longer exists" in channel.act("propose", **of)["fault"]


def test_closed_drafts_are_found_again(site: Site, acme: Scope, draft: Draft) -> None:
    act(site, "cem", "close_draft", draft=draft.draft_id)
    with site.browser("ana").open("/drafts?scope=acme") as channel:
        page = channel.go("/drafts?scope=acme").html
    closed = page.partition("closed draft")[2]
    assert draft.draft_id in closed


def test_what_is_no_message_is_passed_over_and_the_next_one_is_heard(site: Site, draft: Draft) -> None:
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        channel.go("/drafts?scope=acme")
        deep = "[" * 100_000
        nonsense = ["", "{", "[]", "null", "1", deep, json.dumps({"act": "type"}), json.dumps({"n": 1, "act": "no"})]
        for said in (*nonsense, json.dumps({"n": 1, "act": "type", "text": "x" * MAX_MESSAGE})):
            channel.say(said)
        told = channel.act("type", draft=draft.draft_id, text=TEXT)
        assert told["saved"] is True


def test_only_the_last_of_what_was_typed_is_answered(site: Site, acme: Scope, draft: Draft) -> None:
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        channel.go("/drafts?scope=acme")
        for number in range(40):
            channel.say(
                json.dumps({"n": number, "act": "type", "draft": draft.draft_id, "text": f"{TEXT}# {number}\n"})
            )
        told = channel.told(39)
        assert told["saved"] is True
    assert site.instance.ledger.drafts.draft(acme.scope_id, draft.draft_id).text == f"{TEXT}# 39\n"


def test_null_is_tried_on_one_decision_and_refused_for_past_ones(site: Site, acme: Scope) -> None:
    entry = next(site.instance.ledger.entries.walk(acme.scope_id, up_to=1))
    asked = {"policy": "pricing_exception", "lines": {"margin_percent": {"is": "null", "text": ""}}}
    parts = act(site, "ana", "what_if", decision=entry.entry_id, **asked)["parts"]
    assert "the verdict changes" in parts["one"] or "the verdict stays the same" in parts["one"]
    assert "cannot be set to null" in parts["many"]
    assert "cannot be set to null" in act(site, "ana", "what_if", **asked)["fault"]


def test_a_slice_is_decided_anew_with_what_moves(site: Site, acme: Scope) -> None:
    lines = {"margin_percent": {"is": "value", "text": "0"}, "discount_percent": {"is": "value", "text": "ten"}}
    asked = {"policy": "pricing_exception", "lines": lines, "metric": "inputs.margin_percent"}
    told = act(site, "ana", "what_if", **asked)
    assert told["faults"] == {"discount_percent": "This is not a number."}
    assert "would get another verdict" in told["parts"]["many"]
    assert re.search(r'data-label="Was">yes</td><td data-label="Would be">no</td>', told["parts"]["many"])
    assert re.search(r'data-label="With a value" class="n">[1-9]', told["parts"]["many"])


def test_a_save_under_way_is_answered_whole_though_its_author_goes_on(
    site: Site, draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site.browser("cem").open("/drafts?scope=acme") as channel:
        channel.go(f"/draft?scope=acme&id={draft.draft_id}")
        begun, went = threading.Event(), threading.Event()
        begin = examining.begin

        def begin_late(turn: Any) -> None:
            begun.set()
            assert went.wait(30)
            begin(turn)

        monkeypatch.setattr(examining, "begin", begin_late)
        channel.say(json.dumps({"n": 1, "act": "type", "draft": draft.draft_id, "text": TEXT + "\n"}))
        assert begun.wait(30)
        channel.go("/drafts?scope=acme")
        went.set()
        told = channel.told(1)
        assert told["saved"]
        assert "marks" in told
        assert "state" in told["parts"]
