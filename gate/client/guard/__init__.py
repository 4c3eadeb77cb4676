"""The guard: a body runs only on a verified yes about this very action, or its owner's grant, and once.

    with client.guard("refund_policy@2026-09-01", facts, action="issue_refund", target=("shop", "order-77")) as permit:
        payments.refund("order-77")

What happens, in this order; each step is kept before the next one begins:

    1  the intent is kept as held, with the request that will be sent
    2  the service decides; its record must verify against a pinned key and be about this request, action and target
    3  the record is kept: permitted for yes; for no and review the intent stays held and the body does not run. A
       review becomes permitted once its owner's grant verifies, which is kept with the same write
    4  permitted becomes started, by one conditional write that one process alone wins
    5  the body runs
    6  its end is kept together with the execution receipt; from there the receipt is delivered, now or later

A process may die between any two of them. Before 4 a retry goes on where it was. After it a retry never runs the body
by itself: it raises AlreadyStarted, and a person or a recovery hook says what became of it.

    blocks       `with client.guard(...)` and `@client.guarded(...)`, for threads and for asyncio
    proposal     the action that is proposed: its name, the request that asks for it, what a permission must look like
    terms        under what terms a body may run: store, keys, time
    entering     steps 1 to 4, as a flow
    attempts     the attempts at the intent: each is kept before it is asked
    checking     whether a record is what it must be
    held         actions that are held for review: what their owners answered, and steps 3 and 4 for them
    refusals     why a body must not run
    permit       the verified yes or grant, and where the body says what it did
    saying       what may be said of a run and of its outcome
    reporting    the reports of an action, as they are kept
    leaving      step 6, as a flow
    delivery     reports delivered, oldest first, now or later
    recovery     what somebody found out about an action whose end the guard does not know

What a guard remembers lies in `client.store`; how it reaches the service, in `client.transport`.
"""
