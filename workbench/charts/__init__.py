"""The charts of reports and of the dashboard, loaded by what draws them alone.

Altair takes longer to load than everything else here together, and exporting, serving and computing plot nothing.

    drawing            what every chart is made with: its texts, its rows, its title
    colors            one color for each meaning, and its values on a page
    svg                a chart as part of a page
    inline             the steps to it: the width, and what of a drawn SVG is kept
    rates              success rates with their intervals
    effectiveness      a policy week by week
    confidence         versions beside the score
    anomalies          a report over time, and one anomaly beside its surroundings
    benchmarks         a policy on the percentiles of others
    counterfactuals    verdicts as they were and as they would be, and what would change week by week
    weekly             verdicts week by week, and how long first outcomes take
    counts             how many decisions each reason and each rule stands behind
    metrics            what callers measured, by version
    sparkline          a line the size of a word, without Altair

Every title is a sentence of `workbench.engines.findings`. Each channel is given as its class, `x=alt.X("low:Q")`: of a
plain string Altair hashes all of its schemas to find the class, which takes longer than all else about a chart.
"""

from __future__ import annotations

import sys

# Altair loads jsonschema. Where this package is installed, that builds a grammar of addresses with it, which takes
# longer than drawing all charts, and no chart has a format to check.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
