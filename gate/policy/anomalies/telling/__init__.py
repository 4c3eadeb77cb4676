"""Makes an anomaly of what was found: its score, its reasons, its sentence, and where to look next.

base     windows, decisions, effects and versions of any anomaly
rates    verdicts, reasons and outcomes that shifted
facts    facts that drifted
metrics  metrics that shifted
levels   what of their values is otherwise, in sentences
single   breaks, surges and outliers
telling  all of them
"""
