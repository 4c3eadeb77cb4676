"""The gate as a server for agents: what the HTTP API does, as tools.

    server         the server, its tools and what they say of themselves
    tools          the calls of the tools, each by the function that its HTTP route calls
    arguments      the arguments of a call, read
    texts          the descriptions of the server and of each tool, for models

No rule of the domain stands here, and none of the HTTP routes either: a tool decides, reports and verifies by the
functions of `api.routes`.
"""
