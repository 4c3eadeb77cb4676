"""Reads beside the chain: search, following a chain, and holding derived rows against the entries they follow from.

    decisions    a scope's decisions by verdict, policy, object or date
    tail         chains read from a position on, for the lake
    derived      search rows, latest outcomes and counts, checked against the entries

What appends is in `gate.ledger.chain`.
"""
