"""The engines: one module for each question, over a scope's snapshot; each answers with a frozen report.

A report has `to_dict()` (what the service answers, with its hash), `.frame` (its numbers, a row each), `.plot()` (an
Altair chart, of workbench.charts), and shows itself in a notebook.

    effectiveness      how well a policy does, by version, verdict, rule and week
    comparing/         the versions and weeks of a policy beside each other, for effectiveness
    confidence         how far outcomes support one kind of decision
    anomalies          shifts, drift, outliers, volume and broken promises; the open ones of a whole scope
    benchmarks         a policy beside that of other scopes
    counterfactuals    a slice of decisions under other facts or another rulebook
    roll_up            all policies of several scopes
    glance             all policies of a scope in one look: what came of them, what is held, their trend
    activity           a policy over time: verdicts, reasons, rules, latency of outcomes, metrics
    listing            decisions searched, those that are held, and the names to search by
    arguments, slicing    what every engine checks and cuts at its door
    findings           the sentence that says what a report shows
    wording            names, dates and shares as people read them
    rendering          what their tables and prompts have in common
"""
