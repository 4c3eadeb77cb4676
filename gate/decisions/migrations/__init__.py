"""Migrations in a ledger: who does what with them, and when.

reading      where each stands, what it cites, and which versions are in force
acts         propose, approve, reject, apply, roll back and shadow
rules        what is required of those who act, and of what they act on
documents    what is proposed and stored, and how lists and answers show it
"""
