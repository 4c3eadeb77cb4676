"""`gate migrate`: prove a change of a rulebook on the past, approve it, route to it, and roll it back.

    command      the subcommands
    drafting     `new`: a manifest for candidates
    check        `check`: the dry run of a manifest over a golden replay corpus
    proving      dry-run, propose: prove a migration on a scope's own past
    acts         approve, reject, apply, rollback: the acts that people sign
    reading      list, show, status, report
    shadow       shadow start, stop, show: decide new decisions again, without any effect
    signing      the options that identify the user: a password, or the token of a session
    lines        the result of a dry run as lines for people

`new` and `check` need no instance. `docs/guides/migrate-a-policy.md` is the guide, and
`docs/reference/migration-manifest.md` describes the manifest.
"""
