"""Held decisions: their owners grant or refuse them, or their time limit ends.

resolutions        a resolution is taken, once for a decision, or the service lets the review expire
standing           where a review stands
refusals           what refuses a resolution
"""
