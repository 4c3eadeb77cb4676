"""Plans and caps in the scope's head, usage by month, the operator log, rate windows; positions beyond 2^31."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# The caps that the plans had when this revision was made.
_CAPS = {"starter": 10_000, "team": 1_000_000}


def upgrade() -> None:
    """Moves plans into the heads, and creates what is new."""
    postgres = op.get_bind().dialect.name == "postgresql"
    op.add_column("chain_heads", sa.Column("plan", sa.String(20), nullable=False, server_default="starter"))
    op.add_column("chain_heads", sa.Column("monthly_cap", _BIG))
    op.add_column("chain_heads", sa.Column("access_epoch", _BIG, nullable=False, server_default="0"))
    op.execute(
        "UPDATE chain_heads SET plan = (SELECT plan FROM scopes WHERE scopes.scope_id = chain_heads.scope_id)"
        " WHERE scope_id IN (SELECT scope_id FROM scopes)"
    )
    heads = sa.table("chain_heads", sa.column("plan"), sa.column("monthly_cap"))
    for plan, cap in _CAPS.items():
        op.execute(sa.update(heads).where(heads.c.plan == plan).values(monthly_cap=cap))
    op.drop_column("scopes", "plan")
    op.create_table(
        "usage",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("records", _BIG, nullable=False),
    )
    op.create_table(
        "operator_log",
        sa.Column("position", _BIG, primary_key=True, autoincrement=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("operator", sa.LargeBinary, nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("subject", sa.LargeBinary, nullable=False),
        sa.Column("details", sa.LargeBinary, nullable=False),
        sa.Column("entry_hash", sa.String(64), nullable=False),
    )
    # What this month's records of capped scopes were, counted once; later ones are counted as they are made.
    op.execute(
        "INSERT INTO usage (scope_id, month, records)"
        " SELECT e.scope_id, substr(e.created_at, 1, 7), count(*) FROM entries e"
        " JOIN chain_heads h ON h.scope_id = e.scope_id"
        " WHERE h.monthly_cap IS NOT NULL AND e.entry_type = 'decision'"
        " GROUP BY e.scope_id, substr(e.created_at, 1, 7)"
    )
    if postgres:
        for table, column in (("chain_heads", "chain_size"), ("entries", "position"), ("claims", "position")):
            op.alter_column(table, column, type_=_BIG)
        op.create_table(
            "rate_windows",
            sa.Column("scope_id", sa.String(64), primary_key=True),
            sa.Column("key_id", sa.String(64), primary_key=True),
            sa.Column("admitted", sa.LargeBinary, nullable=False),
            prefixes=["UNLOGGED"],
        )


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
