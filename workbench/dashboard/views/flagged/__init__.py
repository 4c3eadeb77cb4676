"""Anomalies: the list of a policy or of a scope, and the page of one.

anomalies   the list, what is high and costs most first
anomaly     one, with its numbers, its decisions, and who dismissed it
"""
