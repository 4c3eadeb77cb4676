"""The studio, where authors write drafts and see the results at once.

- `desk`: one author's work on one draft: saving, problems, merging, forking
- `proofs`: the dry runs of drafts, which continue when nobody watches
- `workshop`: processes for long work that can be ended
- `works`: the work that they do
- `uploads`: files sent from a page
- `units`: offsets as a browser counts them
"""
