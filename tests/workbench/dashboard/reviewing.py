"""Held decisions with owners, and what their reviewers do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from gate.ledger.access.users import User
from gate.ledger.chain.reviews import Terms
from tests.support.samples import sample_request
from tests.workbench.dashboard.decided import Site, site
from workbench.dashboard.acts.reviews import resolve
from workbench.dashboard.acts.turn import Answer, Turn
from workbench.dashboard.pages.routes import load
from workbench.dashboard.pages.visit import Visit
from workbench.dashboard.store.access import Access
from workbench.dashboard.views.location import Location
from workbench.dashboard.views.page import Page

REVIEW: dict[str, Any] = {"discount_percent": 20, "margin_percent": 22}
POLICY = "pricing_exception"


@dataclass(frozen=True)
class Reviewers:
    """A dashboard over held decisions, with a viewer and approvers."""

    site: Site

    def hold(self, target: str, policy_id: str = POLICY, **binding: Any) -> str:
        """A held decision about a target."""
        request = sample_request(**REVIEW)
        request["context"] |= {"target_object_id": target, **binding}
        request["rulebook"] |= {"rulebook_id": policy_id}
        return self.site.chain.decide(request)

    def owned(self, owner: str, *, policy_id: str = "", within: int | None = None) -> None:
        """Names the owner of the reviews that begin from now on."""
        of = self.site.of
        terms = Terms(owner, within, 7_200)
        of.instance.ledger.review_owners.set(of.scope, policy_id, "", terms, self.site.chain.now)

    def who(self, name: str = "ada", role: str = "approver") -> Access:
        """A user of the scope."""
        scope = self.site.of.scope
        user = User("usr_1", name, {scope.scope_id: role}, {scope.scope_id: scope.name}, "", None, None, None, 1)
        return Access(user, scope.scope_id, scope.name, role)

    def visit(self, url: str, name: str = "ada", role: str = "approver") -> Page:
        """A page as a user sees it."""
        return load(self.site.store, Visit(self.who(name, role), Location.read(url), self.site.chain.now))

    def answer(self, decision_id: str, answer: str = "granted", name: str = "ada", **more: Any) -> Answer:
        """What the page of a review is answered."""
        record = self.site.store.ledger.story(self.site.of.scope.scope_id, decision_id).record
        message = {"decision": decision_id, "record_hash": record["record_hash"], "answer": answer, **more}
        nothing = cast("Any", None)
        who = self.who(name, more.pop("role", "approver"))
        turn = Turn(self.site.store, nothing, nothing, who, message, nothing, self.site.chain.now)
        return resolve(turn)


@contextmanager
def reviewers(directory: Path) -> Iterator[Reviewers]:
    """Makes a dashboard in a directory; nothing is held yet."""
    with site(directory) as made:
        yield Reviewers(replace(made))
