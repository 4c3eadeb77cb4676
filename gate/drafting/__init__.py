"""The authors' work on drafts of rulebooks, as pure functions of texts.

- `completion`: the completions where an author types
- `diagnosis`: whether a text is a valid rulebook, and every error and warning at its place
- `editing`: changes by the path of a member, from a table
- `splicing`: changes of one value in a text, without other changes
- `given`: the current facts as a form
- `levers`: the values of facts that matter, for sliders and lists
- `measuring`: how well cases test a rulebook: coverage and mutation score
- `merging`: two texts that began as one
"""
