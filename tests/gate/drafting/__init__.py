"""Drafts of rulebooks, as texts."""
