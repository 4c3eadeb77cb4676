"""`gate demo`: an instance with a year of made-up decisions. The same seed gives the same year.

    command     the subcommand, and the demo key that `gate serve --demo` creates
    ledger      the new instance: keys, scopes, owners, and each scope's year, in several processes
    playing     replays a scope's events through the product's own code, with the clock at each event
    scenario    the events of that year: pure, from `data/demo/scenario.json` and a seed
    parameters  the form of scenario.json; drawing reads its words
    policies, days, requests, sources, owners, reports    the drawn values: versions and kinds, times, requests, input
                of adapters, answers of owners, reports

`docs/guides/make-a-demo.md` describes the planted incidents.
"""
