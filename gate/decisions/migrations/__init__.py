"""Migrations in a ledger: the acts on them, and their order.

- `reading`: the state of each, the versions that it cites, and the active versions
- `acts`: propose, approve, reject, apply, roll back, and shadow
- `rules`: the requirements for users, and for the migrations that they act on
- `documents`: the stored documents, and their form in lists and answers
"""
