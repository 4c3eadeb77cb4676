"""Verifies Decision Packets offline.

    packet              the specification's four steps
    packet_resolution   the resolution of a held decision, and its place among the links
    packet_chain        the retained links, and the reports' places among them
    packet_result       the result of each step

`gate.verify` exports the public functions.
"""
