"""Drafts: rulebooks that authors write in the workbench, saved as they are typed, with everything they were before.

    draft = ledger.drafts.create(scope, "lower margin", text, Origin("registered", "refunds", "7"), "ada", now)
    draft = ledger.drafts.save(scope, draft.draft_id, text, after=draft.edition, by="ada", now=now)

A save states the edition that it is based on. If somebody else saved in the meantime, nothing is saved, and the error
contains the current text. An author therefore never overwrites an unseen text. All saves of one author within a few
minutes form one revision, so a revision is a sitting instead of a keystroke. A draft decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Table, func, insert, select, update

from gate.clock import new_id
from gate.errors import NotFound, OperatorError
from gate.ids import timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import in_workbench, lock, record
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.store import Store, has_utf8, read_object, unheard_of
from gate.ledger.tables import draft_revisions, drafts

MAX_TEXT: Final = 1024 * 1024
"""How many bytes of UTF-8 the text of a draft may have."""

MAX_NAME: Final = 120
"""How many characters its name may have."""

MAX_REVISIONS: Final = 1_000
"""How many revisions a draft may have; then it is forked."""

MAX_DRAFTS: Final = 1_000
"""How many open drafts a scope may have."""

SITTING: Final = timedelta(minutes=5)
"""How long after an author saved last, what they save is still the same revision."""

Made: TypeAlias = Literal["empty", "registered", "draft", "file"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a draft.

    Attributes:
        made: Nothing, a registered version, another draft, or a file.
        of: The rulebook's id, the other draft's id, or the file's name; empty where there is none.
        at: The version, or the other draft's revision; empty where there is none.
    """

    made: Made
    of: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class DraftSummary:
    """A draft in a list.

    Attributes:
        draft_id: Opaque; sorts by time.
        name: What its authors call it.
        origin: Its origin.
        edition: How often it was saved.
        revision: The number of its latest revision.
        created_by: The user who made it.
        created_at: UTC timestamp.
        saved_by: The user who saved it last.
        saved_at: UTC timestamp.
        closed_at: Since when it is closed, UTC timestamp; None while it is open.
    """

    draft_id: str
    name: str
    origin: Origin
    edition: int
    revision: int
    created_by: str
    created_at: str
    saved_by: str
    saved_at: str
    closed_at: str | None

    def to_dict(self) -> dict[str, Any]:
        """The summary as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Draft(DraftSummary):
    """A draft with its latest text.

    Attributes:
        text: The text, in JSON or YAML, valid or not.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Revision:
    """What an author saved in one sitting.

    Attributes:
        number: Its place among the draft's, from 1.
        edition: The edition that it ended with.
        saved_by: The user.
        begun_at: When its first edition was saved, UTC timestamp.
        saved_at: When its last one was.
        text: The text then.
    """

    number: int
    edition: int
    saved_by: str
    begun_at: str
    saved_at: str
    text: str


class DraftChanged(OperatorError):
    """`DRAFT_CHANGED`: somebody saved the draft after the edition that an author started from.

    Attributes:
        latest: The draft as it is now.
    """

    def __init__(self, latest: Draft) -> None:
        """Takes the draft as it is now."""
        super().__init__(
            "DRAFT_CHANGED",
            f"{latest.saved_by} saved the draft {latest.name} at {latest.saved_at}, so yours was not saved. "
            "Merge the two, or keep yours as a separate draft.",
        )
        self.latest: Final = latest


class Drafts:
    """The drafts of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def create(self, scope: Scope, name: str, text: str, origin: Origin, by: str, now: datetime) -> Draft:
        """Makes a draft.

        Args:
            scope: The scope.
            name: What to call it, 1 to `MAX_NAME` characters; white space around them is dropped.
            text: Its first text.
            origin: Its origin.
            by: The user.
            now: The current moment.

        Raises:
            OperatorError: `DRAFT_NAME_INVALID`, `DRAFT_TOO_LARGE` or `DRAFTS_FULL`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        name, body, at = _name(name), _body(text), timestamp(now)
        draft_id = new_id("drf", now)
        with self._store.write() as connection:
            lock(connection)
            _require_room(connection, scope)
            connection.execute(
                insert(drafts).values(
                    scope_id=scope.scope_id,
                    draft_id=draft_id,
                    name=name,
                    edition=1,
                    origin=pack(orjson.dumps(asdict(origin))),
                    created_by=by,
                    created_at=at,
                )
            )
            _add(connection, scope.scope_id, draft_id, Revision(1, 1, by, at, at, text), body)
            record_act(connection, "draft.created", scope, draft_id, {"from": origin.made}, by, now)
        return Draft(draft_id, name, origin, 1, 1, by, at, by, at, None, text)

    def save(self, scope: Scope, draft_id: str, text: str, *, after: int, by: str, now: datetime) -> Draft:
        """Saves a draft's text; nothing happens where it is the latest one already.

        Args:
            scope: The scope.
            draft_id: The draft.
            text: The text, valid or not.
            after: The edition that the author started from.
            by: The user.
            now: The current moment.

        Raises:
            DraftChanged: `DRAFT_CHANGED`: somebody saved it since.
            NotFound: `DRAFT_UNKNOWN`.
            OperatorError: `DRAFT_CLOSED`, `DRAFT_TOO_LARGE` or `DRAFT_FULL`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`: nothing was saved.
        """
        body, at = _body(text), timestamp(now)
        with self._store.write() as connection:
            draft, last = latest(connection, scope.scope_id, draft_id, changing=True)
            if draft.closed_at is not None:
                raise OperatorError(
                    "DRAFT_CLOSED", f"The draft {draft.name} was closed at {draft.closed_at}. Reopen it to continue."
                )
            if text == draft.text:
                return draft
            if after != draft.edition:
                raise DraftChanged(draft)
            edition = draft.edition + 1
            same = last.saved_by == by and timestamp(now - SITTING) <= last.saved_at
            if not same and last.number >= MAX_REVISIONS:
                raise OperatorError(
                    "DRAFT_FULL",
                    f"The draft {draft.name} has {MAX_REVISIONS:,} revisions, the maximum. Continue in a fork of it.",
                )
            if same:
                number, begun_at = last.number, last.begun_at
                values = {"edition": edition, "text": body, "saved_at": at}
                connection.execute(
                    update(draft_revisions)
                    .where(*of_draft(draft_revisions, scope.scope_id, draft_id), draft_revisions.c.number == number)
                    .values(**values)
                )
            else:
                number, begun_at = last.number + 1, at
                _add(connection, scope.scope_id, draft_id, Revision(number, edition, by, begun_at, at, text), body)
            connection.execute(
                update(drafts).where(*of_draft(drafts, scope.scope_id, draft_id)).values(edition=edition)
            )
        return replace(draft, edition=edition, revision=number, saved_by=by, saved_at=at, text=text)

    def rename(self, scope: Scope, draft_id: str, name: str, by: str, now: datetime) -> Draft:
        """Calls a draft otherwise.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            OperatorError: `DRAFT_NAME_INVALID`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        name = _name(name)
        with self._store.write() as connection:
            lock(connection)
            draft, _ = latest(connection, scope.scope_id, draft_id, changing=True)
            connection.execute(update(drafts).where(*of_draft(drafts, scope.scope_id, draft_id)).values(name=name))
            record_act(connection, "draft.renamed", scope, draft_id, {}, by, now)
        return replace(draft, name=name)

    def close(self, scope: Scope, draft_id: str, by: str, now: datetime) -> Draft:
        """Removes a draft from the list of open ones. Its content stays. Closing a closed draft has no effect.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return self._close(scope, draft_id, timestamp(now), by, now)

    def reopen(self, scope: Scope, draft_id: str, by: str, now: datetime) -> Draft:
        """Opens a closed draft again.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            OperatorError: `DRAFTS_FULL`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        return self._close(scope, draft_id, None, by, now)

    def _close(self, scope: Scope, draft_id: str, closed_at: str | None, by: str, now: datetime) -> Draft:
        with self._store.write() as connection:
            lock(connection)
            draft, _ = latest(connection, scope.scope_id, draft_id, changing=True)
            if (draft.closed_at is None) == (closed_at is None):
                return draft
            if closed_at is None:
                _require_room(connection, scope)
            done = update(drafts).where(*of_draft(drafts, scope.scope_id, draft_id)).values(closed_at=closed_at)
            connection.execute(done)
            action = "draft.reopened" if closed_at is None else "draft.closed"
            record_act(connection, action, scope, draft_id, {}, by, now)
        return replace(draft, closed_at=closed_at)

    def draft(self, scope_id: str, draft_id: str) -> Draft:
        """A draft with its latest text.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            return latest(connection, scope_id, draft_id)[0]

    def of(self, scope_id: str, *, closed: bool = False) -> list[DraftSummary]:
        """The open drafts of a scope, or those that are closed; the one that was saved last first.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        is_closed = drafts.c.closed_at.is_not(None) if closed else drafts.c.closed_at.is_(None)
        with self._store.read() as connection:
            rows = connection.execute(_LATEST.where(drafts.c.scope_id == scope_id, is_closed))
            found = [_summary(row) for row in rows]
        return sorted(found, key=lambda draft: (draft.saved_at, draft.draft_id), reverse=True)

    def revisions(self, scope_id: str, draft_id: str) -> list[Revision]:
        """Every revision of a draft without its text, the latest first.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = select(*_UNREAD).where(*of_draft(draft_revisions, scope_id, _known(draft_id)))
        with self._store.read() as connection:
            rows = connection.execute(query.order_by(draft_revisions.c.number.desc()))
            found = [_revision(row, "") for row in rows]
        if not found:
            raise _unknown(draft_id)
        return found

    def revision(self, scope_id: str, draft_id: str, number: int) -> Revision:
        """A revision of a draft, with its text.

        Raises:
            NotFound: `DRAFT_UNKNOWN` or `DRAFT_REVISION_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            draft, _ = latest(connection, scope_id, draft_id)
            if not 1 <= number <= draft.revision:
                raise NotFound(
                    "DRAFT_REVISION_UNKNOWN",
                    f"The draft {draft.name} has no revision {number}. Its latest revision is {draft.revision}.",
                )
            which = (*of_draft(draft_revisions, scope_id, draft_id), draft_revisions.c.number == number)
            row = connection.execute(select(draft_revisions).where(*which)).one()
        return _revision(row, _text(row.text))


_UNREAD: Final = [column for column in draft_revisions.c if column.name != "text"]

# Each draft with its latest revision, without the text.
_LATEST: Final = select(
    *(column for column in drafts.c if column.name != "edition"),
    *(column for column in _UNREAD if column.name not in ("scope_id", "draft_id")),
).where(
    drafts.c.scope_id == draft_revisions.c.scope_id,
    drafts.c.draft_id == draft_revisions.c.draft_id,
    drafts.c.edition == draft_revisions.c.edition,
)


def latest(connection: Connection, scope_id: str, draft_id: str, *, changing: bool = False) -> tuple[Draft, Revision]:
    """A draft and its latest revision; nobody else changes it meanwhile where it is to be changed.

    Raises:
        NotFound: `DRAFT_UNKNOWN`.
    """
    found = of_draft(drafts, scope_id, _known(draft_id))
    if changing:
        connection.execute(select(drafts.c.draft_id).where(*found).with_for_update())
    row = connection.execute(_LATEST.add_columns(draft_revisions.c.text).where(*found)).one_or_none()
    if row is None:
        raise _unknown(draft_id)
    text = _text(row.text)
    return Draft(**_members(row), text=text), _revision(row, text)


def of_draft(table: Table, scope_id: str, draft_id: str) -> tuple[ColumnElement[bool], ...]:
    return table.c.scope_id == scope_id, table.c.draft_id == draft_id


def _known(draft_id: str) -> str:
    if unheard_of(draft_id):
        raise _unknown(draft_id)
    return draft_id


def _unknown(draft_id: str) -> NotFound:
    return NotFound(
        "DRAFT_UNKNOWN",
        f"The scope has no draft {draft_id!r}. `gate drafts list --scope SCOPE` lists the open drafts.",
    )


def _name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME or not has_utf8(name):
        raise OperatorError(
            "DRAFT_NAME_INVALID", (f"A draft's name has 1 to {MAX_NAME} characters. Choose another name.")
        )
    return name


def _body(text: str) -> bytes:
    """A text as it is stored."""
    if not has_utf8(text) or len(text.encode()) > MAX_TEXT:
        raise OperatorError(
            "DRAFT_TOO_LARGE", f"The text of a draft may have at most {MAX_TEXT:,} bytes in UTF-8. Shorten it."
        )
    return pack(orjson.dumps({"text": text}))


def _text(stored: bytes) -> str:
    return str(read_object(unpack(stored), "draft")["text"])


def _add(connection: Connection, scope_id: str, draft_id: str, revision: Revision, body: bytes) -> None:
    connection.execute(
        insert(draft_revisions).values(
            scope_id=scope_id,
            draft_id=draft_id,
            number=revision.number,
            edition=revision.edition,
            text=body,
            saved_by=revision.saved_by,
            begun_at=revision.begun_at,
            saved_at=revision.saved_at,
        )
    )


def _require_room(connection: Connection, scope: Scope) -> None:
    opened = select(func.count()).where(drafts.c.scope_id == scope.scope_id, drafts.c.closed_at.is_(None))
    if connection.execute(opened).scalar_one() >= MAX_DRAFTS:
        raise OperatorError(
            "DRAFTS_FULL",
            f"The scope {scope.name} has {MAX_DRAFTS:,} open drafts, the maximum. Close some of them first.",
        )


def record_act(
    connection: Connection, action: str, scope: Scope, draft_id: str, more: Mapping[str, str], by: str, now: datetime
) -> None:
    # Without the name, which its author chose freely.
    record(connection, action, draft_id, {"scope": scope.name, **more}, now, operator=in_workbench(by))


def _members(row: Row[Any]) -> dict[str, Any]:
    return {
        "draft_id": row.draft_id,
        "name": row.name,
        "origin": Origin(**orjson.loads(unpack(row.origin))),
        "edition": row.edition,
        "revision": row.number,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "saved_by": row.saved_by,
        "saved_at": row.saved_at,
        "closed_at": row.closed_at,
    }


def _summary(row: Row[Any]) -> DraftSummary:
    return DraftSummary(**_members(row))


def _revision(row: Row[Any], text: str) -> Revision:
    return Revision(row.number, row.edition, row.saved_by, row.begun_at, row.saved_at, text)
