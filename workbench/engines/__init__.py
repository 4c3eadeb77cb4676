"""The engines: one module for each question, over a scope's snapshot; each answers with a frozen report.

A report has `to_dict()` (what the service answers, with its hash), `.frame` (its numbers, a row each), `.plot()` (an
Altair chart), and shows itself in a notebook.
"""
