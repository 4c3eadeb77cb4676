"""Rows for searches of decisions, their latest outcomes and counts, confidence, and dates of rulebooks."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Records hold up to a few megabytes each; this many are in memory at a time.
_ROWS = 64


def upgrade() -> None:
    """Creates what is new, and fills it from the records and registrations that are there."""
    op.add_column("entries", sa.Column("confidence", sa.LargeBinary))
    op.add_column("rulebooks", sa.Column("registered_at", sa.String(24), nullable=False, server_default=""))
    _date_rulebooks()
    decisions = op.create_table(
        "decisions",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("position", _BIG, primary_key=True, autoincrement=False),
        sa.Column("verdict", sa.String(10), nullable=False),
        sa.Column("policy_id", sa.String(120), nullable=False),
        sa.Column("policy_version", sa.LargeBinary, nullable=False),
        sa.Column("reason_code", sa.String(80), nullable=False),
        sa.Column("target_object_id", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Index("decisions_by_verdict", "scope_id", "verdict", "position"),
        sqlite_with_rowid=False,
    )
    for page in _pages():
        op.bulk_insert(decisions, [_decision(row) for row in page])
    op.create_table(
        "latest_outcomes",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("decision_id", sa.String(64), primary_key=True),
        sa.Column("position", _BIG, nullable=False),
        sa.Column("outcome_status", sa.String(10), nullable=False),
        sa.Column("policy_id", sa.String(120), nullable=False),
        sa.Column("policy_version", sa.LargeBinary, nullable=False),
        sa.Column("verdict", sa.String(10), nullable=False),
        sa.Column("action", sa.LargeBinary, nullable=False),
        sa.Column("first_reported_at", sa.String(24), nullable=False),
        sa.Column("last_reported_at", sa.String(24), nullable=False),
        sa.Index("latest_outcomes_by_policy", "scope_id", "policy_id", "position"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "outcome_counts",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("policy_id", sa.String(120), primary_key=True),
        sa.Column("policy_version", sa.LargeBinary, primary_key=True),
        sa.Column("verdict", sa.String(10), primary_key=True),
        sa.Column("action", sa.LargeBinary, primary_key=True),
        *(
            sa.Column(status, _BIG, nullable=False)
            for status in ("succeeded", "partial", "failed", "reverted", "pending", "review")
        ),
        sa.Column("first_reported_at", sa.String(24), nullable=False),
        sa.Column("last_reported_at", sa.String(24), nullable=False),
        sqlite_with_rowid=False,
    )


def _date_rulebooks() -> None:
    rulebooks = sa.table(
        "rulebooks", *map(sa.column, ("scope_id", "rulebook_id", "version", "registration", "registered_at"))
    )
    connection = op.get_bind()
    for row in connection.execute(sa.select(rulebooks)).all():
        connection.execute(
            sa.update(rulebooks)
            .where(
                rulebooks.c.scope_id == row.scope_id,
                rulebooks.c.rulebook_id == row.rulebook_id,
                rulebooks.c.version == row.version,
            )
            .values(registered_at=json.loads(bytes(row.registration))["registered_at"])
        )


def _pages() -> Iterator[list[sa.Row[Any]]]:
    """The decisions, in the order of their scopes and positions."""
    entries = sa.table("entries", *map(sa.column, ("scope_id", "position", "entry_type", "created_at", "body")))
    after: tuple[str, int] = ("", 0)
    while True:
        page = list(
            op.get_bind().execute(
                sa.select(entries)
                .where(
                    sa.tuple_(entries.c.scope_id, entries.c.position) > after,
                    entries.c.entry_type == "decision",
                )
                .order_by(entries.c.scope_id, entries.c.position)
                .limit(_ROWS)
            )
        )
        if not page:
            return
        yield page
        after = (page[-1].scope_id, page[-1].position)


def _decision(row: sa.Row[Any]) -> dict[str, object]:
    body = bytes(row.body)
    record = json.loads(body if body[:1] == b"{" else zlib.decompress(body))
    return {
        "scope_id": row.scope_id,
        "position": row.position,
        "verdict": record["verdict"],
        "policy_id": record["policy_id"],
        "policy_version": record["policy_version"].encode(),
        "reason_code": record["reason_code"],
        "target_object_id": record["action_binding"]["resource"][:200].encode(),
        "created_at": row.created_at,
    }


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
