"""Reviews, with a row for each held decision that is there, and who owns them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_DUE = sa.text("state = 'held' AND due_at IS NOT NULL")
# Records hold up to a few megabytes each; this many are in memory at a time.
_ROWS = 64
# How long a grant opens an action where nothing was set, as in `gate.ledger.reviews`.
_GRANT_SECONDS = 86_400
_ADVISORY = "svc_advisory_v1"


def upgrade() -> None:
    """Creates what is new, and a row for each review that is there: held, without an owner and a time limit."""
    reviews = op.create_table(
        "reviews",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("decision_id", sa.String(64), primary_key=True),
        sa.Column("position", _BIG, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("owner", sa.LargeBinary, nullable=False),
        sa.Column("policy_id", sa.String(120), nullable=False),
        sa.Column("action", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.Column("due_at", sa.String(24)),
        sa.Column("grant_seconds", _BIG, nullable=False),
        sa.Column("resolved_position", _BIG),
        sa.Column("resolved_at", sa.String(24)),
        sa.Index("reviews_by_state", "scope_id", "state", "position"),
        sa.Index("reviews_by_owner", "scope_id", "owner", "state", "position"),
        sa.Index("reviews_due", "due_at", "scope_id", sqlite_where=_DUE, postgresql_where=_DUE),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "review_owners",
        sa.Column("scope_id", sa.String(64), primary_key=True),
        sa.Column("rulebook_id", sa.String(120), primary_key=True),
        sa.Column("action", sa.LargeBinary, primary_key=True),
        sa.Column("owner", sa.LargeBinary, nullable=False),
        sa.Column("within_seconds", _BIG),
        sa.Column("grant_seconds", _BIG, nullable=False),
        sa.Column("set_at", sa.String(24), nullable=False),
    )
    for page in _pages():
        op.bulk_insert(reviews, [row for entry in page if (row := _review(entry)) is not None])


def _pages() -> Iterator[list[sa.Row[Any]]]:
    """The decisions that are held, in the order of their scopes and positions."""
    entries = sa.table("entries", *map(sa.column, ("scope_id", "position", "decision_id", "created_at", "body")))
    decisions = sa.table("decisions", *map(sa.column, ("scope_id", "position", "verdict")))
    held = (decisions.c.scope_id == entries.c.scope_id) & (decisions.c.position == entries.c.position)
    after: tuple[str, int] = ("", 0)
    while True:
        page = list(
            op.get_bind().execute(
                sa.select(entries)
                .join(decisions, held)
                .where(sa.tuple_(decisions.c.scope_id, decisions.c.position) > after, decisions.c.verdict == "review")
                .order_by(decisions.c.scope_id, decisions.c.position)
                .limit(_ROWS)
            )
        )
        if not page:
            return
        yield page
        after = (page[-1].scope_id, page[-1].position)


def _review(row: sa.Row[Any]) -> dict[str, object] | None:
    """The row of a decision; None where it is advisory, so that nobody can resolve it."""
    body = bytes(row.body)
    record = json.loads(body if body[:1] == b"{" else zlib.decompress(body))
    if record["evaluator_version"] == _ADVISORY:
        return None
    return {
        "scope_id": row.scope_id,
        "decision_id": row.decision_id,
        "position": row.position,
        "state": "held",
        "owner": b"",
        "policy_id": record["policy_id"],
        "action": record["action"].encode(),
        "created_at": row.created_at,
        "due_at": None,
        "grant_seconds": _GRANT_SECONDS,
        "resolved_position": None,
        "resolved_at": None,
    }


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
