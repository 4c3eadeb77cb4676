"""The reference pages that come from their sources, each made by the module of its name.

    http       the HTTP API: endpoints, error codes, JSON formats, tools for agents
    client     the Python client and its guard
    command    the `gate` command and its error codes
    service    what operators read: settings, metrics, alerts, performance
    proof      the checks of a verification, and attacks on packets
    workbench  the lake, and the codes of rulebooks
    markdown   the parts that pages are made of

A module has `pages()`: the Markdown of each of its pages, by the path below docs/reference.
"""
