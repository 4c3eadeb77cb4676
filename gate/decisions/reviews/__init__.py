"""Held decisions: their owners grant or refuse them, or their time limit ends.

- `resolutions`: resolves a review once, or lets it expire
- `standing`: the state of a review
- `refusals`: the refusals of a resolution
"""
