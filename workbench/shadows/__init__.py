"""Shadows: the candidates of open migrations decide new decisions, compared with the active versions.

    watcher      updates every running shadow from time to time, in the analytics process
    live         the result of a shadow, as sentences and as a report

A shadow never changes a decision.
"""
