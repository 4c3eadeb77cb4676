"""Imported histories: past cases from files, which are not in the chain.

- `listing`: the sets of a scope
- `rehearsal`: the plan and the result of an import
- `source`: the notice on pages that show imported cases or event dates
"""
