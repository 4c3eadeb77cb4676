"""The versions of the ledger's tables, each with its way up from the one before; Alembic runs them."""
