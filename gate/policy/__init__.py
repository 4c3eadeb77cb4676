"""The formulas of the reports about policies, over counts taken elsewhere.

The modules:

    confidence            Wilson intervals, and how far outcomes support one kind of decision
    means                 sums and means of measured values, with Student's intervals
    medians               the interval of a median
    effectiveness         shares, scores, and recommendations by version, verdict, rule, and week
    versions              compares versions: unadjusted, and among like cases
    standardization       two groups among like cases: rates, difference with its interval, test, design effect
    peers                 benchmarks: the figures that a scope shares, and quantiles over a cohort of other scopes
    anomalies/            tests for shifts, drift, outliers, volume, and broken promises, and the anomaly report
    notes                 sentences that these reports share
    reports               the confidence report, and the limits of lists in reports
    effectiveness_report  the effectiveness report
    questions             one frozen object per question, with its names, defaults, and bounds
    bounds                the bounds of a question's members

Everything is pure and deterministic. Counting happens elsewhere: in `workbench.engines` over the lake, and in `ledger`
for confidence.
"""
