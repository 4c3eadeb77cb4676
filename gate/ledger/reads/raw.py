"""Rows as an audit reads them: as they are stored, whatever else may have written them."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from sqlalchemy import BindParameter, Column, Select, Table, TypeCoerce, bindparam, select, type_coerce
from sqlalchemy.types import LargeBinary, NullType

from gate.ledger.tables import Utf8

EACH: Final[BindParameter[Any]] = bindparam("each", expanding=True)
"""The keys that a query asks for at once."""


def scoped(table: Table, *columns: Any) -> Select[Any]:
    """Columns of a scope's rows of a table; the scope is the parameter `scope`."""
    return select(*columns).where(table.c.scope_id == bindparam("scope"))


def every(table: Table) -> list[Any]:
    """All columns of a table, as they are stored."""
    return [raw(column).label(column.name) for column in table.c]


def raw(column: Column[Any]) -> Column[Any] | TypeCoerce[Any]:
    """A column as it is stored: bytes that should be text may be none any more."""
    return type_coerce(column, NullType()) if isinstance(column.type, Utf8 | LargeBinary) else column


def shown(value: object) -> str:
    """A stored value as a sentence names it: digests, and bytes that are no text, in hex."""
    if not isinstance(value, bytes | memoryview):
        return str(value)
    stored = bytes(value)
    try:
        return stored.hex() if len(stored) == hashlib.sha256().digest_size else stored.decode()
    except UnicodeDecodeError:
        return stored.hex()
