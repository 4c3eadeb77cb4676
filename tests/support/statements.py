"""Compiled statements, shared by all databases of a kind that a process of tests opens.

Each engine of SQLAlchemy compiles its statements anew, which takes a test with a ledger of its own longer than to run
them. What is compiled depends on the dialect, and those of one kind do not differ here.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

_COMPILED: LRUCache[Any, Any] = LRUCache(2000)


def share_compiled() -> None:
    """Has all engines of this process look for compiled statements in one place, for good."""
    for kind in (SQLiteDialect_pysqlite, PGDialect_psycopg):
        # What is compiled is kept by its dialect, of which each engine has one of its own.
        kind.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
        kind.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
    make = Engine.__init__

    def made(self: Engine, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        self.update_execution_options(compiled_cache=_COMPILED)

    Engine.__init__ = made  # type: ignore[method-assign]
