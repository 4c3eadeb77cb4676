"""gate migrate: a change of a rulebook, proved on the past, approved, routed, and undone.

    command      the subcommands
    drafting     `new`: a manifest for candidates
    check        `check`: the dry run of a manifest over a golden replay corpus
    proving      dry-run, propose: a migration proved on a scope's own past
    acts         approve, reject, apply, rollback: what people sign
    reading      list, show, status, report
    shadow       shadow start, stop, show: new decisions decided anew, without any effect
    signing      who signs: a password, or the token of a session
    lines        what a dry run found, as lines for people

`new` and `check` need no instance. docs/migrations.md is the guide, docs/migration-manifest.md describes the manifest.
"""
