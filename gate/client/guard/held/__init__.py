"""Held actions: what their owners answered, and what follows from it.

review       the owner's resolution, asked for and waited for
judging      whether a resolution opens the action
unopened     why it does not, as the errors that a guard raises
resuming     a guard that goes on with a held action, in any process that has the store
"""
