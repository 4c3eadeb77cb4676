"""Migrations of rulebooks, their documents, routes, and shadows, and sessions of the command line."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates what is new; no scope has a route yet."""
    op.add_column("chain_heads", sa.Column("route_epoch", _BIG, nullable=False, server_default=sa.text("0")))
    op.create_table(
        "changes",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("position", _BIG, primary_key=True, autoincrement=False),
        sa.Column("entry_type", sa.String(20), nullable=False),
        sa.Column("subject", sa.String(160), nullable=False),
        sa.Index("changes_by_subject", "scope_id", "entry_type", "subject", "position"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "migration_documents",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("stored_at", sa.String(24), nullable=False),
    )
    op.create_table(
        "shadows",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("migration_id", sa.String(160), primary_key=True),
        sa.Column("started_at", sa.String(24), nullable=False),
        sa.Column("started_by", sa.LargeBinary, nullable=False),
        sa.Column("from_position", _BIG, nullable=False),
        sa.Column("found", sa.LargeBinary),
        sa.Column("found_at", sa.String(24)),
        sa.Column("failure", sa.LargeBinary),
    )
    op.create_table(
        "user_sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("epoch", _BIG, nullable=False),
        sa.Column("expires_at", sa.String(24), nullable=False),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
