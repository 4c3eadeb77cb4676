"""Migrations of rulebooks: how a change is proved on the past, approved against that proof, and undone.

    manifest     rulebook_migration_v1: what is to come, the drift that is expected, and its approval
    drafting     a first manifest for candidates, which expects the drift that a corpus shows
    folder       the edge: reading a manifest and the files that it names, from its folder alone
    corpus       a golden replay corpus, held against its own hashes
    freezing     corpora of one's own: cases as they are decided now, with their hashes
    drift        the dry run: a candidate over a corpus, and where it drifts
    evidence     everything that a person who approves has to know, as one document with a hash
    standing     where a migration stands: proposed, approved, rejected, superseded, applied
    approval     whether evidence is still of today, whether it passes the gate, and whether a person has to approve
    routes       which version a rulebook id leads to, and where a rollback goes

The entries of the chain are in `gate.records.changes`. The permissions and the order of acts are in
`gate.decisions.migrations`.
"""
