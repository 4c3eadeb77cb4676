"""The comments of rulebooks' authors, stored with the registrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates what is new; no rulebook has comments yet."""
    op.create_table(
        "rulebook_annotations",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("annotations", sa.LargeBinary, nullable=False),
        sa.Column("annotated_at", sa.String(24), nullable=False),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
