"""What is asked, recorded and exported: the documents of the protocol, built and hashed as docs/wire-format.md says.

    documents         the types of these documents
    request           a Decision Request read and checked, refusals in their fixed order
    batch             a batch of Decision Requests, read and bounded
    record            the Decision Record of an evaluation
    envelope          the material of a record's hashes, and all that a record derives from other members
    attestation       the rulebook attestation and the registration of a rulebook
    advisory          what an advisory record derives from an upstream's answer
    explanation       why a decision came out as it did, in words and as data
    views             minimal, standard and full projections
    reports           execution receipts, outcomes, CRM syncs and resolutions, with their hashes
    changes           the chain's entries about migrations and routes, with their hashes
    sandbox           what the sandbox answers: the members of a record, and no record
    packet            the Decision Packet
    webhooks          the events that webhooks tell, and the bodies that endpoints receive

Pure: ids, moments and signers are handed in. Checking a finished document is `verify`, storing one `ledger`.
"""
