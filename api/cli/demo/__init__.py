"""`gate demo`: an instance with a year of made-up decisions, the same for the same seed.

    command     the subcommand, and the demo's key that `gate serve --demo` keeps
    ledger      the new instance: keys, scopes, owners, and each scope's year, in several processes
    playing     a scope's events, made by the product's own code at their moments
    scenario    what happens in that year: pure, from data/demo/scenario.json and a seed
    parameters  the form of scenario.json; drawing reads its words
    policies, days, requests, sources, owners, reports    what is drawn: versions and kinds, times, requests, adapters'
                input, the answers of owners, reports

docs/demo.md says what is planted in it.
"""
