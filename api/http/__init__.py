"""What every request meets, whatever it asks for.

    application    Flask, without the parts that this service has no use for
    requests       ids, bodies, views and query parameters
    responses      JSON answers, and the headers that all of them carry
    auth           the caller, by the header x-api-key
    limits         the rate limit of keys, and the headers that tell of it and of the cap
    clients        the rate limit of clients without a key, by their address
    turns          slow senders hold up nobody
    state          what a request works with
    observation    what is counted and logged of each request; logs and metrics, where it goes
    figures        which metrics there are, and how the figures of several processes become one text
    readiness      whether a decision could be made now

What an error's status is stands in `api.errors`; what is asked for, in `api.routes`.
"""
