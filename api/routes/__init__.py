"""A blueprint per noun: a request read, the domain asked, its answer projected. No rule of the domain stands here.

    decisions, searches          POST /api/decide, a stored record, finding decisions
    batches                      POST /api/decide/batch: many decisions at once
    sandbox                      the shape of a decision, without a key
    lifecycle                    execution receipts, outcomes, CRM syncs
    resolutions                  the owner's answer to a held decision
    replays                      replay, diff, counterfactuals
    verification, packets        proof for those who hold a record, and everything of a decision in one document
    agents                       the gate over MCP
    reports                      what outcomes say of policies
    workflows, questions         policy questions of help desks, and of agents
    migrations                   the migrations and routes of a scope, to read
    registries, policies, adapters, contract, chains    what is published
    pilots                       those who ask for a pilot
    documents                    the service's description: /openapi.json, /docs.json, /docs
    service, operations          what the service is set up to do, and probes and metrics for operators

What every request meets, whatever it asks for, is in `api.http`.
"""
