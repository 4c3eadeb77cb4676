"""Claims are stored under their digest behind the beginning of what they are about, not under the digest alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson
import sqlalchemy as sa
from alembic import op

from gate.errors import OperatorError
from gate.ledger.packing import unpack

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_DIGEST = 32
# As `gate.ledger.chain.writer` has it.
_BEGINNING = 40
# Records hold up to a few megabytes each; this many are in memory at a time.
_ROWS = 64

_claims = sa.table("claims", *map(sa.column, ("scope_id", "claim", "position")))
_entries = sa.table("entries", *map(sa.column, ("scope_id", "position", "entry_type", "decision_id", "body")))


def upgrade() -> None:
    """Puts the beginning in front of every digest.

    Raises:
        OperatorError: `LEDGER_DAMAGED`: the entry of a claim cannot be determined.
    """
    of_row = (_claims.c.scope_id == sa.bindparam("scope")) & (_claims.c.claim == sa.bindparam("digest"))
    move = sa.update(_claims).where(of_row).values(claim=sa.bindparam("key"))
    for page in _pages():
        rows = [{"scope": row.scope_id, "digest": row.claim, "key": _beginning(row) + bytes(row.claim)} for row in page]
        op.get_bind().execute(move, rows)


def _pages() -> Iterator[list[sa.Row[Any]]]:
    """The claims with their entries, in the order of their scopes and digests."""
    made = (_entries.c.scope_id == _claims.c.scope_id) & (_entries.c.position == _claims.c.position)
    after: tuple[str, bytes] = ("", b"")
    while True:
        page = list(
            op.get_bind().execute(
                sa.select(_claims, _entries.c.entry_type, _entries.c.decision_id, _entries.c.body)
                .outerjoin_from(_claims, _entries, made)
                .where(
                    sa.tuple_(_claims.c.scope_id, _claims.c.claim) > after,
                    # Those that were moved are longer, and may come again.
                    sa.func.length(_claims.c.claim) == _DIGEST,
                )
                .order_by(_claims.c.scope_id, _claims.c.claim)
                .limit(_ROWS)
            )
        )
        if not page:
            return
        yield page
        after = (page[-1].scope_id, page[-1].claim)


def _beginning(row: sa.Row[Any]) -> bytes:
    """The beginning of the decision that a claim is about, or where it is the claim of a decision, of its key."""
    try:
        about = row.decision_id if row.entry_type != "decision" else _key(row)
        beginning = bytes(about[:_BEGINNING].encode())
    except (KeyError, TypeError, ValueError):
        beginning = b""
    if not beginning:
        # Skipped, its key would be free for a second record.
        raise OperatorError(
            "LEDGER_DAMAGED",
            "The ledger cannot be upgraded, and was not changed. Its table claims maps an idempotency key to "
            f"the entry at position {row.position} of the scope {row.scope_id}, which is missing or was changed "
            "after it was made. Run `gate chain check` with the release that created the ledger, and restore a "
            "backup.",
        )
    return beginning


def _key(row: sa.Row[Any]) -> str:
    """The key of a decision; raises KeyError, TypeError or ValueError where its record does not have the key that was
    claimed.
    """
    key: str = orjson.loads(unpack(row.body))["idempotency_key"]
    if hashlib.sha256(orjson.dumps([row.scope_id, "decide", "", key])).digest() != bytes(row.claim):
        raise ValueError(key)
    return key


def downgrade() -> None:
    """Records are never deleted; going back is restoring a backup."""
    raise RuntimeError("The ledger is not downgraded; restore the backup made before the upgrade.")
