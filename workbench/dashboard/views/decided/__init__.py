"""Decisions: search results, held decisions, and the page of one.

- `decisions`: the page of decisions that match filters
- `held`: the page of decisions that wait for a reviewer
- `listing`: the table of both pages
- `searched`: a search as a sentence
- `decision`: the page of one decision
- `advice`: the part that replaces reason, facts, and rules for an advisory decision
- `why`: the reason in words, with the facts that decided
- `rules`: its rules, in the order in which they were tried
- `reports`: the reports about it
- `checks`: its verification in words
- `whatif`: decisions with other facts
- `changes`: the changes of a policy version, for the policy page
"""
