"""Alembic's migrations of the ledger."""
