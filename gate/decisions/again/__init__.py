"""Stored decisions, made again without any effect.

- `rehearsal`: makes a stored decision again, without an effect on the ledger: replay, diff, counterfactuals
- `replay`: the parts of that, and where the result differs
- `counterfactuals`: scenarios over its context
"""
