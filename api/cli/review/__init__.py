"""`gate review`: held decisions, their owners, and their resolutions.

    command      the subcommands
    owners       set, list, and remove owners
    queue        list held decisions, and show one
    resolving    grant and refuse
    spans        time spans in options and tables

People sign resolutions with their own name. Services resolve over HTTP.
"""
