"""The protocol's official clients and its conformance tool, each in an environment of its own.

    clients        runs them from the tests
    client_1       a session of the first line of the official Python client; runs in build/mcp/1
    client_2       a session of the second line; runs in build/mcp/2
    validate       holds replies against the published types of each version; runs in build/mcp/2

`make mcp` installs the environments from client-1.lock, client-2.lock and conformance/package-lock.json, and again only
when one of these changes.
"""
