"""What a caller can ask of the gate, each composed from documents, proof and the ledger.

    decide             a request becomes a signed record that is in the ledger before anyone hears of it
    claims             idempotency keys: what a used key stands for, or a conflict
    batches            many requests at once, in one commit
    sources            where a decision's rulebook and facts come from
    signing            the moment, and the keys that sign at it
    stored             the record and the request of a stored decision
    cited              the decisions that reports and resolutions are about, as far as these cite them
    lifecycle          reports about a decision: execution receipts, outcomes, CRM syncs
    reviews            held decisions granted or refused by their owners, or expired
    verification       whether a stored decision is as it was made
    again              stored decisions made again: replay, diff, counterfactuals
    workflows          refund questions of help desks, as a decision where a key is sent
    export             the packet of a decision
    drafts             what people do with drafts of rulebooks
    migrations         what people do with migrations: propose, approve, reject, apply, roll back
    erasure            what is personal leaves a decision

The clock and the signers are handed in; fresh ids come from `gate.clock`, storage is `ledger`. Nothing here knows HTTP.
"""
