"""Migrations: their list with the history of routes, one of them, and a draft that is to become one.

- `listing`: the migrations of a scope, and the routes of its rulebook ids
- `one`: one migration: its evidence, and the possible acts
- `results`: a policy's success week by week, with its routes
- `proving`: a draft's dry run
"""
