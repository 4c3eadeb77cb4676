"""The documents after a decision: the reports of callers and the resolutions of owners.

    receipts          execution receipts, outcomes and CRM syncs, with their hashes
    report_request    checks the request of a report
    breaches          finds the receipts that break a grant, in sentences
    resolution        the owner's resolution of a held decision, with its hash and its signed bytes

Each document cites the record of its decision.
"""
