"""The ledger's schema version, kept by Alembic."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import text

from gate.ledger.stores.store import Store

HEAD: Final = "0014"
"""The revision that this release reads and writes."""

OLDER: Final = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013")
"""Those that `upgrade` brings to `HEAD`."""


def revision(store: Store) -> str | None:
    """The revision that a database is at; None where it has no tables yet."""
    with store.read() as connection:
        # Alembic's own reader; not loaded here, which would add a fifth to a command's start.
        if not connection.dialect.has_table(connection, "alembic_version"):
            return None
        found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
        return found


def upgrade(store: Store) -> None:
    """Brings a database to `HEAD`, in one transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "schema_versions"))
    with store.write() as connection:
        if connection.dialect.name == "postgresql":
            # Rewriting the tables of a large ledger takes longer than a request may.
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD)
