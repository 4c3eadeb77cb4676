"""The studio of drafts."""
