"""What reports look like: a module for each report that has a chart of its own, loaded by its `plot()` alone.

Altair takes longer to load than everything else here together, and who exports, serves or computes plots nothing.

    rates              success rates with their intervals, and colours that the colour-blind tell apart
    effectiveness      a policy week by week
    confidence         versions beside the score
    anomalies          a report over time, and one anomaly beside its surroundings
    benchmarks         a policy on the percentiles of others
    counterfactuals    verdicts as they were and as they would be

Each channel is given as its class, `x=alt.X("low:Q")`: of a plain string Altair hashes all of its schemas to find the
class, which takes longer than all else about a chart.
"""
