"""Those who ask for a pilot."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates what is new; nobody has asked yet."""
    op.create_table(
        "pilots",
        sa.Column("pilot_id", sa.String(64), primary_key=True),
        sa.Column("name", sa.LargeBinary, nullable=False),
        sa.Column("email", sa.LargeBinary, nullable=False),
        sa.Column("company", sa.LargeBinary, nullable=False),
        sa.Column("use", sa.LargeBinary, nullable=False),
        sa.Column("submitted_at", sa.String(24), nullable=False),
        sa.Column("confirmed_at", sa.String(24)),
        sa.Index("pilots_by_state", "confirmed_at", "submitted_at"),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
