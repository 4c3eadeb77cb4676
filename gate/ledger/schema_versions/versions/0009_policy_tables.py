"""The policy tables that were active."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates what is new."""
    op.create_table(
        "policy_tables",
        sa.Column("service", sa.String(20), primary_key=True),
        sa.Column("number", _BIG, primary_key=True, autoincrement=False),
        sa.Column("table_hash", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("in_force_at", sa.String(24), nullable=False),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
