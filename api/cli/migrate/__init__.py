"""gate migrate: a change of a rulebook, proved on the past, approved, routed, and undone.

command      the subcommands
acts         approve, reject, apply, rollback: what people sign
reading      list, show, status
signing      who signs: a password, or the token of a session
"""
