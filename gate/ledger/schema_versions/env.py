"""Runs schema versions on the connection that `gate.ledger.schema.upgrade` hands over."""

from __future__ import annotations

from alembic import context

from gate.ledger.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
