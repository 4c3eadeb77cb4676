"""The outer layer: the HTTP service (Flask) and the `gate` command.

    app            create_app(settings), and the application of a worker process
    errors         maps the code of an error to a status, here only
    http           what all requests share
    workers        the processes that answer, and their restarts
    routes         one blueprint per noun
    feeds          policy alerts as an Atom feed
    mcp            the Model Context Protocol, and the gate as a server of it
    description    the OpenAPI document and the pages made from it
    keeper         signed checkpoints, kept while the service runs
    expiry         reviews that expire on time while the service runs
    analytics      the process that computes reports, and its client
    webhooks       the process that delivers events to endpoints
    dashboard      the process that serves the dashboard next to the service
    cli            the `gate` command

This package has no domain rules: a route reads the request, calls `gate` or `workbench`, and answers.
"""
