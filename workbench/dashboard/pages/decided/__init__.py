"""The pages of decisions: decisions has a list of them, held those that wait, decision one as a story,
whatif what they would be with other facts."""
