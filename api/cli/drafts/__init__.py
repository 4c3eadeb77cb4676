"""`gate drafts`: drafts of rulebooks and their cases, which the workbench shows too.

    command    the subcommands
    reading    list, show, check, revisions, compare
    writing    new, save, set, add, remove, fork, merge, rename, close, reopen
    cases      the cases of a draft
    proving    a draft's dry run, and its proposal
    options    the shared options

Drafts are stored in the ledger. `gate.drafting` and `gate.decisions.drafts` have their rules.
"""
