"""The reporting service: a separate process that computes reports, and answers on a local socket.

    client     sends it questions and keeps it running; every worker loads this, but not the analytics libraries
    process    the process itself: `python -m api.analytics.process`

The process computes with `workbench.analytics`.
"""
