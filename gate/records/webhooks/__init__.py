"""The events that webhooks tell: their types, and the bodies that endpoints receive.

    types     every type of event with its bit, by which a scope's head knows the types that are subscribed to
    events    an event of each type, made of what it is about, and its body

A body has ids, hashes, verdicts and times only, so that an erasure needs no recall of what was sent.
"""
