"""Permissions, and the log of the operators' acts.

    authority            plans, scopes, keys, and the authority that a request acts with
    caller               a caller for the length of a request: remembered, then confirmed before an answer
    scopes               the directory: scopes and keys created, recognized, confirmed, disabled
    limits               requests a minute, counted over all processes
    benchmark_choices    which scopes take part in benchmarks
    users                the people who sign in to the workbench, their roles in scopes, and whether a session goes on
    passwords            what makes a password acceptable, and its argon2id hash
    dismissals           anomalies that users dismissed or reopened
    pilots               those who ask for a pilot, until they are erased
    names                the rule for new names, of scopes and of users
    operator_log         what operators did, append-only

Keys and passwords are stored as hashes, and compared in constant time.
"""
