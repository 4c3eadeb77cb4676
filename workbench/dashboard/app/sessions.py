"""Sessions of signed-in users, kept by the server and nowhere else.

A browser holds a random id in a signed cookie that no script can read. The server keeps the id's hash with the user's
id and epoch. It looks up the user's rights for every page and act, and ends a session of an earlier epoch. A restart of
the server ends every session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Lock
from typing import Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from gate.ledger.access.users import Ended, User, Users

LIFETIME: Final = timedelta(hours=12)
"""After this time a session is over, whatever was done in it."""

IDLE: Final = timedelta(hours=1)
"""A session in which nothing is done for so long is over."""

Over: TypeAlias = Ended | Literal["elsewhere", "idle", "long", "restarted"]
"""Why a session is over: as `Users.ended` says, or it was ended in another window of its browser, was idle, lasted for
`LIFETIME`, or was begun before the server was.
"""

_MOST: Final = 10_000
# For as long a browser reads why its session is over.
_REMEMBERED: Final = timedelta(days=1)


@dataclass(slots=True)
class Session:
    """Somebody who is signed in.

    Attributes:
        handle: What the server's own parts call it; it opens nothing.
        user_id: The user.
        epoch: The user's epoch at the sign-in.
        begun_at: When that was.
        active_at: When something was last done in it.
        over: Why it was ended, before its time; None where it was not.
    """

    handle: str
    user_id: str
    epoch: int
    begun_at: datetime
    active_at: datetime
    over: Over | None = None


class Sessions:
    """The sessions of signed-in users."""

    def __init__(self, users: Users, clock: Callable[[], datetime]) -> None:
        """Takes the users and the clock."""
        self._users = users
        self._clock = clock
        self._lock = Lock()
        self._by_id: dict[bytes, Session] = {}
        self._by_handle: dict[str, Session] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def begin(self, user: User) -> str:
        """Signs a user in; the id for the cookie, which is kept nowhere."""
        now = self._clock()
        session_id, handle = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        session = Session(handle, user.user_id, user.epoch, now, now)
        with self._lock:
            self._forget_old(now)
            self._by_id[_hash(session_id)] = self._by_handle[handle] = session
        return session_id

    def find(self, session_id: str) -> Session | None:
        """The session of a cookie; None where it is unknown or over."""
        with self._lock:
            return _living(self._by_id.get(_hash(session_id)), self._clock())

    def user(self, handle: str, *, active: bool = True) -> User | None:
        """The user of a session, as the ledger has them now; None where the session is over.

        Args:
            handle: The session's handle.
            active: Whether the user did something now, which delays the end of an idle session.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        # One moment for all, or a session could be found alive at one and be kept alive from a later one on.
        now = self._clock()
        with self._lock:
            session = _living(self._by_handle.get(handle), now)
        if session is None:
            return None
        user = self._users.current(session.user_id, session.epoch, now)
        if user is None:
            self.end(handle, self._users.ended(session.user_id, now))
        elif active:
            # Something slower that began earlier may end later.
            session.active_at = max(session.active_at, now)
        return user

    def turn(self, handle: str) -> asyncio.Lock:
        """The lock under which pages of a session's user are loaded, one at a time.

        Args:
            handle: The session's handle; sessions of one user have one lock, and what is over one of its own.
        """
        with self._lock:
            return self._turns.setdefault(self._user_id(handle), asyncio.Lock())

    def user_id(self, handle: str) -> str:
        """Whose session it is; of one that is over, the handle."""
        with self._lock:
            return self._user_id(handle)

    def over(self, handle: str) -> Over | None:
        """Why a session is over; None where it is not."""
        with self._lock:
            return self._over(self._by_handle.get(handle))

    def over_by_id(self, session_id: str) -> Over | None:
        """Why the session of a cookie is over; None where it is not."""
        with self._lock:
            return self._over(self._by_id.get(_hash(session_id)))

    def end(self, handle: str, over: Over = "elsewhere") -> None:
        """Ends a session; one that is over keeps its reason.

        Args:
            handle: The session's handle.
            over: Why, for those of its windows that are still open.
        """
        with self._lock:
            session = self._by_handle.get(handle)
            if session is not None and self._over(session) is None:
                session.over = over

    def _over(self, session: Session | None) -> Over | None:
        # One that is known no more was begun long ago.
        return "long" if session is None else _over(session, self._clock())

    def _user_id(self, handle: str) -> str:
        session = self._by_handle.get(handle)
        return handle if session is None else session.user_id

    def _forget_old(self, now: datetime) -> None:
        known = [item for item in self._by_id.items() if now - item[1].begun_at < _REMEMBERED]
        # Where there are too many, those that are over go first, and then the oldest.
        known.sort(key=lambda item: (_over(item[1], now) is None, item[1].active_at))
        kept = known[-_MOST + 1 :]
        self._by_id = dict(kept)
        self._by_handle = {session.handle: session for _, session in kept}


def _living(session: Session | None, now: datetime) -> Session | None:
    return session if session is not None and _over(session, now) is None else None


def _over(session: Session, now: datetime) -> Over | None:
    if session.over is not None:
        return session.over
    if now - session.begun_at >= LIFETIME:
        return "long"
    return "idle" if now - session.active_at >= IDLE else None


def _hash(session_id: str) -> bytes:
    return sha256(session_id.encode()).digest()
