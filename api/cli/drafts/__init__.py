"""gate drafts: drafts of rulebooks and their cases, as the workbench has them, on the command line.

command    the subcommands
reading    list, show, check, revisions, compare
writing    new, save, set, add, remove, fork, merge, rename, close, reopen
cases      the cases of a draft
proving    a draft's dry run, and its proposal
options    what they share
"""
