# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From an alert to its cause
#
# **Question.** An alert says that something changed. What happened, who was involved, and what can we do?
#
# **Answer for the demo.** The shop `lumen-retail` was the target of a fraud. Within three days, one account,
# `support-agent-7`, requested more than a hundred refunds slightly below 250 euros, mostly at night. A rule for such
# amounts would have held most of them. A second incident shows another story: a new version of the pricing policy of
# `harbor-supply` let bad deals through.
#
# **How.** We start with the alerts, as a team does. Then we take the strongest anomaly apart: its numbers, other
# changes of the same days, the accounts, the hours, and the facts.
#
# The *anomaly report* lists changes: worse outcomes, shifted verdicts, days with many more decisions than usual, odd
# numbers, drifted facts, and decisions with missing or late reports. It counts and does not predict. Each anomaly
# states its numbers, and lists decisions that show it.
#
# The data is the demo ledger of `make demo`, with three planted incidents. With another seed or a smaller demo, the
# numbers differ.

# %%
import json
import os
from datetime import timedelta

import altair as alt
import polars as pl

from workbench import anomalies, counterfactuals, effectiveness, open_lake, policy_alerts
from workbench.facts import fields_of

alt.renderers.enable("png", ppi=120)
_ = pl.Config(tbl_rows=30, tbl_hide_dataframe_shape=True, fmt_str_lengths=90, tbl_width_chars=160)

# %% [markdown]
# ## Choose the data
#
# A *scope* is a tenant: in the demo, a company. The *lake* is the ledger as Parquet files. To read your own data,
# change the names in this cell. `ANOMALY` selects an anomaly; the default is the strongest one. `VERSION` selects a
# version of the policy; the default is all versions.

# %% tags=["parameters"]
SCOPE = "lumen-retail"
POLICY = "refund_policy"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")
VERSION = None
ANOMALY = None

# %%
lake = open_lake(LAKE)
snapshot = lake.scope(SCOPE)
report = anomalies(snapshot, POLICY, policy_version=VERSION, max_items=200)
listed = report.to_dict()["anomalies"]
first = next((at for at, of in enumerate(listed) if of["anomaly_id"] == ANOMALY), 0)
print("scopes:", ", ".join(lake.scopes))
if ANOMALY is not None:
    known = bool(listed) and listed[first]["anomaly_id"] == ANOMALY
    print(f"anomaly: {listed[first]['summary']}" if known else f"anomaly: {ANOMALY} is no longer listed")

# %% [markdown]
# ## The alerts
#
# An alert is an open anomaly of high severity. An anomaly is open if its window ended at most 90 days before the last
# entry of the scope's chain. `GET /api/policy-alerts` returns the same alerts for the scope of an API key.

# %%
alerts = [
    {"scope": name, "policy": alert["policy_id"], "from": anomaly["window"]["from"][:10], "summary": anomaly["summary"]}
    for name in lake.scopes
    for alert in policy_alerts(lake.scope(name), open_days=90)["alerts"]
    for anomaly in [alert["anomaly"]]
]
pl.DataFrame(alerts, schema=dict.fromkeys(("scope", "policy", "from", "summary"), pl.String))

# %% [markdown]
# In the demo, all alerts point to the refunds of one shop and to the same days. Far more refunds than usual were
# requested, and most of them were reverted.
#
# ## The report of the policy
#
# The report contains the alerts and the less urgent anomalies. Scores go from 0 to 1; high starts at 0.8. In the chart,
# a bar covers the window of its anomaly. Problems of single decisions are spread over the year.

# %%
report

# %%
report.plot()

# %% [markdown]
# ## The strongest anomaly
#
# An exact test compares each week with the eight weeks before it, with outcomes of the same age. So the report does not
# compare a young week with weeks whose late failures are already known.

# %%
report.plot(first) if listed else report.plot()

# %% [markdown]
# The table shows the numbers behind it: the rates before and within the window, and the 95% interval of the difference.
# `p` is the probability that chance alone gives such a difference. The report accepts a change only if `p` is at most
# the value in the last column. Other changes cause no alert.

# %%
shifts = [of for of in [*listed[first:], *listed] if of["kind"] in ("outcome_shift", "verdict_shift")]
changes = shifts[0]["numbers"]["changes"] if shifts else []
pl.DataFrame(
    [
        {
            "of": change["of"],
            "value": change["value"],
            "before": f"{change['before']['rate']:.1%} of {change['before']['of']}",
            "within": f"{change['within']['rate']:.1%} of {change['within']['of']}",
            "difference": f"{change['difference']['low']:+.2f} to {change['difference']['high']:+.2f}",
            "p": f"{change['p_value']:.1e}",
            "p at most": f"{change['required_p']:.1e}",
        }
        for change in changes
    ]
)

# %% [markdown]
# Did a new version come with the anomaly? Then the report can simulate the version before it. In the demo, no version
# came with this anomaly. A later part shows one that did.

# %%
back = report.going_back(first) if listed else None
print("No new version came with this anomaly." if back is None else back)

# %% [markdown]
# ## Other changes of the same days
#
# One cause can have many signs. Anomalies of the same days probably have the same cause, so we list all anomalies whose
# window overlaps the strongest one.

# %%
if listed:
    begins, ends = listed[first]["window"]["from"], listed[first]["window"]["to"]
    together = [at for at, of in enumerate(listed) if of["window"]["from"] < ends and begins < of["window"]["to"]]
    together = [at for at in together if listed[at]["kind"] not in ("lifecycle_break", "metric_outlier")]
else:
    together = []
report.frame[together].select("severity", "score", "kind", "from", "to", "summary")

# %% [markdown]
# Facts are the data that callers send. If facts and outcomes change at the same time, then the requests were different:
# other customers, another program, or somebody with a plan. The chart shows the fact that changed most.

# %%
drifted = next((at for at in together if listed[at]["kind"] == "fact_drift"), None)
report.plot() if drifted is None else report.plot(drifted)

# %% [markdown]
# In the demo, almost all additional refunds are in one bin, slightly below the amount from which a person must review a
# refund. The season does not explain that.
#
# ## Who sent the requests, and when?
#
# The report returns the decisions of an anomaly. Joined with the requests, they show the accounts, the amounts, and the
# hours.

# %%
window = (
    pl.col("created_at").is_between(
        *(pl.lit(listed[first]["window"][end]).str.to_datetime(time_zone="UTC") for end in ("from", "to"))
    )
    if listed
    else pl.lit(value=False)
)
asked = snapshot.table("decisions").filter(pl.col("policy_id") == POLICY)
went_wrong = report.decisions(first).select("position") if listed else asked.select("position").head(0)
suspects = asked.join(went_wrong, on="position", how="semi").collect()
(
    suspects.group_by("actor", "verdict")
    .agg(pl.len().alias("decisions"), pl.col("amount").min().alias("least"), pl.col("amount").max().alias("most"))
    .sort("decisions", "actor", descending=[True, False])
    .head(8)
)

# %% [markdown]
# In the demo, one account made most of the requests. The next chart shows its hours: the bars are the window, and the
# line is the usual share of each hour.

# %%
hour = pl.col("created_at").dt.hour().alias("hour")
shares = pl.concat(
    [
        rows.group_by(hour)
        .agg(pl.len().alias("decisions"))
        .with_columns((pl.col("decisions") / pl.col("decisions").sum()).alias("share"), pl.lit(when).alias("when"))
        for when, rows in (
            ("usual", asked.filter(~window).collect()),
            ("the window", asked.filter(window).collect()),
        )
    ]
).sort("when", "hour")
busy = shares.filter(pl.col("when") == "the window").sort("decisions", "hour", descending=[True, False]).to_dicts()
busy = busy[0] if busy else {"hour": 0, "share": 0.0}
then = shares.filter((pl.col("when") == "usual") & (pl.col("hour") == busy["hour"]))["share"].sum()
base = alt.Chart(shares).encode(
    x=alt.X(
        "hour:O", title="Hour of the day (UTC)", scale=alt.Scale(domain=list(range(24))), axis=alt.Axis(labelAngle=0)
    ),
    y=alt.Y("share:Q", title="Share of decisions", axis=alt.Axis(format="%")),
)
alt.layer(
    base.transform_filter("datum.when == 'the window'").mark_bar(color="#0072b2", opacity=0.7),
    base.transform_filter("datum.when == 'usual'").mark_line(
        color="#404040", strokeWidth=2, point={"color": "#404040"}
    ),
).properties(
    title=alt.Title(
        f"{busy['share']:.0%} of the window's decisions came from {busy['hour']}:00 to {busy['hour'] + 1}:00 UTC, "
        f"{then:.0%} otherwise",
        subtitle="Bars: the window. Line: all other times.",
        anchor="start",
    ),
    width=680,
    height=240,
)

# %% [markdown]
# In the demo, most requests came at night, when the shop usually has few.
#
# ## Which rule would have stopped them?
#
# Every decision keeps its facts. Which facts separate the decisions that failed or were reverted from the others of the
# same days?

# %%
bodies = snapshot.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()["body"]
rulebook = json.loads(bodies[-1])
fields = fields_of(rulebook)
known = (
    snapshot.facts(fields, POLICY).join(asked.filter(window).select("position"), on="position", how="semi").collect()
)
failed = snapshot.cases(POLICY).filter(pl.col("outcome_status").is_in(["failed", "reverted"])).select("position")
bad = suspects.select("position").join(failed.collect(), on="position", how="semi")["position"]
marked = known.with_columns(pl.col("position").is_in(bad.implode()).alias("went wrong"))
numbers = [field for field in fields if marked[f"{field}:number"].drop_nulls().n_unique() > 2]
(
    marked.group_by("went wrong")
    .agg(
        pl.len().alias("decisions"),
        *(pl.col(f"{field}:number").median().alias(f"median {field}") for field in numbers[:5]),
    )
    .sort("went wrong")
)

# %% [markdown]
# In the demo, their amounts are large for refunds, and yet too small for a review. So a new rule could send requests
# with such amounts to review. A simulation shows what else this rule would hold, before anybody changes the policy.
#
# The cell adds one rule to the latest version. The rule covers the range of the fact that changed most, from the 10th
# to the 90th percentile of the bad decisions. The simulation repeats the decisions of the window and of the eight weeks
# before it.

# %%
drifting = [of["fact"] for at in together if at == drifted for of in listed[at]["numbers"]["facts"]]
fact = next((field for field in [*drifting, *numbers] if field in numbers), None)
values = marked.filter("went wrong")[f"{fact}:number"].drop_nulls() if fact is not None else pl.Series(dtype=pl.Float64)
if values.len():
    low, high = values.quantile(0.1), values.quantile(0.9)
    rule = {
        "rule_id": "review_what_drifted",
        "priority": 1000,
        "condition": {
            "all": [{"field": fact, "operator": "gte", "value": low}, {"field": fact, "operator": "lte", "value": high}]
        },
        "outcome": {"decision": "review", "verdict": "REVIEW", "action": "route_to_owner", "reason_code": "HELD_BACK"},
    }
    candidate = {**rulebook, "version": "candidate", "rules": [*rulebook["rules"], rule]}
    since = suspects["created_at"].min() - timedelta(weeks=8)
    until = suspects["created_at"].max() + timedelta(milliseconds=1)
    held = counterfactuals(snapshot, POLICY, rulebook=candidate, since=since, until=until).frame
    print(f"New rule: review if {fact} is from {low:g} to {high:g}")
else:
    held = pl.DataFrame(schema={"verdict": pl.String, "then_verdict": pl.String, "decisions": pl.Int64})
outcomes = [name for name in ("decisions", "succeeded", "reverted", "failed") if name in held.columns]
(
    held.group_by("verdict", "then_verdict")
    .agg(pl.col(outcomes).sum())
    .sort("decisions", "verdict", descending=[True, False])
)

# %% [markdown]
# In the demo, the rule would have held about a hundred refunds that went wrong, and only a handful of good ones. Rows
# without the rule can also change, because the latest version differs from earlier ones.

# %% [markdown]
# ## Another kind of incident: a new version
#
# A new version is meant to change verdicts. So a shift of verdicts with a new version is no alert by itself. A shift of
# *outcomes* with a new version can be one. In the demo, the pricing policy of `harbor-supply` shows this.

# %%
OTHER_SCOPE, OTHER_POLICY = "harbor-supply", "pricing_exception"
if OTHER_SCOPE not in lake.scopes:
    OTHER_SCOPE, OTHER_POLICY = SCOPE, POLICY
other = anomalies(lake.scope(OTHER_SCOPE), OTHER_POLICY)
other

# %%
worse = next((at for at, of in enumerate(other.to_dict()["anomalies"]) if of["kind"] == "outcome_shift"), None)
other.plot() if worse is None else other.plot(worse)

# %% [markdown]
# The verdicts of the same weeks show the effect of the version: it approved requests that a person reviewed before.

# %%
shifted = [at for at, of in enumerate(other.to_dict()["anomalies"]) if of["kind"] == "verdict_shift"]
near = [
    at
    for at in shifted
    if worse is not None
    and other.to_dict()["anomalies"][at]["window"]["from"] < other.to_dict()["anomalies"][worse]["window"]["to"]
    and other.to_dict()["anomalies"][worse]["window"]["from"] < other.to_dict()["anomalies"][at]["window"]["to"]
]
other.plot(near[0]) if near else other.plot()

# %% [markdown]
# What would the version before have decided from the same facts? `back.report` contains the full simulation: all
# transitions between verdicts, and the decisions.

# %%
back = None if worse is None else other.going_back(worse)
print("No new version came with this anomaly." if back is None else back)

# %% [markdown]
# Next, compare the new version with all others. Effectiveness does that.

# %%
effectiveness(lake.scope(OTHER_SCOPE), OTHER_POLICY).plot("version")

# %% [markdown]
# ## Low severity still matters
#
# Some anomalies are broken promises of callers: a receipt within a day of every yes, and a terminal outcome within 30
# days of every execution. A few percent are usual. The share tells you whether to ask the callers.

# %%
pl.DataFrame(
    [
        {
            "break": of["subject"],
            "decisions": of["numbers"]["count"],
            "of": of["numbers"]["of"],
            "share": f"{of['numbers']['share']:.1%}",
            "next": of["look_at_next"][0]["what"],
        }
        for of in listed
        if of["kind"] == "lifecycle_break"
    ],
    schema={"break": pl.String, "decisions": pl.Int64, "of": pl.Int64, "share": pl.String, "next": pl.String},
)

# %% [markdown]
# ## What this cannot say
#
# - **Why.** Windows contain different cases, and a version that came with a shift need not be its cause. The notebook
#   shows who and when. For the reason, ask the people involved.
# - **Slow changes.** A rate that gets a little worse each month does not stand out against the two months before.
# - **Unreported results.** Outcomes are reports of callers. If nobody notices a fraud and reverts its refunds, it looks
#   like a success.
#
# Every number above is in the report, with its hash, and can be recomputed from the chain. For the formulas and
# thresholds, see the [anomaly formulas](../docs/reference/formulas/anomalies.md).
