"""Stored decisions, made again without any effect.

rehearsal          a stored decision made again beside the ledger: replay, diff, counterfactuals
replay             the parts of making it again, and where the result drifts
counterfactuals    scenarios over its context
"""
