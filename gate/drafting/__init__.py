"""What authors do with drafts of rulebooks, as pure functions of texts.

completion    what fits where an author types
diagnosis     whether a text is a valid rulebook, and every error and warning at its place
editing       changes by the path of a member, as a table makes them
splicing      changes of one value in a text that leave all else as its author wrote it
given         the facts at hand as a form
levers        the values of facts that matter, for sliders and lists
measuring     how well cases test a rulebook: coverage and mutation score
merging       two texts that began as one
"""
