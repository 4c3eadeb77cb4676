"""The edges: the HTTP service (Flask) and the `gate` command.

    app            create_app(settings), and the application of a worker process
    errors         an error's code becomes a status here, and nowhere else
    http           what every request meets
    workers        the processes that answer, and restarting those that die
    routes         a blueprint a noun
    feeds          policy alerts as an Atom feed
    mcp            the Model Context Protocol, and the gate as a server of it
    description    the OpenAPI document and the pages made of it
    keeper         signed checkpoints, kept while the service runs
    expiry         reviews that expire on time while the service runs
    analytics      the process that computes reports, and asking it
    dashboard      the process that serves the dashboard beside the service
    cli            the `gate` command

No rule of the domain stands here: a route reads, asks `gate` or `workbench`, and answers.
"""
