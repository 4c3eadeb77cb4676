"""The guard runs a body only once, after a verified yes for the action or its owner's verified grant.

    with client.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")) as permit:
        payments.refund("order-77")

The guard takes these steps, and stores each one before it begins the next:

    1  It stores the intent as held, with the request that it will send.
    2  The service decides. The record must verify with a pinned key and be about this request, action and target.
    3  It stores the record. After a yes, the intent is permitted. After a no or a review, it stays held, and the body
       does not run. After a review, a verified grant makes it permitted, and the same write stores the grant.
    4  The intent becomes started, with a conditional write that only one process wins.
    5  The body runs.
    6  It stores the end of the body together with the execution receipt, and delivers the receipt now or later.

A process may die between any two steps. Before step 4, a retry continues where the process died. After step 4, a retry
never runs the body by itself. It raises `AlreadyStarted`, and a person or a recovery hook reports how the action ended.

    blocks       `with client.guard(...)` and `@client.guarded(...)`, for threads and for asyncio
    proposal     the proposed action: its id, its request, and the checks of a record for it
    terms        the conditions for running a body: store, keys, time limits
    entering     steps 1 to 4, as a flow
    attempts     the attempts at the intent, each stored before it is sent
    checking     the checks of a record
    held         actions that are held for review: their owners' answers, and steps 3 and 4 for them
    refusals     the errors if a body must not run
    permit       the verified yes or grant, and the body's description of what it did
    saying       the checks of what a caller reports about a run and its outcome
    reporting    the reports of an action, as the store keeps them
    leaving      step 6, as a flow
    delivery     delivers reports, oldest first, now or later
    recovery     reports how an action ended if the guard does not know it

`client.store` keeps the guard's data, and `client.transport` sends its requests.
"""
