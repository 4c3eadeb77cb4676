"""The people who sign in to the workbench, and their roles in scopes.

Users are the instance's and not a scope's. An operator adds them on the command line; the workbench signs them in and,
at every step that they take, asks whether they are still signed in:

    user = ledger.users.sign_in("ada", password, now)
    session = (user.user_id, user.epoch)
    ...
    user = ledger.users.current(*session, now)      # None: the session is over

Passwords are stored as argon2id hashes, which no function here hands out.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from gate.clock import new_id
from gate.errors import AccessRefused, OperatorError
from gate.ids import timestamp
from gate.ledger.access.authority import Scope
from gate.ledger.access.names import RULE, is_name, same_but_for_case
from gate.ledger.access.operator_log import in_workbench, lock, record, was_recorded
from gate.ledger.access.passwords import hash_password, matches
from gate.ledger.stores.store import Store, unheard_of
from gate.ledger.tables import scopes, user_scopes, user_sessions, users

ROLES: Final = ("viewer", "author", "approver")

Act: TypeAlias = Literal["see", "dismiss", "draft", "approve"]
"""See a scope's decisions and reports; dismiss and reopen its anomalies; draft a change of its rulebooks; approve one.

Nobody may both draft and approve in a scope.
"""

Ended: TypeAlias = Literal["disabled", "expired", "changed"]
"""Why the session of a user is over: the user is disabled or expired, or the epoch has moved on."""

_MAY: Final[Mapping[str, frozenset[Act]]] = {
    "viewer": frozenset({"see"}),
    "author": frozenset({"see", "dismiss", "draft"}),
    "approver": frozenset({"see", "dismiss", "approve"}),
}

_ID_PREFIX: Final = "usr"
_UNKNOWN: Final = "unknown"
# How often the log has a refused sign-in, or a lockout, under one name.
_REFUSALS: Final = timedelta(minutes=1)


def may(role: str | None, act: Act) -> bool:
    """Whether a role allows an act in its scope; None, for no role, allows nothing."""
    return act in _MAY.get(role or "", ())


@dataclass(frozen=True, slots=True)
class User:
    """A user as operators and the workbench see them, without the password's hash. Dates are UTC timestamps, or None.

    Attributes:
        user_id: Opaque; sorts by time.
        name: Unique, also without regard to case.
        roles: One of `ROLES` for each scope's id.
        scopes: The name of each of these scopes, by its id.
        created_at: When the user was added.
        expires_at: From when on the user cannot sign in.
        disabled_at: Since when the user is disabled.
        last_sign_in_at: When the user signed in last.
        epoch: Sessions of an earlier one are over.
    """

    user_id: str
    name: str
    roles: Mapping[str, str]
    scopes: Mapping[str, str]
    created_at: str
    expires_at: str | None
    disabled_at: str | None
    last_sign_in_at: str | None
    epoch: int

    def status(self, now: datetime) -> str:
        """active, disabled or expired."""
        if self.disabled_at is not None:
            return "disabled"
        if self.expires_at is not None and timestamp(now) >= self.expires_at:
            return "expired"
        return "active"


class Users:
    """The users of a ledger.

    `by` is the name of the user who makes a change in the workbench. Without it, the log attributes the change to the
    operator who runs this process.
    """

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store
        self._unlogged = _Unlogged()

    def require_addable(self, name: str, role: str, expires_at: datetime | None, now: datetime) -> None:
        """Requires everything that `add` does, except a password. Call it before you prompt for one.

        Raises:
            OperatorError: `USER_NAME_INVALID`, `ROLE_UNKNOWN`, `USER_EXPIRY_PAST` or `USER_EXISTS`.
        """
        if not is_name(name):
            raise OperatorError("USER_NAME_INVALID", f"{name!r} is not a valid name for a user. {RULE}")
        _require_role(role)
        _require_future(expires_at, now)
        with self._store.read() as connection:
            _require_free(connection, name)

    def add(
        self,
        name: str,
        password: str,
        in_scopes: Collection[Scope],
        role: str,
        expires_at: datetime | None,
        now: datetime,
    ) -> User:
        """Adds a user.

        Args:
            name: The user's name, by `names.RULE`, and not the name of another user in another case.
            password: The password, of 12 to 256 characters.
            in_scopes: The scopes in which the user has the role.
            role: One of `ROLES`.
            expires_at: From when on the user cannot sign in; None for never.
            now: The current moment.

        Raises:
            OperatorError: `USER_NAME_INVALID`, `ROLE_UNKNOWN`, `USER_EXPIRY_PAST`, `USER_EXISTS` or `PASSWORD_UNFIT`.
        """
        self.require_addable(name, role, expires_at, now)
        user_id, password_hash = new_id(_ID_PREFIX, now), hash_password(password, name)
        granted = {scope.scope_id: scope.name for scope in in_scopes}
        ends = None if expires_at is None else timestamp(expires_at)
        with self._store.write() as connection:
            row = {"user_id": user_id, "name": name, "created_at": timestamp(now), "expires_at": ends, "epoch": 0}
            try:
                connection.execute(insert(users).values(**row, password_hash=password_hash))
            except IntegrityError as error:
                raise _taken(name) from error
            for scope_id in granted:
                connection.execute(insert(user_scopes).values(scope_id=scope_id, user_id=user_id, role=role))
            details = {"scopes": sorted(granted.values()), "role": role, "expires_at": ends}
            record(connection, "user.added", name, details, now)
            # Only now, under the operator log's lock: of two that are added at one moment, one sees the other.
            _require_free(connection, name, but=user_id)
            return _with_id(connection, user_id)

    def users(self, scope: Scope | None = None) -> list[User]:
        """The users with a role in one scope, or all, by name.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = _USERS.order_by(users.c.name)
        if scope is not None:
            of_scope = select(user_scopes.c.user_id).where(user_scopes.c.scope_id == scope.scope_id)
            query = query.where(users.c.user_id.in_(of_scope))
        with self._store.read() as connection:
            return _users(connection.execute(query))

    def user(self, name: str) -> User:
        """The user of that name.

        Raises:
            OperatorError: `USER_UNKNOWN`.
        """
        with self._store.read() as connection:
            row = _credentials(connection, name)
            if row is None:
                raise _nobody(name)
            return _with_id(connection, row.user_id)

    def grant(self, name: str, scope: Scope, role: str, now: datetime) -> User:
        """Gives a user a role in a scope, in place of another one there. A role that the user has changes nothing.

        Raises:
            OperatorError: `USER_UNKNOWN` or `ROLE_UNKNOWN`.
        """
        _require_role(role)
        with self._changing(name) as (connection, found):
            if found.roles.get(scope.scope_id) != role:
                _take_role(connection, found, scope)
                row = {"scope_id": scope.scope_id, "user_id": found.user_id, "role": role}
                connection.execute(insert(user_scopes).values(**row))
                _end_sessions(connection, found)
                record(connection, "user.granted", name, {"scope": scope.name, "role": role}, now)
            return _with_id(connection, found.user_id)

    def revoke(self, name: str, scope: Scope, now: datetime) -> User:
        """Takes a user's role in a scope away. Without any role, a user can sign in and sees nothing.

        Raises:
            OperatorError: `USER_UNKNOWN` or `ROLE_MISSING`.
        """
        with self._changing(name) as (connection, found):
            if scope.scope_id not in found.roles:
                raise OperatorError(
                    "ROLE_MISSING",
                    f"The user {name} has no role in the scope {scope.name}. `gate users list` shows all roles.",
                )
            _take_role(connection, found, scope)
            _end_sessions(connection, found)
            details = {"scope": scope.name, "role": found.roles[scope.scope_id]}
            record(connection, "user.revoked", name, details, now)
            return _with_id(connection, found.user_id)

    def set_password(self, name: str, password: str, now: datetime, *, by: str | None = None) -> User:
        """Gives a user another password, and ends the user's sessions.

        Raises:
            OperatorError: `USER_UNKNOWN` or `PASSWORD_UNFIT`.
        """
        password_hash = hash_password(password, self.user(name).name)
        with self._changing(name) as (connection, found):
            _end_sessions(connection, found, password_hash=password_hash)
            record(connection, "user.password_set", name, {}, now, operator=_operator(by))
            return _with_id(connection, found.user_id)

    def disable(self, name: str, now: datetime) -> User:
        """Disables a user from now on, and ends the user's sessions; a user disabled before keeps the date.

        Raises:
            OperatorError: `USER_UNKNOWN`.
        """
        with self._changing(name) as (connection, found):
            if found.disabled_at is None:
                _end_sessions(connection, found, disabled_at=timestamp(now))
                record(connection, "user.disabled", name, {}, now)
            return _with_id(connection, found.user_id)

    def enable(self, name: str, now: datetime, expires_at: datetime | None = None) -> User:
        """Lets a disabled or expired user sign in again.

        Args:
            name: The user.
            now: The current moment.
            expires_at: From when on the user cannot sign in, instead of when that was before; None leaves it.

        Raises:
            OperatorError: `USER_UNKNOWN` or `USER_EXPIRY_PAST`.
        """
        _require_future(expires_at, now)
        with self._changing(name) as (connection, found):
            ends = found.expires_at if expires_at is None else timestamp(expires_at)
            if found.disabled_at is not None or ends != found.expires_at:
                statement = update(users).where(users.c.user_id == found.user_id)
                connection.execute(statement.values(disabled_at=None, expires_at=ends))
                record(connection, "user.enabled", name, {"expires_at": ends}, now)
            return _with_id(connection, found.user_id)

    def sign_out(self, name: str, now: datetime, *, by: str | None = None) -> User:
        """Ends all of a user's sessions.

        Raises:
            OperatorError: `USER_UNKNOWN`.
        """
        with self._changing(name) as (connection, found):
            _end_sessions(connection, found)
            record(connection, "user.signed_out", name, {}, now, operator=_operator(by))
            return _with_id(connection, found.user_id)

    def sign_in(self, name: str, password: str, now: datetime) -> User:
        """The user of a name and a password.

        The refusal and its cost are the same for every cause: an unknown, disabled, or expired name, or a wrong
        password. The operator log has the cause, at most once a minute for each name, and the number of refusals in
        between.

        Raises:
            AccessRefused: `SIGN_IN_REFUSED`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            known = _credentials(connection, name)
        # Between the transactions: it takes a tenth of a second.
        is_right = matches(password, None if known is None else known.password_hash)
        with self._store.write() as connection:
            found = _credentials(connection, name, lock=True)
            # The password may have been changed meanwhile.
            is_right = is_right and found == known
            user = None if found is None else _with_id(connection, found.user_id)
            reason = _refusal(user, now, is_right=is_right)
            if user is not None and reason is None:
                return _signed_in(connection, user, now, self._unlogged.take(name))
            subject = _UNKNOWN if user is None else name
            is_logged = self._log(connection, "user.sign_in_refused", subject, {"reason": reason}, now)
            if not is_logged:
                self._unlogged.count(subject)
        if not is_logged:
            # Waits for the disk all the same, or the time would tell the names that exist.
            self._store.probe()
        raise _refused()

    def log_lockout(self, name: str, address: str, limits: Collection[str], now: datetime) -> None:
        """Logs that sign-in attempts are refused for some time without a check, at most once a minute for each name.

        Args:
            name: The name that was tried last, which is logged where a user has it: it may be a mistyped password.
            address: Where from, as it is counted.
            limits: The subject of the count: `name`, `address`, or `both`.
            now: The current moment.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        details = {"address": address, "counted_by": sorted(limits)}
        with self._store.write() as connection:
            subject = _UNKNOWN if _credentials(connection, name) is None else name
            is_logged = self._log(connection, "user.sign_in_locked", subject, details, now)
        if not is_logged:
            self._store.probe()

    def let_in(self, name: str, now: datetime) -> User:
        """Signs a user in without a password, for the operator whose link the user followed.

        Raises:
            AccessRefused: `SIGN_IN_REFUSED`: the user is disabled or expired.
            OperatorError: `USER_UNKNOWN`.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._changing(name) as (connection, found):
            if found.status(now) != "active":
                raise _refused()
            return _signed_in(connection, found, now, self._unlogged.take(name))

    def begin_session(self, user: User, lifetime: timedelta, now: datetime) -> tuple[str, str]:
        """Begins a session of the command line for a user after sign-in.

        Args:
            user: The user.
            lifetime: After how long it is over.
            now: The current moment.

        Returns:
            The session's token, which is stored nowhere, and when the session is over, a UTC timestamp.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        token, expires_at = f"{_SESSION_PREFIX}_{secrets.token_urlsafe(32)}", timestamp(now + lifetime)
        row = {"token_hash": _token_hash(token), "user_id": user.user_id, "epoch": user.epoch}
        with self._store.write() as connection:
            connection.execute(delete(user_sessions).where(user_sessions.c.expires_at <= timestamp(now)))
            connection.execute(insert(user_sessions).values(**row, expires_at=expires_at))
            record(connection, "user.session_begun", user.name, {"expires_at": expires_at}, now)
        return token, expires_at

    def of_session(self, token: str, now: datetime) -> User:
        """The user of a session of the command line, as the ledger has them now.

        Raises:
            AccessRefused: `SESSION_OVER`: it is unknown or over, or the user was changed, disabled or signed out since.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        query = select(user_sessions).where(user_sessions.c.token_hash == _token_hash(token))
        with self._store.read() as connection:
            row = connection.execute(query).one_or_none()
        user = None
        if row is not None and timestamp(now) < row.expires_at:
            user = self.current(row.user_id, row.epoch, now)
        if user is None:
            raise AccessRefused(
                "SESSION_OVER",
                "The token belongs to no session, or its session is over: it expired, or the user's password, "
                "roles or state changed. Sign in again with `gate users sign-in`.",
            )
        return user

    def current(self, user_id: str, epoch: int, now: datetime) -> User | None:
        """The user of a session as the ledger has it now; None where the session is over.

        It is over where the user is disabled, expired or gone, or the epoch has moved on since.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        if unheard_of(user_id):
            return None
        with self._store.read() as connection:
            found = _users(connection.execute(_BY_ID, {"user": user_id}))
        return next((user for user in found if user.epoch == epoch and user.status(now) == "active"), None)

    def ended(self, user_id: str, now: datetime) -> Ended:
        """Why `current` found the session of a user over.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            found = _users(connection.execute(_BY_ID, {"user": user_id}))
        if not found or found[0].status(now) == "active":
            return "changed"
        return "disabled" if found[0].disabled_at is not None else "expired"

    def _log(
        self, connection: Connection, action: str, subject: str, details: Mapping[str, object], now: datetime
    ) -> bool:
        """Logs what strangers can bring about, unless there is such an entry from the last minute; whether it did."""
        lock(connection)
        if was_recorded(connection, action, subject, now - _REFUSALS, now):
            return False
        details = {**details, **self._unlogged.take(subject)}
        record(connection, action, subject, details, now, operator=in_workbench(subject))
        return True

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[Connection, User]]:
        """A transaction that alone changes a user, and the user."""
        with self._store.write() as connection:
            # Locks in the order of every change: the user's row, the operator log.
            row = _credentials(connection, name, lock=True)
            if row is None:
                raise _nobody(name)
            yield connection, _with_id(connection, row.user_id)


_SESSION_PREFIX: Final = "dgs"


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


_USERS: Final[Select[Any]] = (
    select(
        *(column for column in users.c if column is not users.c.password_hash),
        user_scopes.c.scope_id,
        user_scopes.c.role,
        scopes.c.name.label("scope"),
    )
    .outerjoin(user_scopes, user_scopes.c.user_id == users.c.user_id)
    .outerjoin(scopes, scopes.c.scope_id == user_scopes.c.scope_id)
)
_BY_ID: Final = _USERS.where(users.c.user_id == bindparam("user"))


def _users(rows: Iterable[Row[Any]]) -> list[User]:
    """The users of rows, which have one for each scope of a user."""
    return [_user(list(of_user)) for _, of_user in groupby(rows, lambda row: row.user_id)]


def _user(rows: list[Row[Any]]) -> User:
    first, granted = rows[0], sorted((row for row in rows if row.scope_id is not None), key=lambda row: row.scope)
    return User(
        user_id=first.user_id,
        name=first.name,
        roles={row.scope_id: row.role for row in granted},
        scopes={row.scope_id: row.scope for row in granted},
        created_at=first.created_at,
        expires_at=first.expires_at,
        disabled_at=first.disabled_at,
        last_sign_in_at=first.last_sign_in_at,
        epoch=first.epoch,
    )


def _with_id(connection: Connection, user_id: str) -> User:
    (user,) = _users(connection.execute(_BY_ID, {"user": user_id}))
    return user


def _credentials(connection: Connection, name: str, *, lock: bool = False) -> Row[Any, Any] | None:
    """The id and the password's hash of the user of a name."""
    if unheard_of(name):
        return None
    query = select(users.c.user_id, users.c.password_hash).where(users.c.name == name)
    return connection.execute(query.with_for_update() if lock else query).one_or_none()


def _require_free(connection: Connection, name: str, *, but: str | None = None) -> None:
    """Requires that no user has the name, or the name in another case; but the user of an id."""
    names = connection.execute(select(users.c.name).where(users.c.user_id != (but or ""))).scalars().all()
    if name in names:
        raise _taken(name)
    if (other := same_but_for_case(name, names)) is not None:
        raise OperatorError(
            "USER_EXISTS", f"The user {other!r} differs only in case from {name!r}. Choose another name."
        )


def _require_role(role: str) -> None:
    if role not in ROLES:
        raise OperatorError("ROLE_UNKNOWN", f"The role {role!r} is not one of {', '.join(ROLES)}.")


def _require_future(expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise OperatorError("USER_EXPIRY_PAST", "The expiry is in the past. Give a later date.")


class _Unlogged:
    """How many refused sign-ins of this process are in no entry of the log yet, by the name that has one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def count(self, subject: str) -> None:
        """Counts one."""
        with self._lock:
            self._counts[subject] += 1

    def take(self, subject: str) -> dict[str, object]:
        """The number of refusals since the last entry, as a detail of the next one; empty where there are none."""
        with self._lock:
            count = self._counts.pop(subject, 0)
        return {"refusals_not_logged": count} if count else {}


def _signed_in(connection: Connection, user: User, now: datetime, details: Mapping[str, object]) -> User:
    """The user of a sign-in, which is noted and logged."""
    signed_in = update(users).where(users.c.user_id == user.user_id)
    connection.execute(signed_in.values(last_sign_in_at=timestamp(now)))
    record(connection, "user.signed_in", user.name, details, now, operator=in_workbench(user.name))
    return _with_id(connection, user.user_id)


def _refused() -> AccessRefused:
    return AccessRefused(
        "SIGN_IN_REFUSED",
        "The name or the password is wrong, or the account is disabled or expired. Check both, or ask an operator.",
    )


def _taken(name: str) -> OperatorError:
    return OperatorError("USER_EXISTS", f"The user {name!r} already exists. Choose another name.")


def _nobody(name: str) -> OperatorError:
    return OperatorError("USER_UNKNOWN", f"There is no user named {name!r}. `gate users list` shows all users.")


def _end_sessions(connection: Connection, user: User, **changes: object) -> None:
    """Moves the user's epoch on, so that no session from before goes on."""
    statement = update(users).where(users.c.user_id == user.user_id)
    connection.execute(statement.values(epoch=users.c.epoch + 1, **changes))


def _take_role(connection: Connection, user: User, scope: Scope) -> None:
    of_user = user_scopes.c.user_id == user.user_id
    connection.execute(delete(user_scopes).where(user_scopes.c.scope_id == scope.scope_id, of_user))


def _refusal(user: User | None, now: datetime, *, is_right: bool) -> str | None:
    """Why a sign-in is refused; None where it is not."""
    if user is None:
        return "unknown_name"
    if not is_right:
        return "wrong_password"
    status = user.status(now)
    return None if status == "active" else status


def _operator(by: str | None) -> str | None:
    return None if by is None else in_workbench(by)
