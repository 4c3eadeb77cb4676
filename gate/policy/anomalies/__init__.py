"""Finds anomalies in a policy's decisions from counts alone: no model, no clock, no randomness.

The modules:

    statistics   tests, effect sizes, false discoveries, robust distances
    scores       turns a strength into a score, and a score into a severity
    shifts       rates of verdicts, reasons, and outcomes that differ from the weeks before
    drift        facts that differ from the weeks before
    weekly       other comparisons by week: values of metrics, and decisions that arrive together
    volume       hours, days, or weeks with far more or fewer decisions than usual
    outliers     single metric values that lie far out
    breaks       decisions that broke a rule of the protocol
    anomaly      one anomaly: its strength, window, decisions, and next steps
    counted      the counts that the report is made from
    telling      turns findings into anomalies
    report       the complete report, `policy_anomalies_v1`
    alerts       the open anomalies of high severity, of all policies of a scope

`workbench.engines.anomalies` counts, and this package judges the counts. `docs/reference/formulas/anomalies.md` has the
formulas and the source of each threshold.
"""
