"""Imported histories: past cases from files, which are not in the chain.

listing     the sets of a scope
rehearsal   what an import understood, and what came of it
source      what marks a page that shows imported cases, or the dates of events
"""
