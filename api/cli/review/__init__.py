"""gate review: held decisions, their owners and their resolutions.

command      the subcommands
owners       who owns which reviews
queue        the held decisions, and one of them as a story
resolving    granting and refusing
spans        spans of time in options and tables
"""
