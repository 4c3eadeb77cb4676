"""The gate as a server for agents, with the operations of the HTTP API as tools.

    server         the server, its tools, and their schemas
    tools          the calls of the tools, each with the function of its HTTP route
    arguments      reads the arguments of a call
    texts          the descriptions of the server and of each tool, for models

This package has no domain rules, and none of the HTTP routes: a tool decides, reports, and verifies with the functions
of `api.routes`.
"""
