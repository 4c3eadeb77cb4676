"""Decisions: those that were searched for, those that are held, and the story of one.

decisions   the page of those that meet some filters
held        the page of those that wait for a reviewer
listing     the table that both have
searched    a search as a sentence
decision    the page of one
advice      what stands there in the place of reason, facts and rules where a decision is advisory
why         the reason in words, with the facts that decided
rules       its rules as they were tried
reports     what was reported about it
checks      its verification in words
whatif      what decisions would be with other facts
changes     what a version of a policy changed, which the policy page shows
"""
