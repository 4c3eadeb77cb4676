"""Turns findings into anomalies: their score, reasons, sentence, and next steps.

The modules:

    base     windows, decisions, effects, and versions of any anomaly
    rates    shifts of verdicts, reasons, and outcomes
    facts    facts that drifted
    metrics  metrics that shifted
    levels   sentences about how the values of a metric differ
    single   breaks, surges, and outliers
    telling  all of them
"""
