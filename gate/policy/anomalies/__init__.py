"""What is anomalous about a policy's decisions, from counts alone: no model, no clock, no randomness.

    statistics   tests, effect sizes, false discoveries, robust distances
    scores       how a strength becomes a score, and a score a severity
    shifts       rates of verdicts, reasons and outcomes that differ from the weeks before
    drift        facts that differ from the weeks before
    weekly       what is compared week by week besides rates: values of metrics, and decisions that come together
    volume       hours, days or weeks with far more or fewer decisions than such ones have
    outliers     single values of observed metrics that lie far out
    breaks       decisions whose life went otherwise than the protocol asks
    anomaly      one anomaly: its strength, its window, the decisions that show it, where to look next
    counted      what the report is made of
    telling      makes an anomaly of what was found
    report       all of it as `policy_anomalies_v1`
    alerts       the open anomalies of high severity, of all policies of a scope

`workbench.engines.anomalies` counts; this package judges the counts. `docs/reference/formulas/anomalies.md` has the formulas, and
where each threshold comes from.
"""
