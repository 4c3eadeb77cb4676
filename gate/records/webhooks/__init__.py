"""The events of webhooks: their types, and the bodies that endpoints receive.

    types     every type of event with its bit, so that a scope's head can store the subscribed types
    events    an event of each type with its body

A body contains only ids, hashes, verdicts, and times. After an erasure, nothing that was sent must be recalled.
"""
