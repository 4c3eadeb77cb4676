"""The domain of the decision gate: rulebooks, decisions, records, proofs, and the ledger that stores them.

Each package may import only from the packages below it, not from those on its own level. `tests/test_layers.py` checks
this.

    instance                        settings, key files, composition, audit, backup
    decisions  contract  client     deciding and everything after it; the published contract; the client for callers
    services                        answers to questions that bind nobody
    verify  ledger                  offline verification; the database
    records  adapters               the protocol's documents; sandboxed workers that compute facts
    proof  rulebooks  policy        signatures and links; validation and evaluation; the formulas of reports
    encoding  clock                 JSON; the current time and new ids
    errors  labels  ids  origins    the modules that every package shares

All packages are pure except `instance`, `decisions`, `client`, `services`, `ledger`, `adapters` and `clock`. Pure code
uses no clock, files, database, or environment. No package depends on Flask, Polars or Panel.
"""

__version__ = "1.0.0"
