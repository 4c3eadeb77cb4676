"""An act of a user in a scope, and what one page of a browser keeps from one act to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from gate.drafting.diagnosis import Diagnosis, diagnose
from gate.encoding.strict_json import JsonObject
from gate.errors import OperatorError
from gate.ledger.access.authority import Scope
from gate.rulebooks.rulebook import Rulebook
from workbench.dashboard.store.access import Access
from workbench.dashboard.store.histories import Rehearsal
from workbench.dashboard.store.store import Store
from workbench.dashboard.studio.desk import Desk
from workbench.dashboard.studio.proofs import Proofs
from workbench.dashboard.studio.uploads import Upload
from workbench.dashboard.studio.workshop import Work, Workshop
from workbench.dashboard.views.drafting.table import Row

Answer: TypeAlias = dict[str, Any]
"""An answer to a browser: `parts` of the page by their ids, as HTML; `say`, a sentence; `go`, an address; and what the
editor takes.
"""

MAX_MESSAGE: Final = 4 * 1024 * 1024
"""How many characters of a message are read: a draft, and what JSON makes of it."""


@dataclass(slots=True)
class Seat:
    """What one page of a browser keeps. All of it can be made again.

    Attributes:
        tell: Sends the browser a message that it did not request; from any thread.
        desk: The draft that is written; None before anything was typed.
        found: The diagnosis of its text.
        given: The test facts.
        rows: What the page's table of rules shows; None before any were sent.
        examined: The hash of the rulebook that is examined, or was.
        works: The running work for the page, by name.
        watching: Ends watching the dry run that the page shows; None where it watches none.
        upload: The file that was sent from the page; None before one was.
        rehearsed: What would be imported of it; None before it was rehearsed.
    """

    tell: Callable[[Answer], None]
    desk: Desk | None = None
    found: Diagnosis | None = None
    given: JsonObject = field(default_factory=dict)
    rows: list[Row] | None = None
    examined: str | None = None
    works: dict[str, Work] = field(default_factory=dict)
    watching: Callable[[], None] | None = None
    upload: Upload | None = None
    rehearsed: Rehearsal | None = None

    def stop_watching(self) -> None:
        """Ends watching a dry run."""
        if self.watching is not None:
            self.watching()
            self.watching = None

    def drop_upload(self) -> None:
        """Removes the file that was sent, and forgets what would be imported of it."""
        if self.upload is not None:
            self.upload.remove()
        self.upload = self.rehearsed = None

    def leave(self) -> None:
        """Ends the work for the page, because its reader has left it."""
        for work in list(self.works.values()):
            work.cancel()
        self.works.clear()
        self.stop_watching()
        self.drop_upload()
        self.desk = self.found = self.rows = self.examined = None
        self.given = {}


@dataclass(frozen=True, slots=True)
class Turn:
    """An act.

    Attributes:
        store: What pages ask for.
        workshop: Processes for long work.
        proofs: The dry runs of drafts.
        who: The user, and their role in the scope.
        message: What the browser said.
        seat: What the page keeps.
        now: The current moment.
    """

    store: Store
    workshop: Workshop
    proofs: Proofs
    who: Access
    message: Mapping[str, Any]
    seat: Seat
    now: datetime

    @property
    def scope(self) -> Scope:
        """The scope, as the ledger has it."""
        return self.store.scope(self.who)

    @property
    def rulebook(self) -> Rulebook:
        """The rulebook of the draft that is written, or that the message names.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            OperatorError: `DRAFT_NOT_VALID`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found = self.seat.found
        if found is None:
            found = diagnose(self.store.drafts.draft(self.who.scope_id, self.text("draft")).text)
        if found.rulebook is None:
            raise OperatorError("DRAFT_NOT_VALID", "The draft is not valid yet, so it decides nothing. Fix it first.")
        return found.rulebook

    def text(self, name: str) -> str:
        """A text of the message.

        Raises:
            OperatorError: `ACT_INVALID`.
        """
        found = self.message.get(name)
        if not isinstance(found, str):
            raise _invalid(name)
        return found

    def word(self, name: str) -> str | None:
        """A text of the message; None where there is none, or an empty one."""
        found = self.message.get(name)
        return found if isinstance(found, str) and found else None

    def values(self, name: str) -> dict[str, Any]:
        """An object of the message.

        Raises:
            OperatorError: `ACT_INVALID`.
        """
        found = self.message.get(name)
        if not isinstance(found, dict):
            raise _invalid(name)
        return found


def _invalid(name: str) -> OperatorError:
    return OperatorError("ACT_INVALID", f"The page sent no {name}; load the page again.")
