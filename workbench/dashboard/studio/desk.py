"""One author's work on one draft: saves the text, and returns its problems.

    desk = Desk(acts, scope, ada, draft)
    told = desk.typed(text)         # saved, or told who saved meanwhile; nobody's text is lost
    told = desk.merge(text)

A desk holds the text that the author started from, to merge the texts of two authors. It can be rebuilt from the
ledger, so its loss loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gate.decisions.drafts import DraftActs
from gate.drafting.diagnosis import Diagnosis, diagnose
from gate.drafting.merging import Merged, merge
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import User
from gate.ledger.drafts.drafts import Draft, DraftChanged


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to an author who typed.

    Attributes:
        draft: The draft as it is saved now.
        text: The text that the author should have: their own, or that of a merge.
        saved: Whether that is the draft's text.
        found: The diagnosis of the text.
        conflict: The draft as somebody else saved it meanwhile; None where nobody did.
        merged: What a merge of the two would be; None where there is nothing to merge.
    """

    draft: Draft
    text: str
    saved: bool
    found: Diagnosis
    conflict: Draft | None = None
    merged: Merged | None = None


class Desk:
    """An author at work on a draft."""

    def __init__(self, acts: DraftActs, scope: Scope, author: User, draft: Draft) -> None:
        """Begins with the draft as it is."""
        self._acts: Final = acts
        self._scope: Final = scope
        self._author: Final = author
        self._base = draft

    @property
    def draft(self) -> Draft:
        """The draft that the author started from."""
        return self._base

    def typed(self, text: str) -> Told:
        """Saves what the author has now.

        Raises:
            GateError: As `DraftActs.save`, except `DRAFT_CHANGED`, which is answered with `conflict`.
        """
        base = self._base
        try:
            self._base = self._acts.save(self._scope, self._author, base.draft_id, text, after=base.edition)
        except DraftChanged as error:
            merged = merge(base.text, text, error.latest.text)
            return Told(base, text, False, diagnose(text), error.latest, merged)
        return Told(self._base, text, True, diagnose(text))

    def merge(self, text: str, latest: Draft) -> Told:
        """Saves what the author has, merged with what somebody else saved meanwhile.

        Args:
            text: The author's text.
            latest: The draft as it is now.

        Raises:
            GateError: As `typed`.
        """
        merged = merge(self._base.text, text, latest.text)
        self._base = latest
        return self.typed(merged.text)

    def fork(self, text: str, name: str) -> Told:
        """Keeps what the author has as a draft of its own, which they go on with.

        Raises:
            GateError: As `DraftActs.fork`.
        """
        self._base = self._acts.fork(self._scope, self._author, self._base, text, name)
        return Told(self._base, text, True, diagnose(text))
