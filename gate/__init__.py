"""The domain of the decision gate: rulebooks, decisions, records, proofs and the ledger that keeps them.

Each room knows those below it and none beside it; tests/test_layers.py holds them to that.

    instance                        settings, key files, composition, audit, backup
    decisions  contract  client     deciding and all that follows; the published promises; what callers use
    services                        questions that are answered without binding anybody
    verify  ledger                  offline verification; the database
    records  adapters               the protocol's documents; contained workers that make facts
    proof  rulebooks  policy        signatures and links; validation and evaluation; the formulas of reports
    encoding  clock                 JSON; the moment and fresh ids
    errors  labels  ids  origins    what every room shares

Pure, but for `instance`, `decisions`, `client`, `services`, `ledger`, `adapters` and `clock`: values in, values out, no
clock, no files, database or environment. Nothing here knows Flask, Polars or Panel.
"""

__version__ = "1.0.0"
