"""Drafts of rulebooks, and their cases.

- `drafts`: the texts, saved while they are typed, with their history
- `cases`: the cases of each draft
"""
