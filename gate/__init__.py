"""The domain of the decision gate: rulebooks, decisions, records, proofs and the ledger that keeps them.

The pure part takes values and returns values: no clock, no randomness, no files, no database, no environment.

    strict_json, canonical     JSON as the protocol reads and hashes it
    rulebook, evaluate         Rulebook v1: validation and compiled evaluation with its explanation
    request, record, views     a request read, a Decision Record made, its three projections
    envelope, attestation      what a record's hashes and attestations cover
    signing, chain, verify     signatures, chain links and checkpoints, offline verification

The edges are thin: `keys` (key files), `settings`, `ledger` (the database). `decide` composes both into the product's
one sentence. Nothing here knows Flask, Polars or Panel.
"""

__version__ = "0.1.0"
