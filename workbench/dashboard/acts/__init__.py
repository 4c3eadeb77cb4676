"""The acts of users on pages, except opening another page: each by its name, as a browser requests it.

- `talk`: messages of a browser and their answers: one act after the other
- `turn`: an act of a user in a scope, and the state that one page of a browser keeps
- `routes`: which function does which act
- `drafts`: creates, names, closes, and reopens drafts
- `writing`: typing in a draft and its table, and merging the texts of two authors
- `trying`: test facts, and the decision that a draft makes from them
- `examining`: the analysis of a draft, and how well its cases test it
- `shown`: the parts of the studio that follow from a draft's text
- `migrations`: dry runs and proposals; approving, applying, and rolling back
- `whatif`: the facts of a decision, or of a slice of the ledger, changed by levers
- `cases`: the cases of a draft
- `reviews`: an approver grants or refuses a held action
- `histories`: uploading, rehearsing, and importing the file of a history

A new act is a function here, and its name in `routes`. As on the command line, `gate.decisions.drafts`, `migrations`,
and `resolutions` check the rights of the user.
"""
