"""Rulebooks as formulas for a SAT solver, over points that represent all facts alike.

- `encoding`: a literal for each node of a condition, each rule, and each outcome
- `space`: the classes of all fields as variables, and facts from a solution
- `classes`: the values of a field, divided into classes that no test tells apart
- `numbers`: numbers, cut at the constants of tests
- `solver`: the SAT solver and its bounds
"""
