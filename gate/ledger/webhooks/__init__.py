"""Webhooks in the ledger: where events are sent, and what was not delivered.

    endpoints     the endpoints of a scope: added, disabled, enabled, removed, their secrets rotated
    deliveries    the outbox as an endpoint has to be sent it, and what came of each try
    dead          the deliveries that failed: listed, replayed, counted, and removed in time
    tidings       one-time events: checkpoints, broken chains, anomalies

Events come into the outbox in the transaction of what they tell: `gate.ledger.chain.outbox`.
"""
