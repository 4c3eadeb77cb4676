"""The published contract: what a service promises to everyone, and whether another one keeps it.

    published      the JSON Schemas, conformance fixtures and golden replays, as shipped, with their hashes
    conformance    answers held against the fixtures; the asking is the business of `gate conformance`

Pure. The files themselves are in schemas/.
"""
