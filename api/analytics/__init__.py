"""Reports are computed beside the service, in a process of their own, which a local socket leads to.

    client     asking it, and keeping it running; loaded by every worker, without what computes
    process    the process itself: `python -m api.analytics.process`

What it computes with is `workbench.analytics`.
"""
