"""Anomalies: the list of a policy or of a scope, and the page of one.

anomalies   the list, the strongest first
anomaly     one, with its numbers, its decisions, and who dismissed it
"""
