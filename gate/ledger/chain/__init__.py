"""Everything that appends to a chain, in the transaction that takes its position from the scope's locked head.

    entries         the door: append an entry, read one by decision or position
    group_commit    whichever request gets the lock commits everything queued
    writer          one group's transaction: finds used idempotency keys, caps, links, rows, latest outcomes
    reviews         the reviews of held decisions, begun, resolved and executed by that transaction
    outbox          the events that webhooks tell, written by that transaction
    outcomes        the latest outcome of each decision and their counts, kept by that transaction
    erasures        the one update of a record, with its entry
    changes         migrations and routes, with the documents that they cite
    reservations    idempotency keys in use at this moment

`gate.proof.chain` computes positions, links, and hashes. `decisions.claims` decides what a used key means.
"""
