"""Scopes (accounts) and their API keys.

A key is `dgk_<key id>_<secret>`. The key's id begins with the id of its scope, so a leaked key shows its scope. The
secret is stored only as its SHA-256 hash, compared in constant time, and shown once. It has 256 random bits, so a slow
hash would add nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final

from cachetools import LRUCache
from sqlalchemy import Connection, Row, Update, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.errors import AccessForbidden, AccessRefused, OperatorError, ServiceUnavailable
from gate.ids import parse_timestamp, timestamp
from gate.ledger.access.authority import ACCESS, PLANS, ApiKey, Authority, Scope
from gate.ledger.access.names import RULE, is_name, same_but_for_case
from gate.ledger.access.operator_log import record
from gate.ledger.stores.store import Store, unheard_of
from gate.ledger.tables import api_keys, chain_heads, scopes

_KEY_PREFIX: Final = "dgk"
_SCOPE_HEX: Final = 16
_MAX_KEY_LENGTH: Final = 200
# The last use is kept to the minute, so that it costs a write a minute and not one a request.
_LAST_USE: Final = timedelta(minutes=1)
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class _Remembered:
    hash: str
    authority: Authority
    until: datetime


class Directory:
    """The scopes and keys of a ledger."""

    def __init__(self, store: Store) -> None:
        """Works on the given store."""
        self._store = store
        self._remembered: LRUCache[str, _Remembered] = LRUCache(_REMEMBERED)
        self._lock = Lock()

    def probe(self) -> None:
        """Requires that keys can be looked up.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        with self._store.read() as connection:
            connection.execute(select(api_keys.c.key_id).limit(1)).first()
            connection.execute(_SCOPES.limit(1)).first()

    def create_scope(self, name: str, plan: str, now: datetime, *, monthly_cap: int | None = None) -> Scope:
        """Creates a scope with an empty chain.

        Args:
            name: The operator's name for it, by `names.RULE`, and not the name of another scope in another case. Scopes
                that an older release named otherwise keep their names.
            plan: One of `PLANS`.
            now: The current moment.
            monthly_cap: A cap instead of the plan's.

        Raises:
            OperatorError: `SCOPE_EXISTS`, `SCOPE_NAME_INVALID`, `PLAN_UNKNOWN` or `CAP_INVALID`.
        """
        cap = _cap(plan, monthly_cap)
        if not is_name(name):
            raise OperatorError("SCOPE_NAME_INVALID", f"{name!r} is not a valid name for a scope. {RULE}")
        scope = Scope(
            scope_id=secrets.token_hex(_SCOPE_HEX // 2),
            name=name,
            plan=plan,
            monthly_cap=cap,
            chain_id=f"chain_{secrets.token_hex(12)}",
            created_at=timestamp(now),
        )
        with self._store.write() as connection:
            try:
                connection.execute(
                    insert(scopes).values(scope_id=scope.scope_id, name=name, created_at=scope.created_at)
                )
            except IntegrityError as error:
                raise OperatorError(
                    "SCOPE_EXISTS", f"The scope {name!r} already exists. Choose another name."
                ) from error
            connection.execute(
                insert(chain_heads).values(
                    scope_id=scope.scope_id,
                    chain_id=scope.chain_id,
                    chain_size=0,
                    plan=plan,
                    monthly_cap=cap,
                    access_epoch=0,
                )
            )
            record(connection, "scope.created", name, {"plan": plan, "monthly_cap": cap}, now)
            # Only now, under the operator log's lock: of two that are created at one moment, one sees the other.
            other = same_but_for_case(name, connection.execute(select(scopes.c.name)).scalars())
            if other is not None:
                raise OperatorError(
                    "SCOPE_EXISTS", f"The scope {other!r} differs only in case from {name!r}. Choose another name."
                )
        return scope

    def scope(self, name: str) -> Scope:
        """The scope of that name.

        Raises:
            OperatorError: `SCOPE_UNKNOWN`.
        """
        with self._store.read() as connection:
            found = _scope_named(connection, name)
        if found is None:
            raise OperatorError(
                "SCOPE_UNKNOWN", f"There is no scope named {name!r}. `gate scopes list` shows all scopes."
            )
        return found

    def scopes(self) -> list[Scope]:
        """All scopes by name."""
        with self._store.read() as connection:
            return [_scope(row) for row in connection.execute(_SCOPES.order_by(scopes.c.name))]

    def set_plan(self, scope: Scope, plan: str, now: datetime, *, monthly_cap: int | None = None) -> Scope:
        """Gives a scope another plan, from the next request on.

        Args:
            scope: The scope.
            plan: One of `PLANS`.
            now: The current moment.
            monthly_cap: A cap instead of the plan's.

        Raises:
            OperatorError: `PLAN_UNKNOWN` or `CAP_INVALID`.
        """
        cap = _cap(plan, monthly_cap)
        with self._store.write() as connection:
            _change_access(connection, scope.scope_id, plan=plan, monthly_cap=cap)
            record(connection, "scope.plan_changed", scope.name, {"plan": plan, "monthly_cap": cap}, now)
        return replace(scope, plan=plan, monthly_cap=cap)

    def create_key(
        self, scope: Scope, access: Collection[str], expires_at: datetime | None, now: datetime
    ) -> tuple[str, ApiKey]:
        """Makes a key.

        Returns:
            The key itself, which is stored nowhere, and what is kept of it.

        Raises:
            OperatorError: `ACCESS_UNKNOWN`, `ACCESS_CONFLICT`, or `KEY_EXPIRY_PAST`.
        """
        unknown = set(access) - set(ACCESS)
        if unknown or not access:
            raise OperatorError(
                "ACCESS_UNKNOWN",
                f"{', '.join(sorted(unknown)) or 'An empty list'} is not an access. Choose one or more of "
                f"{', '.join(ACCESS)}.",
            )
        if {"decide", "resolve"} <= set(access):
            raise OperatorError(
                "ACCESS_CONFLICT",
                "A key that may decide must not resolve: its holder could grant actions that the gate holds for "
                "the owner. Create one key with decide, and another with resolve.",
            )
        if expires_at is not None and expires_at <= now:
            raise OperatorError("KEY_EXPIRY_PAST", "The expiry is in the past. Give a later date.")
        with self._store.write() as connection:
            # The access epoch stays: no process can remember a key that did not exist.
            key, made = _insert_key(connection, scope.scope_id, access, expires_at, now)
            details = {"scope": scope.name, "access": sorted(access), "expires_at": made.expires_at}
            record(connection, "key.created", made.key_id, details, now)
            return key, made

    def keys(self, scope: Scope | None = None) -> list[ApiKey]:
        """The keys of one scope or of all, by id."""
        query = select(api_keys).order_by(api_keys.c.scope_id, api_keys.c.key_id)
        if scope is not None:
            query = query.where(api_keys.c.scope_id == scope.scope_id)
        with self._store.read() as connection:
            return [_key(row) for row in connection.execute(query)]

    def key(self, key_id: str) -> ApiKey:
        """The key of that id.

        Raises:
            OperatorError: `KEY_UNKNOWN`.
        """
        with self._store.read() as connection:
            return _existing_key(connection, key_id, lock=False)

    def disable_key(self, key_id: str, now: datetime) -> ApiKey:
        """Disables a key from now on; a key disabled before keeps its date.

        Raises:
            OperatorError: `KEY_UNKNOWN`.
        """
        with self._store.write() as connection:
            found = _existing_key(connection, key_id)
            if found.disabled_at is None:
                connection.execute(_update_key(key_id).values(disabled_at=timestamp(now)))
                _change_access(connection, found.scope_id)
                record(connection, "key.disabled", key_id, {}, now)
            return _existing_key(connection, key_id)

    def rotate_key(self, key_id: str, overlap: timedelta, now: datetime) -> tuple[str, ApiKey]:
        """Makes a key with the access and expiry of another, which ends after the overlap.

        Returns:
            As `create_key`.

        Raises:
            OperatorError: `KEY_UNKNOWN`, or `KEY_NOT_ACTIVE`.
        """
        with self._store.write() as connection:
            # Locks in the order of every change of access: the key's row, the scope's head, the operator log.
            old = _existing_key(connection, key_id)
            if old.status(now) != "active":
                raise OperatorError(
                    "KEY_NOT_ACTIVE",
                    f"The key {key_id} is {old.status(now)}. Create a new key instead of rotating it.",
                )
            expires_at = None if old.expires_at is None else datetime.fromisoformat(old.expires_at)
            made = _insert_key(connection, old.scope_id, old.access, expires_at, now)
            if overlap > timedelta():
                # UTC timestamps have one width, so they compare as text.
                ends = min(timestamp(now + overlap), old.expires_at or "9999")
                connection.execute(_update_key(key_id).values(expires_at=ends))
            else:
                connection.execute(_update_key(key_id).values(disabled_at=timestamp(now)))
            _change_access(connection, old.scope_id)
            record(connection, "key.rotated", key_id, {"new_key_id": made[1].key_id}, now)
            return made

    def authenticate(self, key: str, now: datetime) -> Authority:
        """Who a key belongs to, as the ledger has it now.

        Raises:
            AccessRefused: `SVC_API_UNAUTHORIZED`: the key is unknown.
            AccessForbidden: `SVC_API_UNAUTHORIZED`: the key is disabled or expired.
        """
        key_id, secret_hash = _split(key)
        row = self._look_up(key_id)
        # Compared even where no key was found, so that the time taken does not tell which ids exist.
        known = row.secret_hash if row is not None else "0" * 64
        if not hmac.compare_digest(known, secret_hash) or row is None:
            raise AccessRefused(
                "SVC_API_UNAUTHORIZED", "The key in x-api-key is unknown. Check it, or ask for another key."
            )
        return self._admit(row, now)

    def recognize(self, key: str, now: datetime) -> Authority:
        """Who a key belongs to, as this process remembers it or else as `authenticate` says.

        Every use of it must be confirmed, either by the append, which compares the access epoch, or by `confirm`.

        Raises:
            AccessRefused, AccessForbidden: As `authenticate`.
        """
        key_id, secret_hash = _split(key)
        with self._lock:
            remembered = self._remembered.get(key_id)
        if remembered is not None and now < remembered.until and hmac.compare_digest(remembered.hash, secret_hash):
            return remembered.authority
        return self.authenticate(key, now)

    def confirm(self, authority: Authority, now: datetime) -> Authority:
        """The authority of a key that was recognized, as the ledger has it now.

        Raises:
            AccessForbidden: `SVC_API_UNAUTHORIZED`: the key is disabled or expired by now.
        """
        row = self._look_up(authority.key_id)
        if row is None:
            raise AccessForbidden(
                "SVC_API_UNAUTHORIZED", (f"The key {authority.key_id} no longer exists. Use another key.")
            )
        return self._admit(row, now)

    def _look_up(self, key_id: str) -> Row[Any] | None:
        with self._store.read() as connection:
            return connection.execute(_KEY_AND_HEAD, {"scope": key_id[:_SCOPE_HEX], "key": key_id}).one_or_none()

    def _admit(self, row: Row[Any], now: datetime) -> Authority:
        found = _key(row)
        if (status := found.status(now)) != "active":
            raise AccessForbidden("SVC_API_UNAUTHORIZED", f"The key {found.key_id} is {status}. Use another key.")
        self._note_use(found, now)
        authority = Authority(found.scope_id, found.key_id, row.plan, row.monthly_cap, found.access, row.access_epoch)
        # Until its use has to be noted again, or until it expires.
        until = now + _LAST_USE
        if found.expires_at is not None:
            until = min(until, parse_timestamp(found.expires_at))
        with self._lock:
            self._remembered[found.key_id] = _Remembered(row.secret_hash, authority, until)
        return authority

    def _note_use(self, key: ApiKey, now: datetime) -> None:
        if key.last_used_at is not None and key.last_used_at > timestamp(now - _LAST_USE):
            return
        # The last use is advice to operators: no request waits for it, and reading goes on where none can write.
        with suppress(ServiceUnavailable), self._store.write(patience=0) as connection:
            connection.execute(_update_key(key.key_id).values(last_used_at=timestamp(now)))


_SCOPES: Final = select(scopes, chain_heads.c.chain_id, chain_heads.c.plan, chain_heads.c.monthly_cap).join(
    chain_heads, chain_heads.c.scope_id == scopes.c.scope_id
)
_KEY_AND_HEAD: Final = (
    select(api_keys, chain_heads.c.plan, chain_heads.c.monthly_cap, chain_heads.c.access_epoch)
    .join(chain_heads, chain_heads.c.scope_id == api_keys.c.scope_id)
    .where(api_keys.c.scope_id == bindparam("scope"), api_keys.c.key_id == bindparam("key"))
)


def _scope_named(connection: Connection, name: str) -> Scope | None:
    if unheard_of(name):
        return None
    row = connection.execute(_SCOPES.where(scopes.c.name == name)).one_or_none()
    return None if row is None else _scope(row)


def _scope(row: Row[Any]) -> Scope:
    return Scope(row.scope_id, row.name, row.plan, row.monthly_cap, row.chain_id, row.created_at)


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        scope_id=row.scope_id,
        access=frozenset(row.access.split(",")),
        created_at=row.created_at,
        expires_at=row.expires_at,
        disabled_at=row.disabled_at,
        last_used_at=row.last_used_at,
    )


def _insert_key(
    connection: Connection, scope_id: str, access: Collection[str], expires_at: datetime | None, now: datetime
) -> tuple[str, ApiKey]:
    key_id = f"{scope_id}{secrets.token_hex(4)}"
    key = f"{_KEY_PREFIX}_{key_id}_{secrets.token_urlsafe(32)}"
    made = ApiKey(
        key_id=key_id,
        scope_id=scope_id,
        access=frozenset(access),
        created_at=timestamp(now),
        expires_at=None if expires_at is None else timestamp(expires_at),
        disabled_at=None,
        last_used_at=None,
    )
    connection.execute(
        insert(api_keys).values(
            scope_id=scope_id,
            key_id=key_id,
            secret_hash=_hash(key),
            access=",".join(sorted(access)),
            created_at=made.created_at,
            expires_at=made.expires_at,
        )
    )
    return key, made


def _existing_key(connection: Connection, key_id: str, *, lock: bool = True) -> ApiKey:
    query = select(api_keys).where(api_keys.c.scope_id == key_id[:_SCOPE_HEX], api_keys.c.key_id == key_id)
    query = query.with_for_update() if lock else query
    row = None if unheard_of(key_id) else connection.execute(query).one_or_none()
    if row is None:
        raise OperatorError("KEY_UNKNOWN", f"There is no key {key_id!r}. `gate keys list` shows all keys.")
    return _key(row)


def _update_key(key_id: str) -> Update:
    return update(api_keys).where(api_keys.c.scope_id == key_id[:_SCOPE_HEX], api_keys.c.key_id == key_id)


def holder(key: str) -> tuple[str, str]:
    """The scope id and the key id of an API key that the ledger knows, whether it is active or not."""
    key_id, _ = _split(key)
    return key_id[:_SCOPE_HEX], key_id


def _split(key: str) -> tuple[str, str]:
    parts = key.split("_", 2)
    if len(key) > _MAX_KEY_LENGTH or len(parts) != 3 or parts[0] != _KEY_PREFIX or unheard_of(key):
        return "", _hash("")
    return parts[1], _hash(key)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _change_access(connection: Connection, scope_id: str, **changes: object) -> None:
    """Moves the scope's access epoch on, so that no append trusts what was looked up before."""
    connection.execute(
        update(chain_heads)
        .where(chain_heads.c.scope_id == scope_id)
        .values(access_epoch=chain_heads.c.access_epoch + 1, **changes)
    )


def _cap(plan: str, monthly_cap: int | None) -> int | None:
    if plan not in PLANS:
        raise OperatorError("PLAN_UNKNOWN", f"The plan {plan!r} is not one of {', '.join(PLANS)}.")
    if monthly_cap is None:
        return PLANS[plan].records_per_month
    if not 0 <= monthly_cap <= MAX_SAFE_INTEGER or PLANS[plan].records_per_month is None:
        raise OperatorError(
            "CAP_INVALID",
            f"The cap {monthly_cap} does not fit the plan {plan}. A monthly cap is 0 or more, and only plans "
            "with a cap have one.",
        )
    return monthly_cap
