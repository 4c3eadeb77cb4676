"""Counts and checks the prose: pages, docstrings, notebooks. `python -m docs.tools.prose count | check [PATH ...]`.

texts      finds the texts and their blocks
counts     measures their readability
style      applies the house rules of house.toml
grammar    runs the grammar checker Harper; words.txt holds the house's own words
"""
