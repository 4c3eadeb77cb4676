"""The workbench's users, their roles in scopes, and the anomalies that they dismissed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates what is new; there are no users yet."""
    op.create_table(
        "users",
        sa.Column("user_id", sa.String(64), primary_key=True),
        sa.Column("name", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("password_hash", sa.String(128), nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("expires_at", sa.String(24)),
        sa.Column("disabled_at", sa.String(24)),
        sa.Column("last_sign_in_at", sa.String(24)),
        sa.Column("epoch", _BIG, nullable=False),
    )
    op.create_table(
        "user_scopes",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("user_id", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Index("user_scopes_by_user", "user_id", "scope_id"),
    )
    op.create_table(
        "anomaly_dismissals",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("anomaly_id", sa.String(64), primary_key=True),
        sa.Column("number", _BIG, primary_key=True, autoincrement=False),
        sa.Column("policy_id", sa.String(120), nullable=False),
        sa.Column("dismissed", sa.Boolean, nullable=False),
        sa.Column("note", sa.LargeBinary, nullable=False),
        sa.Column("severity", sa.String(10), nullable=False),
        sa.Column("score", sa.Float, nullable=False),
        sa.Column("acted_by", sa.LargeBinary, nullable=False),
        sa.Column("acted_at", sa.String(24), nullable=False),
    )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
