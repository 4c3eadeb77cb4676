"""The advisory modes: open questions, answered by an upstream that speaks OpenAI's chat completions.

    templates    what the upstream is asked with in each mode, and the shape of its answer
    masking      what never leaves the machine
    numbers      numbers of cards and bank accounts in a text
    questions    a Decision Request as a question: its options checked, its context masked
    answers      the upstream's answer, read strictly
    failures     the errors of an upstream that gives no answer
    upstream     the call: one request, one deadline, one size limit
    advisor      a request becomes an answer, a few at a time
    records      an answer becomes a record

An answer authorizes nothing. It selects no rulebook's verdict, and what it makes is a record that says so.
"""
