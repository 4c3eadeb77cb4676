"""Trusted adapters: registered first-party code that makes facts of what a caller sends, and decides nothing.

    manifest, registry    what an adapter is, and which of them this release has
    invocation            a request's invocation checked, and what its record says of it
    worker                runs one call in a process of its own, and reads what comes of it with a bound
    zygote, containment   the other end: a process that forks one contained worker for each call

The sources of the adapters are in builtin/, known by the hashes of their bytes. `docs/adapters.md` says what a worker
can reach and what stops it. `zygote` and `containment` import the standard library alone, and this file imports
nothing: both run in a process that holds nothing else.
"""
