"""The anomaly engine: counts taken of the lake, judged by `gate.policy.anomalies`.

    report      the engine's door, `anomalies(snapshot, policy_id)`, and the report as frames
    counts      rates and volume by week and version
    choice      which decisions it looks at
    reading     what is read of the lake, and kept of its files
    broken      lifecycle breaks
    minutes     in which minute decisions were made, and whether that is known
    groups      in how large groups decisions arrive
    levels      where the values of metrics lie, week by week
    shown       which decisions show an anomaly
    going_back  what the version before would have decided, where a new one came with an anomaly
    samples     histograms of facts, and which values of a metric are usual
    sentences   what pages write about anomalies
    alerts      the open anomalies of high severity, of all policies of a scope

The formulas are in `docs/reference/formulas/anomalies.md`.
"""
