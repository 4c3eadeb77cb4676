"""What follows a decision, built and hashed: what callers report about it, and what its owner resolves.

receipts          execution receipts, outcomes and CRM syncs, with their hashes
report_request    a report about a decision checked, before a receipt is made of it
breaches          how the receipts behind a grant break it, in sentences
resolution        the owner's resolution of a held decision, with its hash and what is signed of it
"""
