"""Trusted adapters: registered first-party code that computes facts from a request's data, and decides nothing.

    manifest, registry    an adapter, and the adapters of this release
    invocation            the check of a request's invocation, and its description in the record
    worker                runs one call in its own process, and reads a bounded answer
    zygote, containment   the other end: a process that forks one contained worker for each call

The sources of the adapters are in `builtin/`, known by the hashes of their bytes.
`docs/explanation/adapter-sandbox.md` says what a worker can reach and what stops it. `zygote` and `containment` import
only the standard library, and this file imports nothing, because both run in a process that holds nothing else.
"""
