"""Drafts of rulebooks, their revisions, and their cases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates what is new."""
    op.create_table(
        "drafts",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("draft_id", sa.String(64), primary_key=True),
        sa.Column("name", sa.LargeBinary, nullable=False),
        sa.Column("edition", _BIG, nullable=False),
        sa.Column("origin", sa.LargeBinary, nullable=False),
        sa.Column("created_by", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("closed_at", sa.String(24)),
    )
    op.create_table(
        "draft_revisions",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("draft_id", sa.String(64), primary_key=True),
        sa.Column("number", _BIG, primary_key=True, autoincrement=False),
        sa.Column("edition", _BIG, nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("saved_by", sa.LargeBinary, nullable=False),
        sa.Column("begun_at", sa.String(24), nullable=False),
        sa.Column("saved_at", sa.String(24), nullable=False),
    )
    op.create_table(
        "draft_cases",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("draft_id", sa.String(64), primary_key=True),
        sa.Column("number", _BIG, primary_key=True, autoincrement=False),
        sa.Column("name", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("saved_by", sa.LargeBinary, nullable=False),
        sa.Column("saved_at", sa.String(24), nullable=False),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
