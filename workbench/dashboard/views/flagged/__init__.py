"""Anomalies: the list of a policy or of a scope, and the page of one.

- `anomalies`: the list, highest severity and cost first
- `anomaly`: one anomaly, with its numbers, its decisions, and its dismissals
"""
