"""Webhooks: endpoints, the outbox of events, and deliveries that failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates what is new; no scope has an endpoint yet."""
    op.add_column("chain_heads", sa.Column("webhook_events", _BIG, nullable=False, server_default=sa.text("0")))
    op.add_column("chain_heads", sa.Column("event_seq", _BIG, nullable=False, server_default=sa.text("0")))
    op.create_table(
        "webhook_endpoints",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("endpoint_id", sa.String(64), primary_key=True),
        sa.Column("url", sa.LargeBinary, nullable=False),
        sa.Column("events", _BIG, nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("disabled_at", sa.String(24)),
        sa.Column("disabled_by", sa.String(10)),
        sa.Column("cursor", _BIG, nullable=False),
        sa.Column("generation", _BIG, nullable=False),
        sa.Column("rotated_until", sa.String(24)),
        sa.Column("delivered_at", sa.String(24)),
    )
    op.create_table(
        "webhook_events",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("seq", _BIG, primary_key=True, autoincrement=False),
        sa.Column("event_id", sa.String(64), nullable=False),
        sa.Column("type", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(180), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("endpoint_id", sa.String(64), primary_key=True),
        sa.Column("seq", _BIG, primary_key=True, autoincrement=False),
        sa.Column("subject", sa.String(180), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("attempts", _BIG, nullable=False),
        sa.Column("next_at", sa.String(24)),
        sa.Column("last_at", sa.String(24)),
        sa.Column("last_status", _BIG),
        sa.Column("last_error", sa.LargeBinary),
        sa.Index("webhook_deliveries_due", "scope_id", "endpoint_id", "state", "next_at"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "webhook_told",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("type", sa.String(40), primary_key=True),
        sa.Column("key", sa.String(180), primary_key=True),
        sa.Column("size", _BIG, nullable=False),
        sa.Column("told_at", sa.String(24), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
