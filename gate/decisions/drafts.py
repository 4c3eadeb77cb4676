"""The work on drafts of rulebooks. The workbench and the command line use the same acts and checks.

    acts.begin(scope, ada, "lower margin", "pricing_exception", "7")    a draft of a registered version
    acts.save(scope, ada, draft_id, text, after=3)
    acts.keep_case(scope, ada, draft_id, case)

A draft decides nothing. It takes the role author to make one, and to change it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

import orjson

from gate.decisions.migrations.rules import require_act
from gate.drafting.given import fields_of
from gate.encoding.canonical import content_hash
from gate.encoding.strict_json import Json, JsonObject
from gate.encoding.yaml_text import write_yaml
from gate.errors import MaterialRefused, NotFound, ServiceUnavailable
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from gate.ledger.drafts.cases import read_case
from gate.ledger.drafts.drafts import Draft, Origin
from gate.rulebooks.authoring import annotated
from gate.rulebooks.evaluation import ABSENT, value_at
from gate.rulebooks.facts import with_value
from gate.rulebooks.rulebook import Rulebook
from gate.rulebooks.testing.cases import Case


def case_of(
    rulebook: Rulebook,
    record: Mapping[str, Any],
    facts: JsonObject,
    expect: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Case:
    """Makes a case of a stored decision. It has only the facts that the rulebook reads: erasure does not reach cases,
    so other personal data of the decision must not enter them.

    Args:
        rulebook: The rulebook.
        record: The decision's record.
        facts: The facts that it was made over.
        expect: The expected result of the facts; None for the verdict and reason code of the decision.
        name: The case's name; one made of the decision's id and the verdict where None.

    Raises:
        MaterialRefused: `CASE_INVALID`.
    """
    expected = {name: record[name] for name in ("verdict", "reason_code")} if expect is None else dict(expect)
    called = name or f"{record['decision_id']} is {expected['verdict']}"
    read: JsonObject = {}
    for field in fields_of(rulebook.body, {}):
        if (value := value_at(facts, field.name)) is not ABSENT:
            read = with_value(read, field.name, value)
    return read_case({"name": called, "facts": read, "expect": expected})


class DraftActs:
    """The acts of users on the drafts of scopes.

    Each act raises `AccessForbidden` `DRAFT_FORBIDDEN` if the user may not draft in the scope, `ServiceUnavailable`
    `SVC_STORAGE_UNAVAILABLE` if the ledger did not store it, and the errors that `gate.ledger.drafts` names.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], datetime]) -> None:
        """Composes it.

        Args:
            ledger: Where drafts are kept.
            clock: The current moment, in UTC.
        """
        self._ledger: Final = ledger
        self._clock: Final = clock

    def create(
        self, scope: Scope, user: User, name: str, text: str, origin: Origin, cases: Sequence[Case] = ()
    ) -> Draft:
        """Makes a draft of a text, with cases."""
        self._require(user, scope)
        made = self._ledger.drafts.create(scope, name, text, origin, user.name, self._clock())
        if cases:
            self._ledger.draft_cases.take(scope, made.draft_id, list(cases), by=user.name, now=self._clock())
        return made

    def begin(self, scope: Scope, user: User, name: str, rulebook_id: str, version: str) -> Draft:
        """Makes a draft of a registered version, with the cases of the last draft that began with the same rulebook.

        Raises:
            NotFound: `RULEBOOK_VERSION_UNKNOWN`.
        """
        self._require(user, scope)
        origin = Origin("registered", rulebook_id, version)
        return self.create(
            scope,
            user,
            name,
            self.registered_text(scope, rulebook_id, version),
            origin,
            self._last_cases(scope, rulebook_id),
        )

    def fork(self, scope: Scope, user: User, of: Draft, text: str, name: str) -> Draft:
        """Makes a draft of a draft, with its cases and with a text of its own."""
        self._require(user, scope)
        cases = [kept.case for kept in self._ledger.draft_cases.of(scope.scope_id, of.draft_id)]
        return self.create(scope, user, name, text, Origin("draft", of.draft_id, str(of.revision)), cases)

    def save(self, scope: Scope, user: User, draft_id: str, text: str, *, after: int) -> Draft:
        """Saves the text of a draft."""
        self._require(user, scope)
        return self._ledger.drafts.save(scope, draft_id, text, after=after, by=user.name, now=self._clock())

    def rename(self, scope: Scope, user: User, draft_id: str, name: str) -> Draft:
        """Calls a draft otherwise."""
        self._require(user, scope)
        return self._ledger.drafts.rename(scope, draft_id, name, user.name, self._clock())

    def close(self, scope: Scope, user: User, draft_id: str) -> Draft:
        """Takes a draft out of the list of open ones."""
        self._require(user, scope)
        return self._ledger.drafts.close(scope, draft_id, user.name, self._clock())

    def reopen(self, scope: Scope, user: User, draft_id: str) -> Draft:
        """Opens a closed draft again."""
        self._require(user, scope)
        return self._ledger.drafts.reopen(scope, draft_id, user.name, self._clock())

    def keep_case(self, scope: Scope, user: User, draft_id: str, case: Case, *, instead_of: str | None = None) -> None:
        """Adds a case to a draft, or puts it in the place of another one."""
        self._require(user, scope)
        cases = self._ledger.draft_cases
        cases.keep(scope, draft_id, case, instead_of=instead_of, by=user.name, now=self._clock())

    def take_cases(self, scope: Scope, user: User, draft_id: str, cases: Sequence[Case]) -> list[str]:
        """Adds the cases to a draft whose names it does not have yet; returns their names."""
        self._require(user, scope)
        return self._ledger.draft_cases.take(scope, draft_id, list(cases), by=user.name, now=self._clock())

    def remove_case(self, scope: Scope, user: User, draft_id: str, name: str) -> None:
        """Removes a case from a draft."""
        self._require(user, scope)
        self._ledger.draft_cases.remove(scope, draft_id, name, by=user.name, now=self._clock())

    def registered_text(self, scope: Scope, rulebook_id: str, version: str) -> str:
        """The text of a registered version for further editing: YAML, or JSON if it is too large for YAML.

        Raises:
            NotFound: `RULEBOOK_VERSION_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`, also where the stored rulebook is not the registered one.
        """
        registry = self._ledger.rulebooks
        found = registry.find_version(scope.scope_id, rulebook_id, version)
        if found is None:
            raise NotFound(
                "RULEBOOK_VERSION_UNKNOWN",
                f"The scope {scope.name} has no version {version} of {rulebook_id}. `gate rulebook list --scope "
                f"{scope.name}` shows the registered versions.",
            )
        body = registry.body(scope.scope_id, found.hash)
        if body is None or content_hash(body) != found.hash:
            raise ServiceUnavailable(
                "SVC_STORAGE_UNAVAILABLE",
                f"The stored copy of {rulebook_id} {version} differs from the registered rulebook.",
            )
        value = cast("Json", annotated(body, registry.annotations(scope.scope_id, found.hash)))
        try:
            return write_yaml(value)
        except MaterialRefused:
            return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"

    def _last_cases(self, scope: Scope, rulebook_id: str) -> list[Case]:
        drafts = self._ledger.drafts
        found = [*drafts.of(scope.scope_id), *drafts.of(scope.scope_id, closed=True)]
        begun = [each for each in found if (each.origin.made, each.origin.of) == ("registered", rulebook_id)]
        if not begun:
            return []
        last = max(begun, key=lambda draft: (draft.saved_at, draft.draft_id))
        return [kept.case for kept in self._ledger.draft_cases.of(scope.scope_id, last.draft_id)]

    def _require(self, user: User, scope: Scope) -> None:
        require_act(user, scope, "draft", code="DRAFT_FORBIDDEN")
