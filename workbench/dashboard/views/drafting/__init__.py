"""Drafts: their list, the studio in which one is written, its parts, and its cases.

- `listing`: the drafts of a scope
- `studio`: one draft, to be written
- `parts`: the parts of the studio next to the text
- `table`: its rules as a table
- `cases`: the cases of a draft
- `revisions`: the earlier texts of a draft, and their authors
- `compare`: a draft compared with another text
"""
