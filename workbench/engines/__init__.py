"""The engines: one module for each question about a scope's snapshot. Each answers with a frozen report.

A report has `to_dict()` (the service's answer, with its hash), `.frame` (its numbers, one row each), and `.plot()` (an
Altair chart from `workbench.charts`). It displays itself in a notebook.

    effectiveness         how well a policy does, by version, verdict, rule, and week
    comparing/            compares the versions and weeks of a policy, for effectiveness
    confidence            how far outcomes support one kind of decision
    anomalies             shifts, drift, outliers, volume, and broken promises; the open ones of a whole scope
    benchmarks            a policy compared with that of other scopes
    counterfactuals       a slice of decisions under other facts or another rulebook
    roll_up               all policies of several scopes
    glance                all policies of a scope: their results, held decisions, and trend
    activity              a policy over time: verdicts, reasons, rules, latency of outcomes, metrics
    listing               searches decisions, lists held ones, and lists the names to search by
    arguments, slicing    the checks and slices that all engines share
    findings              the sentence that says what a report shows
    wording               names, dates, and shares as people read them
    rendering             the tables and prompts that reports share
"""
