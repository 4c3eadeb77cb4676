"""Offline verification of Decision Packets.

packet          the specification's four steps
packet_chain    the retained links and the reports' places among them
packet_result   the result, by step
"""
