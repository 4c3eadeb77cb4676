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
# The *anomaly report* says what is not as it was, or not as it should be: outcomes that got worse, verdicts that
# shifted, days with far more decisions than usual, odd numbers, facts that drifted, and decisions whose life went
# otherwise than the protocol asks. It is counted, not predicted: every anomaly carries the numbers that it follows
# from, and names decisions that show it.
#
# This notebook begins where a team begins, with the alerts. It then takes the strongest one apart, until there are
# names, hours and records, and something to do.
#
# The data is the demo ledger: a year of made-up decisions, with three incidents planted. What the text says of numbers
# holds for `make demo` as it comes; another seed, or a smaller demo, may show less.

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
# ## What is looked at
#
# A *scope* is a tenant: here, one company each. The *lake* is the ledger as Parquet files. Put your own here; all
# that follows takes these names. Without an anomaly, the strongest one is taken apart; without a version, all of them
# are looked at.

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
    print(f"anomaly: {listed[first]['summary']}" if known else f"anomaly: {ANOMALY} is not listed any more")

# %% [markdown]
# ## The alerts
#
# An alert is an anomaly of high severity that is still open: no more than 90 days ago, counted to the last entry of
# the scope's chain. `GET /api/policy-alerts` answers the same for the scope of a key.

# %%
alerts = [
    {"scope": name, "policy": alert["policy_id"], "from": anomaly["window"]["from"][:10], "summary": anomaly["summary"]}
    for name in lake.scopes
    for alert in policy_alerts(lake.scope(name), open_days=90)["alerts"]
    for anomaly in [alert["anomaly"]]
]
pl.DataFrame(alerts, schema=dict.fromkeys(("scope", "policy", "from", "summary"), pl.String))

# %% [markdown]
# In the demo two of them are of one policy of one company, a shop, and of the same days: refunds were taken back, and
# there were far more of them than usual.
#
# ## The report of the policy
#
# The report has the alerts and what is less urgent. Scores go from 0 to 1: 0.8 and more is high. Bars begin and end
# with the anomaly; breaks of single decisions are spread over the year.

# %%
report

# %%
report.plot()

# %% [markdown]
# ## The strongest one
#
# Each week is compared with the eight weeks before it, at equal age of the outcomes, by an exact test. So a young
# week is not held against weeks whose late failures are known by now.

# %%
report.plot(first) if listed else report.plot()

# %% [markdown]
# The numbers behind it: before, within, the difference with its 95% interval, how likely chance alone would make it
# as great, and how unlikely that has to be for it to be certain among so many comparisons. What is not certain is no
# alert.

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
            "certain from p": f"{change['required_p']:.1e}",
        }
        for change in changes
    ]
)

# %% [markdown]
# Where a new version came with it, the version before can be asked: what would it have decided of the same requests?
# In the demo none came with the strongest one; the other company's, further down, came with one.

# %%
back = report.going_back(first) if listed else None
print("no new version came with it" if back is None else back)

# %% [markdown]
# ## What else happened then
#
# One cause has many faces. Anomalies of the same days are most likely one story, so take those whose windows overlap
# the strongest one.

# %%
if listed:
    begins, ends = listed[first]["window"]["from"], listed[first]["window"]["to"]
    together = [at for at, of in enumerate(listed) if of["window"]["from"] < ends and begins < of["window"]["to"]]
    together = [at for at in together if listed[at]["kind"] not in ("lifecycle_break", "metric_outlier")]
else:
    together = []
report.frame[together].select("severity", "score", "kind", "from", "to", "summary")

# %% [markdown]
# Facts are what callers send. Where they drift together with outcomes, the requests of those days were others than
# before: other customers, another program, or somebody with a plan. The chart has the fact that drifted most.

# %%
drifted = next((at for at in together if listed[at]["kind"] == "fact_drift"), None)
report.plot() if drifted is None else report.plot(drifted)

# %% [markdown]
# Almost all of the additional refunds are in one bin, just below the amount from which on the policy asks a person.
# That is no accident of the season.
#
# ## Who, and when
#
# The report gives the decisions themselves. Joined with what was asked, they tell who acted, for how much, and at
# what hour of the day.

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
# One account made almost all of them. Its hours are not those of the shop: the line is what is usual at an hour, the
# bars are the window.

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
# ## What it would have taken
#
# What did the policy know? Every decision keeps the facts that it was made with. Which of them tell the decisions
# that went wrong from the others of the same days?

# %%
bodies = snapshot.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()["body"]
rulebook = json.loads(bodies[-1])
fields = fields_of(rulebook)
known = (
    snapshot.facts(fields, POLICY).join(asked.filter(window).select("position"), on="position", how="semi").collect()
)
marked = known.with_columns(pl.col("position").is_in(suspects["position"].implode()).alias("went wrong"))
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
# In the demo they are large for refunds, and just small enough to need no person. A rule that holds such requests
# back is soon written. What it would have held back *besides* is what the counterfactual says, before anybody changes
# anything: here the decisions of the window and of eight weeks before it, under the latest version with one rule
# more, that sends to review what lies where the fact that drifted most lay for nine of ten of the decisions above.

# %%
drifting = [of["fact"] for at in together if at == drifted for of in listed[at]["numbers"]["facts"]]
fact = next((field for field in [*drifting, *numbers] if field in numbers), None)
values = marked.filter("went wrong")[f"{fact}:number"].drop_nulls() if fact is not None else pl.Series(dtype=pl.Float64)
if values.len():
    low, high = values.quantile(0.05), values.quantile(0.95)
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
    print(f"review where {fact} is from {low:g} to {high:g}")
else:
    held = pl.DataFrame(schema={"verdict": pl.String, "then_verdict": pl.String, "decisions": pl.Int64})
outcomes = [name for name in ("decisions", "succeeded", "reverted", "failed") if name in held.columns]
(
    held.group_by("verdict", "then_verdict")
    .agg(pl.col(outcomes).sum())
    .sort("decisions", "verdict", descending=[True, False])
)

# %% [markdown]
# In the demo the rule would have held back nearly all that was taken back, and a handful of good ones: a person would
# have looked at some sixty requests more in two months.

# %% [markdown]
# ## Another kind of incident: a version
#
# A rulebook is changed to decide otherwise, so a shift of verdicts with a new version is no alarm by itself; it is
# told as such, and stays below high. A shift of *outcomes* with it is one. In the demo that is another company's.

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
# The verdicts of the same weeks say what the version did: it let pass what went to a person before.

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
# What would the version before have decided, from the same facts? `back.report` has it in full: from which
# verdict to which, and the decisions themselves.

# %%
back = None if worse is None else other.going_back(worse)
print("no new version came with it" if back is None else back)

# %% [markdown]
# What the report calls *new versions* is what to look at next; effectiveness compares them all.

# %%
effectiveness(lake.scope(OTHER_SCOPE), OTHER_POLICY).plot("version")

# %% [markdown]
# ## What is low is not nothing
#
# Breaks are promises of callers: a receipt within a day of every yes, a terminal outcome within 30 days of every
# execution. A few percent are usual. The share says whether somebody should be asked.

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
# - *Why.* Windows met different cases, and a version that came with a shift need not be its cause. What was shown here
#   is who and when; the why is asked of people.
# - *What crept.* A rate that gets worse by a little each month does not stand out against the two months before.
# - *What nobody reported.* Outcomes are what callers said. A fraud whose refunds are never taken back looks like a
#   success.
#
# Each number above is in the report, with its hash, and can be counted again from the chain. The formulas, and where
# each threshold comes from, are in [anomaly-formulas.md](../docs/anomaly-formulas.md).
