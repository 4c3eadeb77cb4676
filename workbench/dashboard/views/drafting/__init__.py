"""Drafts: their list, the studio in which one is written, its parts, and its cases.

listing     the drafts of a scope
studio      one draft, to be written
parts       what the studio shows beside the text, each for itself
table       its rules as a table
cases       the cases of a draft
revisions   what it was, and who changed it
compare     a draft beside another text
"""
