"""The anomaly engine: counts taken in three scans of the lake, judged by `gate.policy.anomalies`.

    report     the engine's door, `anomalies(snapshot, policy_id)`, and the report as frames
    counts     rates, volume and broken promises by week and version
    samples    histograms of facts, and which values of a metric are usual
    sentences  what pages write about anomalies
    alerts     the open anomalies of high severity, of all policies of a scope

The formulas are in docs/anomalies.md.
"""
