"""The parts of HTTP that all requests share.

    application    Flask, without the parts that this service does not need
    requests       ids, bodies, views and query parameters
    responses      JSON answers, and their common headers
    auth           the caller, from the header x-api-key
    limits         the rate limit of keys, and the headers about it and about the monthly cap
    clients        the rate limit of clients without a key, by their address
    turns          protection from slow senders
    state          the objects that a request works with
    observation    counts and logs each request; `logs` and `metrics` store the results
    figures        the metrics, and merging those of several processes into one text
    readiness      whether the service can decide now

`api.errors` has the status of each error, and `api.routes` has the endpoints.
"""
