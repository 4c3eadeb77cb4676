"""Who may draft, and what a draft begins with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gate.clock import utc_now
from gate.decisions.drafts import DraftActs, case_of
from gate.encoding.yaml_text import read_yaml
from gate.errors import GateError
from gate.instance.instance import Instance
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.drafts.drafts import Draft, Origin
from gate.rulebooks.authoring import read_authored
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.cases import Case
from tests.support.migrations import user
from tests.support.samples import sample_rulebook

CASE = Case("one", {"a": 1}, {"verdict": "no"})


@pytest.fixture
def acts(ledger: Ledger) -> DraftActs:
    return DraftActs(ledger, utc_now)


def code(act: Callable[[], object]) -> str:
    with pytest.raises(GateError) as refused:
        act()
    return refused.value.code


def cases(ledger: Ledger, draft: Draft, scope: Scope) -> list[Case]:
    return [kept.case for kept in ledger.draft_cases.of(scope.scope_id, draft.draft_id)]


@pytest.mark.parametrize("role", ["viewer", "approver", None])
def test_only_authors_draft(acts: DraftActs, scope: Scope, role: str | None) -> None:
    draft = acts.create(scope, user("ada", scope, "author"), "x", "", Origin("empty"))
    ben, id_ = user("ben", scope, role), draft.draft_id
    for act in (
        lambda: acts.create(scope, ben, "x", "", Origin("empty")),
        lambda: acts.begin(scope, ben, "x", "none", "1"),
        lambda: acts.fork(scope, ben, draft, "x", "y"),
        lambda: acts.save(scope, ben, id_, "x", after=1),
        lambda: acts.rename(scope, ben, id_, "x"),
        lambda: acts.close(scope, ben, id_),
        lambda: acts.reopen(scope, ben, id_),
        lambda: acts.keep_case(scope, ben, id_, CASE),
        lambda: acts.take_cases(scope, ben, id_, [CASE]),
        lambda: acts.remove_case(scope, ben, id_, "one"),
    ):
        assert code(act) == "DRAFT_FORBIDDEN"


def test_a_draft_of_a_registered_version_has_its_descriptions_and_the_last_cases(
    acts: DraftActs, instance: Instance, ledger: Ledger, scope: Scope
) -> None:
    ada, rulebook = user("ada", scope, "author"), load(sample_rulebook())
    instance.gate().sources.register_file(scope, rulebook, {"description": "About it."}, None)
    of = (rulebook.rulebook_id, rulebook.version)
    first = acts.begin(scope, ada, "first", *of)
    assert (first.origin, cases(ledger, first, scope)) == (Origin("registered", *of), [])
    authored = read_authored(read_yaml(first.text.encode()).value)
    assert (authored.body, authored.annotations) == (sample_rulebook(), {"description": "About it."})
    acts.keep_case(scope, ada, first.draft_id, CASE)
    acts.close(scope, ada, first.draft_id)
    assert cases(ledger, acts.begin(scope, ada, "second", *of), scope) == [CASE]
    assert code(lambda: acts.begin(scope, ada, "x", rulebook.rulebook_id, "none")) == "RULEBOOK_VERSION_UNKNOWN"


def test_a_fork_has_the_cases_and_another_text(acts: DraftActs, ledger: Ledger, scope: Scope) -> None:
    ada = user("ada", scope, "author")
    draft = acts.create(scope, ada, "x", "text", Origin("file", "a.yaml"), [CASE])
    fork = acts.fork(scope, ada, draft, "another", "y")
    assert (fork.text, fork.origin, cases(ledger, fork, scope)) == (
        "another",
        Origin("draft", draft.draft_id, "1"),
        [CASE],
    )


def test_a_case_of_a_decision_has_the_facts_that_the_draft_reads_and_no_others() -> None:
    body = sample_rulebook()
    body["input_schema"]["properties"]["deal.owner.region"] = {"type": "string"}
    record = {"decision_id": "dec_1", "verdict": "yes", "reason_code": "STANDARD_EXCEPTION_ALLOWED"}
    deal = {"owner": {"region": "north", "email": "ann@example.com"}, "name": "Ann's"}
    facts: Any = {"discount_percent": 5, "margin_percent": None, "customer_email": "ann@example.com", "deal": deal}
    made = case_of(load(body), record, facts)
    read = {"discount_percent": 5, "margin_percent": None, "deal": {"owner": {"region": "north"}}}
    assert (made.name, made.facts) == ("dec_1 is yes", read)
    assert made.expect == {"verdict": "yes", "reason_code": "STANDARD_EXCEPTION_ALLOWED"}
    assert facts["deal"] == deal
