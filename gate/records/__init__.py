"""The documents of the protocol: requests, records, reports, and packets, with their hashes.

The pages in `docs/reference/wire-format/` define them.

    documents         the types of these documents
    request           reads and checks a Decision Request, with refusals in a fixed order
    batch             reads a batch of Decision Requests, and checks its size
    record            the Decision Record of an evaluation
    envelope          the material of a record's hashes, and the fields of a record that follow from others
    attestation       the rulebook attestation and the registration of a rulebook
    advisory          the fields of an advisory record that follow from an upstream's answer
    explanation       why a decision has its result, in sentences and as data
    views             the views minimal, standard and full
    reports           execution receipts, outcomes, CRM syncs and resolutions, with their hashes
    changes           the chain's entries about migrations and routes, with their hashes
    sandbox           the responses of the sandbox, which are not records
    packet            the Decision Packet
    webhooks          the events of webhooks, and the bodies that endpoints receive

Pure: callers pass ids, times, and signers. `verify` checks finished documents, and `ledger` stores them.
"""
