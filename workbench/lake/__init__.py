"""The lake: a ledger's chains as Parquet files, exported exactly once, each file bound to the chain it came from.

    scope=<id>/manifest.json                    what the lake holds of a scope; the only truth about its files
    scope=<id>/month=2026-11/outcomes-...       one table's rows of a month, by the entry's own date

`export` brings the files up to the ledger, `compaction` merges them and resolves the latest outcome and receipt of each
decision, `reader` reads them, `verify` holds them against the chain. `columns` defines every table.
"""
