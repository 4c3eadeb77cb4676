"""The cases of drafts: facts, and the outcome that the author of a draft expects for them.

    cases.keep(scope, draft_id, case, by="ada", now=now)
    cases.of(scope_id, draft_id)            # as gate.rulebooks.testing.runs.run takes them

Each case is added, changed and removed by itself, so that two authors of one draft are in nobody's way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import orjson
from sqlalchemy import Connection, Row, delete, insert, select, update

from gate.encoding.strict_json import JsonObject
from gate.errors import MaterialRefused, NotFound, OperatorError
from gate.ids import timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.operator_log import lock
from gate.ledger.drafts.drafts import latest, of_draft, record_act
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.store import Store, read_object
from gate.ledger.tables import draft_cases
from gate.rulebooks.testing.cases import Case, Expect, read_cases

MAX_CASES: Final = 1_000
"""How many cases a draft may have."""

MAX_CASE: Final = 64 * 1024
"""How many bytes of JSON a case may take."""


@dataclass(frozen=True, slots=True)
class KeptCase:
    """A case of a draft.

    Attributes:
        case: The case.
        saved_by: The user who added it, or changed it last.
        saved_at: When, UTC timestamp.
    """

    case: Case
    saved_by: str
    saved_at: str


class DraftCases:
    """The cases of the drafts of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store

    def of(self, scope_id: str, draft_id: str) -> list[KeptCase]:
        """The cases of a draft in the order in which they were added.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            latest(connection, scope_id, draft_id)
            return _kept(connection, scope_id, draft_id)

    def keep(
        self, scope: Scope, draft_id: str, case: Case, *, instead_of: str | None = None, by: str, now: datetime
    ) -> None:
        """Adds a case to a draft, or changes one.

        Args:
            scope: The scope.
            draft_id: The draft.
            case: The case.
            instead_of: The name of the one that it takes the place of; None where it is a further one.
            by: The user.
            now: The current moment.

        Raises:
            NotFound: `DRAFT_UNKNOWN` or `CASE_UNKNOWN`.
            MaterialRefused: `CASES_INVALID`, `CASE_TOO_LARGE` or `CASE_NAME_TAKEN`.
            OperatorError: `CASES_FULL` or `DRAFT_CLOSED`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            lock(connection)
            _require_open(connection, scope.scope_id, draft_id)
            self._keep(connection, scope, draft_id, case, instead_of, by, timestamp(now))
            action = "draft.case_added" if instead_of is None else "draft.case_changed"
            record_act(connection, action, scope, draft_id, {}, by, now)

    def take(self, scope: Scope, draft_id: str, cases: list[Case], *, by: str, now: datetime) -> list[str]:
        """Adds the cases whose names a draft does not have yet, such as those of a file or of another draft.

        Returns:
            The names of those that were added.

        Raises:
            NotFound: `DRAFT_UNKNOWN`.
            MaterialRefused: `CASES_INVALID` or `CASE_TOO_LARGE`; none is added.
            OperatorError: `CASES_FULL` or `DRAFT_CLOSED`; none is added.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            lock(connection)
            _require_open(connection, scope.scope_id, draft_id)
            known = {kept.case.name for kept in _kept(connection, scope.scope_id, draft_id)}
            added = [case for case in cases if case.name not in known]
            for case in added:
                self._keep(connection, scope, draft_id, case, None, by, timestamp(now))
            if added:
                record_act(connection, "draft.case_added", scope, draft_id, {"cases": str(len(added))}, by, now)
        return [case.name for case in added]

    def remove(self, scope: Scope, draft_id: str, name: str, *, by: str, now: datetime) -> None:
        """Removes a case.

        Raises:
            NotFound: `DRAFT_UNKNOWN` or `CASE_UNKNOWN`.
            OperatorError: `DRAFT_CLOSED`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.write() as connection:
            lock(connection)
            _require_open(connection, scope.scope_id, draft_id)
            number = _number(connection, scope.scope_id, draft_id, name)
            which = (*of_draft(draft_cases, scope.scope_id, draft_id), draft_cases.c.number == number)
            connection.execute(delete(draft_cases).where(*which))
            record_act(connection, "draft.case_removed", scope, draft_id, {}, by, now)

    def _keep(
        self, connection: Connection, scope: Scope, draft_id: str, case: Case, instead_of: str | None, by: str, at: str
    ) -> None:
        body = _body(case)
        which = of_draft(draft_cases, scope.scope_id, draft_id)
        names = {row.name: row.number for row in connection.execute(select(*_NAMED).where(*which))}
        if case.name in names and case.name != instead_of:
            raise MaterialRefused(
                "CASE_NAME_TAKEN", f"The draft already has a case {case.name!r}. Give this one another name."
            )
        values = {"name": case.name, "body": body, "saved_by": by, "saved_at": at}
        if instead_of is not None:
            number = _number(connection, scope.scope_id, draft_id, instead_of)
            connection.execute(update(draft_cases).where(*which, draft_cases.c.number == number).values(**values))
            return
        if len(names) >= MAX_CASES:
            raise OperatorError(
                "CASES_FULL", (f"The draft has {MAX_CASES:,} cases, the maximum. Remove some of them first.")
            )
        number = max(names.values(), default=0) + 1
        connection.execute(
            insert(draft_cases).values(scope_id=scope.scope_id, draft_id=draft_id, number=number, **values)
        )


_NAMED: Final = (draft_cases.c.name, draft_cases.c.number)


def read_case(document: object) -> Case:
    """A case as JSON: its name, facts and expectation.

    Raises:
        MaterialRefused: `CASES_INVALID`, with an error for each member at fault.
    """
    try:
        return read_cases({"rulebook": "draft", "cases": [document]}).cases[0]
    except MaterialRefused as error:
        errors = [
            type(each)(each.field.removeprefix("cases[0]").removeprefix("."), each.code, each.message)
            for each in error.errors
        ]
        raise MaterialRefused(error.code, "The case is invalid. Fix the listed errors.", errors) from error


def _require_open(connection: Connection, scope_id: str, draft_id: str) -> None:
    draft, _ = latest(connection, scope_id, draft_id, changing=True)
    if draft.closed_at is not None:
        raise OperatorError(
            "DRAFT_CLOSED", f"The draft {draft.name} was closed at {draft.closed_at}. Reopen it to continue."
        )


def _kept(connection: Connection, scope_id: str, draft_id: str) -> list[KeptCase]:
    rows = connection.execute(
        select(draft_cases).where(*of_draft(draft_cases, scope_id, draft_id)).order_by(draft_cases.c.number)
    )
    return [_read(row) for row in rows]


def _number(connection: Connection, scope_id: str, draft_id: str, name: str) -> int:
    """The number of a case, by its name.

    Raises:
        NotFound: `CASE_UNKNOWN`.
    """
    which = of_draft(draft_cases, scope_id, draft_id)
    for row in connection.execute(select(*_NAMED).where(*which)):
        if row.name == name:
            return int(row.number)
    raise NotFound("CASE_UNKNOWN", f"The draft has no case {name[:200]!r}. Somebody may have removed or renamed it.")


def _body(case: Case) -> bytes:
    document = {"name": case.name, "facts": case.facts, "expect": case.expect}
    read_case(document)
    body = orjson.dumps(document)
    if len(body) > MAX_CASE:
        raise MaterialRefused(
            "CASE_TOO_LARGE", f"The case {case.name!r} has {len(body):,} bytes, more than the limit of {MAX_CASE:,}."
        )
    return pack(body)


def _read(row: Row[Any]) -> KeptCase:
    body = read_object(unpack(row.body), "case of a draft")
    case = Case(str(body["name"]), cast("JsonObject", body["facts"]), cast("Expect", body["expect"]))
    return KeptCase(case, row.saved_by, row.saved_at)
