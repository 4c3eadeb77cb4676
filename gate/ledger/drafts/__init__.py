"""Drafts of rulebooks, and the cases that their authors hold them to.

drafts        the texts, saved as they are typed, with everything that they were before
cases         the cases of each draft
"""
