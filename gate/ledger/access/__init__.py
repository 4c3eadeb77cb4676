"""Who may do what, and what operators did.

    authority            plans, scopes, keys, and the authority that a request acts with
    caller               a caller for the length of a request: remembered, then confirmed before an answer
    scopes               the directory: scopes and keys created, recognized, confirmed, disabled
    limits               requests a minute, counted over all processes
    benchmark_choices    which scopes take part in benchmarks
    operator_log         what operators did, append-only

Keys are stored as hashes, and compared in constant time.
"""
