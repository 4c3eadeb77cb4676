"""The charts of reports and of the dashboard. Only code that draws loads them.

Altair takes longer to load than all other modules together, and exports, the service, and reports need no charts.

    drawing            the parts of every chart: its texts, rows, and title
    colours            one color for each meaning, and its values on a page
    svg                a chart as part of a page
    inline             the steps to it: the width, and the parts of a drawn SVG that are kept
    rates              success rates with their intervals
    effectiveness      a policy week by week
    confidence         versions compared with the score
    anomalies          a report over time, and one anomaly with its context
    benchmarks         a policy on the percentiles of others
    counterfactuals    original and new verdicts, and changes week by week
    weekly             verdicts week by week, and the time until first outcomes
    counts             the decisions of each reason and each rule
    metrics            measured values, by version
    sparkline          a line as small as a word, without Altair

Every title is a sentence of `workbench.engines.findings`. `tests/workbench/hostile.py` plots every chart with hostile
names. Each channel is given as its class, `x=alt.X("low:Q")`. For a plain string, Altair hashes all of its schemas to
find the class, which takes longer than the rest of the chart.
"""

from __future__ import annotations

import sys

# Altair loads jsonschema. Where this package is installed, that builds a grammar of addresses with it, which takes
# longer than drawing all charts, and no chart has a format to check.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
