"""Migrations: their list with the history of routes, one of them, and a draft that is to become one.

listing     the migrations of a scope, and where its rulebook ids lead
one         one migration: its evidence, and what may be done with it
results     a policy's success week by week, and its routes over it
proving     a draft's dry run
"""
