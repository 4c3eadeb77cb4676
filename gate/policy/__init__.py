"""The formulas of the reports about policies, over counts taken elsewhere.

    confidence       Wilson intervals, and how far outcomes support one kind of decision
    means            sums and means of measured values, with Student's intervals
    medians          the interval of a median
    effectiveness    shares, scores and recommendations by version, verdict, rule and week
    versions         versions beside each other: as they are, and among like cases
    standardization  two groups among like cases: rates, difference with its interval, test, design effect
    peers            benchmarks: the figures that a scope shares, and quantiles over a cohort of other scopes
    anomalies/       tests for shifts, drift, outliers, volume and broken promises, and the report of what they find
    notes            a sentence that these reports share
    reports          the document of confidence, and what reports list at most
    effectiveness_report  the document of effectiveness
    questions        one frozen object per question, with its names, defaults and bounds; the protocol of what answers
    bounds           what the members of a question may be

Pure and deterministic. Counting is done elsewhere: in `workbench.engines` over the lake, in `ledger` for confidence.
"""
