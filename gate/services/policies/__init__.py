"""Policy questions of help desks and agents: may this be refunded, what does canceling cost, may it be returned, is
there a trial?

    questions    the four questions: their arguments and verdicts
    table        a policy table, read and checked; the entry for a vendor, a region and a plan
    regions      countries and their subdivisions
    facts        the facts that a rulebook decides over, from the entry and the arguments
    answers      the answer: verdict, code, message, source, and an unsigned attestation
    messages     what each code says to a reader
    in_force     the active tables: the operator's where there are any, reloaded when their files change
    changes      what changed from one table to the next

A verdict comes from a Rulebook v1 of this release; a table holds no verdicts. The facts never carry a verdict that the
table's entry does not support: then the answer is UNKNOWN.
"""
