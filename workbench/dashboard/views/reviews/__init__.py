"""Reviews of held decisions.

- `words`: times, owners, and actions of reviews in words
- `queue`: the reviews of a state by owner and age
- `case`: one review, to grant or refuse
- `changed`: the current and the proposed values in a request
- `standing`: the state of a decision's review, and the answer of its owner
"""
