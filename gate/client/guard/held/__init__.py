"""Actions that are held for review, and the resolutions of their owners.

    review       asks for the owner's resolution, and waits for it
    judging      checks whether a resolution permits the action
    unopened     the errors that a guard raises if it does not
    resuming     a guard that continues with a held action, in any process that has the store

`gate.client.guard.entering` uses them after the verdict review.
"""
