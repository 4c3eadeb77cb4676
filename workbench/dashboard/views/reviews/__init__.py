"""Reviews of held decisions.

words     times, owners and actions of reviews in words
queue     the reviews of a state by owner and age
case      one of them as a story, to grant or refuse
changed   the old and the proposed values that a request names
standing  where the review of a decision stands, and what its owner answered
"""
