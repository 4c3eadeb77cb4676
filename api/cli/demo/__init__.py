"""`gate demo`: an instance with a year of made-up decisions, the same for the same seed.

    command     the subcommand, and the demo's key that `gate serve --demo` keeps
    ledger      the decisions made by a real gate at the moments of the scenario, in several processes
    scenario    what happens in that year: pure, from data/demo/scenario.json and a seed
    parameters  the form of scenario.json; drawing reads its words
    policies, requests, sources, reports    what is drawn: versions and kinds, requests, adapters' input, reports

docs/demo.md says what is planted in it.
"""
