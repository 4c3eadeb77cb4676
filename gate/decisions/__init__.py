"""The operations of the gate. Each is composed of documents, proof, and the ledger.

    decide             a request becomes a signed record that is in the ledger before it is answered
    claims             idempotency keys: the entry of a used key, or a conflict
    batches            many requests at once, in one commit
    sources            where a decision's rulebook and facts come from
    signing            the moment, and the keys that sign at it
    stored             the record and the request of a stored decision
    cited              the parts of decisions that reports and resolutions cite
    lifecycle          reports about a decision: execution receipts, outcomes, CRM syncs
    reviews            held decisions granted or refused by their owners, or expired
    verification       whether a stored decision is unchanged
    again              stored decisions made again: replay, diff, counterfactuals
    workflows          refund questions of help desks, as a decision if a key is sent
    export             the packet of a decision
    drafts             the work on drafts of rulebooks
    migrations         the acts on migrations: propose, approve, reject, apply, roll back
    erasure            removes personal data from a decision

Callers pass the clock and the signers. New ids come from `gate.clock`, and storage is `ledger`. This package does not
know HTTP.
"""
