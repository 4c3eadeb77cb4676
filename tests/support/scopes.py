"""Scopes whose names an earlier release allowed, and this one does not give any more."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime

from sqlalchemy import update

from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.ledger.tables import scopes


def scope_of_old(ledger: Ledger, name: str, plan: str, now: datetime, *, monthly_cap: int | None = None) -> Scope:
    """A scope of any name."""
    made = ledger.directory.create_scope(f"old-{secrets.token_hex(8)}", plan, now, monthly_cap=monthly_cap)
    with ledger.store.write() as connection:
        connection.execute(update(scopes).where(scopes.c.scope_id == made.scope_id).values(name=name))
    return replace(made, name=name)
