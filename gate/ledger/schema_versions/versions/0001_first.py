"""The first schema: scopes, keys, rulebooks, chains, and idempotency claims."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates every table."""
    op.create_table(
        "scopes",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("name", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("plan", sa.String(20), nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("key_id", sa.String(64), primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("access", sa.String(80), nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("expires_at", sa.String(24)),
        sa.Column("disabled_at", sa.String(24)),
        sa.Column("last_used_at", sa.String(24)),
    )
    op.create_table(
        "rulebooks",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("rulebook_id", sa.String(120), primary_key=True),
        sa.Column("version", sa.LargeBinary, primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("registration", sa.LargeBinary, nullable=False),
        sa.Index("rulebooks_by_hash", "scope_id", "hash", unique=True),
    )
    op.create_table(
        "chain_heads",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("chain_id", sa.String(180), nullable=False),
        sa.Column("chain_size", sa.Integer, nullable=False),
        sa.Column("merkle_root", sa.String(64)),
        sa.Column("link_hash", sa.String(64)),
    )
    op.create_table(
        "entries",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("entry_type", sa.String(20), nullable=False),
        sa.Column("entry_id", sa.String(64), nullable=False),
        sa.Column("decision_id", sa.String(64), nullable=False),
        sa.Column("record_hash", sa.String(64), nullable=False),
        sa.Column("receipt_hash", sa.String(64)),
        sa.Column("policy_id", sa.String(120)),
        sa.Column("policy_version", sa.LargeBinary),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("leaf_hash", sa.String(64), nullable=False),
        sa.Column("merkle_root", sa.String(64), nullable=False),
        sa.Column("link_hash", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("request", sa.LargeBinary),
        sa.Index("entries_by_decision", "scope_id", "decision_id", "entry_id", unique=True),
    )
    op.create_table(
        "claims",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("claim", sa.LargeBinary(32), primary_key=True),
        sa.Column("input_hash", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
