"""Shadows: what the candidates of open migrations decide of new decisions, beside the versions in force.

watcher      looks at every shadow that runs, now and then, in the analytics process
live         what one found, as sentences and as a report
"""
