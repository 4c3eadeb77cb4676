"""Migrations in a ledger: who does what with them, and when.

acts         propose, approve, reject, apply, roll back and shadow, and what is stored of all that
rules        what is required of those who act, and of what they act on
documents    what is proposed and stored, and how lists and answers show it
"""
