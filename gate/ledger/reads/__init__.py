"""Reads outside of the chain's appends: search, following a chain, and the audit of a chain.

    decisions    a scope's decisions by verdict, policy, object or date
    tail         chains read from a position on, for the lake
    audited      entries, and the rows that follow from them, for the audit of a chain
    audited_reviews    the rows of reviews, and what gives them their state, for the same audit
    raw          rows as they are stored, for both

Appends are in `gate.ledger.chain`.
"""
