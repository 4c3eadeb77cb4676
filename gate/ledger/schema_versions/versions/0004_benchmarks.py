"""Whether scopes take part in benchmarks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates what is new; nobody takes part yet."""
    op.create_table(
        "benchmark_choices",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False
        ),
        sa.Column("opted_in", sa.Boolean, nullable=False),
        sa.Column("chosen_at", sa.String(24), nullable=False),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
