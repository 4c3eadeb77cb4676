"""The pages of drafts: `drafts` (the list, and one draft in the studio), `cases`, `revisions`, and `compare`."""
