"""A change on its way in a demo: a version in force, a draft of two authors with its cases, and a migration that waits
for its approver; for the pages that show such things.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from gate.drafting.diagnosis import diagnose
from gate.instance.fixtures import fixture_facts
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from gate.rulebooks.rulebook import load
from gate.rulebooks.testing.proposals import boundary_cases
from tests.support.migrations import desk, user
from workbench.migration.drafted import Drafted, prove_draft


def change(home: Path, scope_name: str, rulebook_id: str) -> dict[str, str]:
    """Puts a change into an instance.

    Args:
        home: The instance's home.
        scope_name: The scope.
        rulebook_id: A rulebook of which it has a registered version, with a priority of 100.

    Returns:
        The pages that show something of it, by name.
    """
    with closing(open_instance(load_settings(home))) as instance, fixture_facts() as make_facts:
        scope = instance.ledger.directory.scope(scope_name)
        registry, acts, people = instance.ledger.rulebooks, instance.draft_acts(), desk(instance, scope)
        latest = registry.latest(scope.scope_id, rulebook_id)
        assert latest is not None
        rulebook = load(registry.body(scope.scope_id, latest.hash))
        people.route(f"{rulebook_id}.first", rulebook)
        draft = acts.begin(scope, people.author, "the next season", rulebook_id, rulebook.version)
        acts.take_cases(scope, people.author, draft.draft_id, boundary_cases(rulebook)[:5])
        text = draft.text.replace(rulebook.version, "2027-01-01").replace("priority: 100", "priority: 110")
        acts.save(scope, user("bea", scope, "author"), draft.draft_id, text, after=draft.edition)
        candidate = diagnose(text).rulebook
        assert candidate is not None
        drafted = Drafted(f"{rulebook_id}.2027", "Its first rule goes before all others.", candidate, {})
        proof = prove_draft(instance, scope, drafted, make_facts)
        instance.migration_acts().propose(scope, people.author, proof.proposal, "Before the season begins.")
    of, at = f"scope={scope_name}", f"scope={scope_name}&id={draft.draft_id}"
    return {
        "drafts": f"/drafts?{of}",
        "draft": f"/draft?{at}",
        "cases": f"/cases?{at}",
        "revisions": f"/revisions?{at}",
        "compare": f"/compare?{at}&base={quote(f'{rulebook_id} {rulebook.version}')}",
        "propose": f"/propose?{at}",
        "whatif": f"/whatif?{of}&policy={rulebook_id}",
        "migrations": f"/migrations?{of}",
        "migration": f"/migration?{of}&id={drafted.migration_id}",
    }
