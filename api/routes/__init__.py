"""One blueprint per noun. A route reads the request, calls the domain, and returns the answer. It has no domain rules.

    decisions, searches          POST /api/decide, a stored record, finding decisions
    batches                      POST /api/decide/batch: many decisions at once
    sandbox                      a trial decision without a key
    lifecycle                    execution receipts, outcomes, CRM syncs
    resolutions                  the owner's answer to a held decision
    replays                      replay, diff, counterfactuals
    verification, packets        verification of records, and all data of a decision in one document
    agents                       the gate over MCP
    reports                      reports on policies from their outcomes
    workflows, questions         policy questions of help desks, and of agents
    migrations                   the migrations and routes of a scope, read-only
    registries, policies, adapters, contract, chains    published data
    pilots                       requests for a pilot
    documents                    the service's description: /openapi.json, /docs.json, /docs
    service, operations          the service's configuration, and probes and metrics for operators

`api.http` has the parts that all requests share.
"""
