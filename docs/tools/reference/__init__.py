"""The reference pages that come from their sources, each made by the module of its name.

A module has `pages()`: the Markdown of each of its pages, by the path below docs/reference.
"""
