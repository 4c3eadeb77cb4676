"""The lake: a ledger's chains as Parquet files, exported exactly once, each file bound to the chain it came from.

    scope=<id>/manifest.json                    what the lake holds of a scope; the only truth about its files
    scope=<id>/month=2026-11/outcomes-...       one table's rows of a month, by the entry's own date


    export        brings the files up to the ledger
    entries       the ledger's entries as rows, for the export and for a report's fresh tail
    files         Parquet files written whole, and synced before a manifest names them
    manifest      which files there are, and which stretch of the chain each holds
    lease         one process at a time writes
    compaction    merges small files, and resolves the latest outcome and receipt of each decision
    cases         the tables that compaction makes: a row for each decision, and its metrics
    upkeep        export and compaction in turns, and their pace next to a service
    cohorts       frozen figures of the scopes that take part in benchmarks, a file a month
    names         the names that there are, for messages about one that there is not
    reader        opens a lake, or one scope of it
    fresh         a scope as it is now: the lake, and the ledger's entries after it
    verify        the files held against manifest, chain and ledger

`workbench.columns` defines every table.
"""
