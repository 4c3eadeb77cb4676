"""Bodies are compressed with a dictionary. No table changes, but releases before this one cannot read such bodies."""

from __future__ import annotations

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Does nothing: stored rows stay as they are, and stay readable."""
