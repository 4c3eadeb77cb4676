"""The Model Context Protocol over HTTP: stateless, one JSON answer to each POST, nothing kept between two of them.

    versions       the protocol's versions, its error codes, and the status that carries each
    messages       a JSON value read as a request, a notification or a response
    servers        a server and its tools, as values
    schemas        the schemas of tools, made from those in `schemas/`
    headers        reads the request's headers: version, method, name, origin
    answers        dispatches and answers a message
    endpoint       the same over Flask
    agents         the gate as a server for agents, at /api/mcp
    policies       the policy services, at /refund/api/mcp and the like

Everything but `endpoint`, `agents` and `policies` is pure. Another server is a `Server` with its tools, and one route
that calls `endpoint.answer`.
"""
