"""The studio: where authors write drafts, and see at once what comes of them.

desk          one author's work on one draft: saving, problems, merging, forking
proofs        the dry runs of drafts, which go on whether or not anyone watches
workshop      processes for work that takes longer, each of which can be ended
works         what they do
uploads       files that are sent from a page
units         offsets as a browser counts them
"""
