"""`gate demo`: an instance with a year of made-up decisions, the same for the same seed.

- `command`: the subcommand, and the demo's key that `gate serve --demo` keeps
- `ledger`: the new instance: keys, scopes, owners, and each scope's year, in several processes
- `playing`: the events of a scope, made by the product's own code at their moments
- `scenario`: the events of that year: pure, from `data/demo/scenario.json` and a seed
- `parameters`: the form of `scenario.json`; `drawing` reads its words
- `policies`, `days`, `requests`, `sources`, `owners`, `reports`: the drawn data, such as versions and kinds,
  times, requests, the input of adapters, answers, and reports

`docs/guides/make-a-demo.md` and `data/demo/README.md` describe the planted incidents.
"""
