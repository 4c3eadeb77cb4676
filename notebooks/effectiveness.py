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
# # How well do the policies do?
#
# **Question.** Which policies lead to good results? Did a version of a policy do harm?
#
# **Answer for the demo.** Most policies succeed in 80 to 95 percent of their cases. One version did harm: version
# `2026-07-20` of the pricing policy of `harbor-supply`. It approved discounts that other versions stop, and most of
# those went wrong. The refunds of `lumen-retail` had one bad week, which was not the fault of the version.
#
# **How.** We compare all policies, then the versions of one policy, and then its rulebooks. At the end, we look at what
# outcomes cannot show.
#
# A *decision gate* is asked before an action: grant this discount, pay this refund? A **policy** answers **yes**,
# **no**, or **review**. Its rules are in a *rulebook* with numbered versions. Later, the caller can report an
# **outcome**: the result of the action.
#
# The data is the demo ledger of `make demo`: a year of made-up decisions of four companies, with three planted
# incidents, and some months of a dozen small companies. With another seed or a smaller demo, the numbers differ.

# %%
import difflib
import json
import os
from datetime import timedelta

import altair as alt
import polars as pl

from workbench import effectiveness, open_lake, roll_up
from workbench.charts.colours import NAMES
from workbench.charts.colours import OF as COLOURS
from workbench.engines.wording import described

alt.renderers.enable("png", ppi=120)
_ = pl.Config(tbl_rows=30, tbl_hide_dataframe_shape=True, fmt_str_lengths=60, tbl_width_chars=140)

# %% [markdown]
# ## Choose the data
#
# A *scope* is a tenant: in the demo, a company. The *lake* is the ledger as Parquet files. To read your own data,
# change the names in this cell.

# %% tags=["parameters"]
SCOPE = "harbor-supply"
POLICY = "pricing_exception"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)
print("scopes:", ", ".join(lake.scopes))

# %% [markdown]
# ## All policies: which ones stand out?
#
# An outcome is **terminal** when it is final: `succeeded`, `partial`, `failed`, or `reverted`. The **success rate** is
# the share of `succeeded` among terminal outcomes. The lines are 95% Wilson intervals, which stay correct for small
# samples and for rates near 1.

# %%
overview = roll_up(lake)
overview.plot()

# %% [markdown]
# The longest lines belong to small companies: with few decisions, their rates are uncertain. Over a whole year, no
# large company stands out much, because an average hides a bad month.
#
# So we let each report compare the versions of its policy. The report marks a version as **below the others** if it
# does worse in cases with like facts, or in cases that the others mostly stop.

# %%
judged = []
for scope, policy in overview.frame.select("scope", "policy_id").iter_rows():
    body = effectiveness(lake.scope(scope), policy).to_dict()
    below = [version["policy_version"] for version in body["versions"] if version["below_others"]]
    judged.append(
        {
            "scope": scope,
            "policy": policy,
            "success_rate": body["success_rate"]["rate"],
            "recommendation": body["recommendation"],
            "below_others": ", ".join(below),
        }
    )
pl.DataFrame(judged).sort(pl.col("below_others") == "", "success_rate").head(12)

# %% [markdown]
# In the demo, one row says `review_version`: the pricing policy of the wholesaler `harbor-supply`.
#
# ## One policy: which version did harm?

# %%
snapshot = lake.scope(SCOPE)
report = effectiveness(snapshot, POLICY)
report

# %% [markdown]
# ### By version

# %%
report.plot("version")

# %% [markdown]
# ### By week
#
# Each week contains the decisions made in it, whenever their outcomes came. A line has a gap where its version made no
# decisions.

# %%
report.plot()

# %% [markdown]
# In the demo, version `2026-07-20` drops far below the others for four weeks. Then the version before it takes over
# again.
#
# The next cell finds the version whose interval ends lowest, and whether the report marks it. The report marks no
# version with fewer than 20 terminal outcomes.

# %%
versions = report.frame.filter(pl.col("part") == "version").sort("high")
worst = versions["name"][0]
called = {version["policy_version"]: version["below_others"] for version in report.to_dict()["versions"]}
print("the version whose interval ends lowest:", worst)
print("below the others:", called[worst])

# %% [markdown]
# ### The change in its rulebook
#
# The lake contains every rulebook that made decisions. We compare the marked version with the version used before it.

# %%
rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()
order = rulebooks["policy_version"].to_list()
before = order[max(order.index(worst) - 1, 0)]
bodies = {version: json.loads(body) for version, body in rulebooks.select("policy_version", "body").iter_rows()}
texts = [json.dumps(bodies[version], indent=1).splitlines() for version in (before, worst)]
print("\n".join(difflib.unified_diff(*texts, before, worst, lineterm="", n=3)))

# %% [markdown]
# In the demo, the new version allows discounts up to 30 percent instead of 15. A margin of 8 percent is enough, instead
# of 15. So it should approve more.

# %%
cases = snapshot.cases(POLICY)
verdicts = cases.group_by("policy_version", pl.col("verdict").cast(pl.String)).len("decisions").collect()
yes = verdicts.group_by("policy_version").agg(
    share=pl.col("decisions").filter(pl.col("verdict") == "yes").sum() / pl.col("decisions").sum()
)
least, most = (yes.sort("share", "policy_version", descending=down).row(0, named=True) for down in (False, True))
VERDICTS = alt.Scale(domain=["yes", "review", "no"], range=[COLOURS[verdict] for verdict in ("yes", "review", "no")])
alt.Chart(verdicts).mark_bar().encode(
    x=alt.X("decisions:Q", stack="normalize", title="Share of the version's decisions", axis=alt.Axis(format="%")),
    y=alt.Y("policy_version:N", title="Policy version"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
    order=alt.Order("rank:Q"),
).transform_calculate(rank="indexof(['yes', 'review', 'no'], datum.verdict)").properties(
    title=alt.Title(
        f"Version {most['policy_version']} of {POLICY} said yes to {most['share']:.0%}, {least['policy_version']} to "
        f"{least['share']:.0%}",
        anchor="start",
    ),
    width=520,
    height=alt.Step(30),
)

# %% [markdown]
# It does. It approves decisions that the other versions hold or block. The notebook `counterfactuals` shows that most
# of the failures are among exactly these decisions.
#
# ## What does blocking hide?
#
# The success rate covers only actions that were let through and reported. Nobody can see the result of a blocked
# action. **Bounds** make no assumption about it. If every action had been let through, at least the green share would
# have succeeded, and at most everything except the vermilion share.

# %%
PARTS = {
    "succeeded": COLOURS["succeeded"],
    "other result": COLOURS["failed"],
    "no result yet": "#cccccc",
    "not let through": "#eeeeee",
}
bars, ends, spans = [], [], {}
for version in order:
    bounds = effectiveness(snapshot, POLICY, policy_version=version).to_dict()["bounds"]
    counts = [
        bounds["succeeded"],
        bounds["unknown"],
        bounds["unobservable"],
        bounds["observed"] - bounds["succeeded"],
    ]
    names = ["succeeded", "no result yet", "not let through", "other result"]
    bars += [
        {"version": version, "part": part, "decisions": count, "rank": rank}
        for rank, (part, count) in enumerate(zip(names, counts, strict=True))
    ]
    ends += [{"version": version, "end": bounds[end]} for end in ("low", "high")]
    spans[version] = (bounds["low"] or 0, bounds["high"] or 0)
widest = max(spans, key=lambda version: spans[version][1] - spans[version][0])

stacked = (
    alt.Chart(pl.DataFrame(bars))
    .mark_bar()
    .encode(
        x=alt.X("decisions:Q", stack="normalize", title="Share of the version's decisions", axis=alt.Axis(format="%")),
        y=alt.Y("version:N", title="Policy version"),
        color=alt.Color("part:N", title="Result", scale=alt.Scale(domain=[*PARTS], range=[*PARTS.values()])),
        order="rank:Q",
    )
)
ticks = alt.Chart(pl.DataFrame(ends)).mark_tick(thickness=3, size=28, color="black").encode(x="end:Q", y="version:N")
(stacked + ticks).properties(
    title=alt.Title(
        f"Least is known about version {widest}: its success rate is {spans[widest][0]:.0%} to {spans[widest][1]:.0%}",
        subtitle="Black marks: the lowest and highest success rate if every action had been let through.",
        anchor="start",
    ),
    width=520,
    height=alt.Step(34),
)

# %% [markdown]
# In the demo, the version with the worst rate has the narrowest bounds: it blocked little, so we know much about it.
# Wide bounds are not a fault. They are the price of blocking.
#
# ## How late do outcomes come?
#
# **Terminal coverage** is the share of decisions with a terminal outcome. For approved decisions, it should be high and
# steady. It falls at the end, because some results are still to come. It never reaches 1, because some results are
# never reported.
#
# The next cell computes the Wilson interval of any share.


# %%
def wilson(successes: pl.Expr, trials: pl.Expr, z: float = 1.959964) -> list[pl.Expr]:
    """A share with its 95% Wilson interval, as three columns."""
    rate = successes / trials
    middle = (rate + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z * (rate * (1 - rate) / trials + z**2 / (4 * trials**2)).sqrt() / (1 + z**2 / trials)
    return [rate.alias("rate"), (middle - half).alias("low"), (middle + half).alias("high")]


# %%
approved = (
    snapshot.binding()
    .cases()
    .filter(pl.col("verdict") == "yes")
    .with_columns(
        terminal=pl.col("outcome_status").is_in(["succeeded", "partial", "failed", "reverted"]).fill_null(False)
    )
)
coverage = (
    approved.filter(pl.col("policy_id") == POLICY)
    .group_by("week")
    .agg(decisions=pl.len(), terminal=pl.col("terminal").sum())
    .with_columns(*wilson(pl.col("terminal"), pl.col("decisions")))
    .sort("week")
    .collect()
)
recent = coverage.tail(4)
shares = [weeks["terminal"].sum() / max(weeks["decisions"].sum(), 1) for weeks in (coverage, recent)]
base = alt.Chart(coverage).encode(x=alt.X("week:T", title="Week of the decision (from Monday, UTC)"))
band = base.mark_area(opacity=0.25, color="#0072b2").encode(
    y=alt.Y(
        "low:Q",
        title="Terminal coverage (share of approved)",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, 1]),
    ),
    y2="high:Q",
)
line = base.mark_line(strokeWidth=2, color="#0072b2", point={"color": "#0072b2", "size": 45}).encode(y="rate:Q")
(band + line).properties(
    title=alt.Title(
        f"{shares[0]:.0%} of approved decisions of {POLICY} have a result, {shares[1]:.0%} in the last four weeks",
        subtitle=f"In {SCOPE}. The band is the 95% Wilson interval.",
        anchor="start",
    ),
    width=640,
    height=260,
)

# %% [markdown]
# How long does a result take? The chart shows the share of results that arrived within a number of days. It counts only
# results that did arrive, so real delays are somewhat longer.

# %%
delays = (
    approved.filter("terminal")
    .select("policy_id", days=(pl.col("outcome_reported_at") - pl.col("created_at")).dt.total_minutes() / 1440)
    .sort("policy_id", "days")
    .with_columns(share=(pl.int_range(1, pl.len() + 1) / pl.len()).over("policy_id"))
    # A point for each percent is as good as all.
    .with_columns(percent=(pl.col("share") * 100).floor())
    .unique(["policy_id", "percent"], keep="first", maintain_order=True)
    .collect()
)
halves = delays.filter(pl.col("share") >= 0.5).group_by("policy_id").agg(pl.col("days").min()).sort("days", "policy_id")
slowest = halves.tail(1).to_dicts()
POLICIES = alt.Color("policy_id:N", title="Policy", scale=alt.Scale(range=list(NAMES)))
DASHES = alt.StrokeDash("policy_id:N", title="Policy")
alt.Chart(delays).mark_line(strokeWidth=2, interpolate="step-after", clip=True).encode(
    x=alt.X("days:Q", title="Days from the decision to its latest result", scale=alt.Scale(domain=[0, 28])),
    y=alt.Y("share:Q", title="Share of the results", axis=alt.Axis(format="%")),
    color=POLICIES,
    strokeDash=DASHES,
).properties(
    title=alt.Title(
        f"Half of the results of {slowest[0]['policy_id']} take more than {slowest[0]['days']:.1f} days"
        if slowest
        else "No results yet",
        subtitle=f"Policies of {SCOPE}.",
        anchor="start",
    ),
    width=640,
    height=260,
)

# %% [markdown]
# So the last one or two weeks of any report are provisional. If results come slowly, a bad rollout becomes visible a
# week or more after its start.
#
# ## Is a bad week the fault of its version?
#
# Now the refunds of the online shop `lumen-retail`. With your own scope, this part repeats your policy.

# %%
SHOP, REFUNDS = "lumen-retail", "refund_policy"
if SCOPE != "harbor-supply" or SHOP not in lake.scopes:
    SHOP, REFUNDS = SCOPE, POLICY

shop = lake.scope(SHOP)
refunds = effectiveness(shop, REFUNDS)
refunds.plot()

# %% [markdown]
# In the demo, a single week is bad, and the same version does well after it. The plain rate of the version is low
# because of that week. The next cell compares each version with and without the week whose interval ends lowest.


# %%
weeks = refunds.weekly.with_columns(terminal=pl.sum_horizontal("succeeded", "partial", "failed", "reverted"))
odd_week = weeks.sort(pl.col("terminal") == 0, "high")["week"][0]
with_and_without = pl.concat(
    [
        part.group_by("policy_version")
        .agg(pl.sum("succeeded", "terminal"))
        .with_columns(*wilson(pl.col("succeeded"), pl.col("terminal")), pl.lit(name).alias("weeks"))
        for name, part in (("all weeks", weeks), ("without it", weeks.filter(pl.col("week") != odd_week)))
    ]
).sort("policy_version", "weeks")
print("the week that ends lowest begins on", odd_week)
with_and_without

# %% [markdown]
# In the demo, the difference disappears without that week. The report agrees: it does not mark the version, because in
# cases with like facts the version does as well as the others.
#
# ### When did the bad week become visible?
#
# The chain keeps every outcome with its date. So we can ask what was known on each day: which decisions of that week
# had a terminal outcome by then, and how many had succeeded?

# %%
of_week = shop.cases(REFUNDS).filter(pl.col("week") == odd_week).select("decision_id")
reported = (
    shop.table("outcomes")
    .join(of_week, on="decision_id", how="semi")
    .select("decision_id", "position", "outcome_status", on=pl.col("reported_at").dt.date())
    .sort("position")
    .collect()
)
known = []
for days in range(29):
    day = odd_week + timedelta(days=days)
    latest = reported.filter(pl.col("on") <= day).group_by("decision_id").agg(pl.col("outcome_status").last())
    counts = latest["outcome_status"].cast(pl.String).value_counts()
    so_far = dict(counts.iter_rows())
    terminal = sum(so_far.get(status, 0) for status in ("succeeded", "partial", "failed", "reverted"))
    known.append({"day": day, "succeeded": so_far.get("succeeded", 0), "terminal": terminal})
known = pl.DataFrame(known).filter(pl.col("terminal") > 0)
known = known.with_columns(*wilson(pl.col("succeeded"), pl.col("terminal")))

usual = weeks.filter(pl.col("week") != odd_week).select(pl.sum("succeeded", "terminal"))
usual = usual.filter(pl.col("terminal") > 0).select(*wilson(pl.col("succeeded"), pl.col("terminal")))
base = alt.Chart(known).encode(x=alt.X("day:T", title="Day (UTC)", axis=alt.Axis(format="%d %b")))
band = base.mark_area(opacity=0.25, color="#0072b2").encode(
    y=alt.Y("low:Q", title="Success rate so far", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
    y2="high:Q",
)
line = base.mark_line(strokeWidth=2, color="#0072b2", point={"color": "#0072b2", "size": 45}).encode(y="rate:Q")
rest = alt.Chart(usual).mark_rule(strokeDash=[5, 4], color="#404040", strokeWidth=2).encode(y="low:Q")
told = (
    alt.Chart(usual)
    .mark_text(align="right", baseline="bottom", dy=-4, color="#404040")
    .encode(x=alt.value(636), y="low:Q", text=alt.value("all other weeks, lower end"))
)
(band + line + rest + told).properties(
    title=alt.Title(
        f"{known['rate'][-1] if known.height else 0:.0%} of cases from the week of {odd_week:%d %B %Y} succeeded",
        subtitle=f"{REFUNDS} in {SHOP}, with the outcomes known on each day. The band is the 95% Wilson interval.",
        anchor="start",
    ),
    width=640,
    height=280,
)

# %%
shown = known.filter(pl.col("high") < (usual["low"][0] if usual.height else 0))["day"]
print("clearly below all other weeks:", f"from {shown[0]} on" if shown.len() else "on no day of the four weeks")

# %% [markdown]
# In the first days, outcomes gave no sign. When they did, the refunds had been paid.
#
# ### Signs without outcomes
#
# The *number* of decisions shows on the day itself, without any outcome. The effectiveness report does not use it; the
# anomaly report does.

# %%
window = pl.col("created_at").dt.date().is_between(odd_week - timedelta(weeks=3), odd_week + timedelta(weeks=3))
per_day = (
    shop.cases(REFUNDS)
    .filter(window)
    .group_by(pl.col("created_at").dt.date().alias("day"), pl.col("verdict").cast(pl.String))
    .len("decisions")
    .collect()
)
totals = per_day.group_by("day").agg(pl.col("decisions").sum()).sort("decisions", "day").to_dicts()
peak, usual_day = totals[-1], totals[len(totals) // 2]
alt.Chart(per_day).mark_bar().encode(
    x=alt.X("day:T", title="Day of the decision (UTC)", axis=alt.Axis(format="%d %b")),
    y=alt.Y("decisions:Q", title="Decisions per day"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
).properties(
    title=alt.Title(
        f"{peak['decisions']} decisions on {peak['day']:%d %B}, {usual_day['decisions']} on a usual day",
        subtitle=f"{REFUNDS} in {SHOP}.",
        anchor="start",
    ),
    width=640,
    height=240,
)

# %% [markdown]
# Which requests were they? Only the facts can tell: here, the amount of each approved refund. The cell uses the first
# numeric fact of the rulebook. You can choose another fact.

# %%
rulebook = shop.table("rulebooks").filter(pl.col("policy_id") == REFUNDS).sort("position").collect()["body"][-1]
declared = json.loads(rulebook)["input_schema"]["properties"]
numbers = [fact for fact, told in declared.items() if told.get("type") in ("number", "integer")]
FACT = [*numbers, *declared, "amount"][0]
FACT

# %%
values = shop.facts([FACT], REFUNDS).select("position", value=f"{FACT}:number")
points = (
    shop.cases(REFUNDS)
    .filter(window, pl.col("verdict") == "yes")
    .join(values, on="position")
    .select(
        # Without the zone, which charts would turn into that of the reader.
        pl.col("created_at").dt.replace_time_zone(None),
        "value",
        result=pl.when(pl.col("outcome_status") == "succeeded")
        .then(pl.lit("succeeded"))
        .when(pl.col("outcome_status").is_in(["failed", "reverted"]))
        .then(pl.lit("failed or reverted"))
        .otherwise(pl.lit("partial, open, or not reported")),
    )
    .collect()
)
points = points if points.height <= 4000 else points.sample(4000, seed=1)
RESULTS = ["succeeded", "failed or reverted", "partial, open, or not reported"]
middles = [points.filter(pl.col("result") == result)["value"].median() for result in RESULTS[:2]]
alt.Chart(points).mark_point(filled=True, opacity=0.7, size=40).encode(
    x=alt.X("created_at:T", title="Time of the decision (UTC)", axis=alt.Axis(format="%d %b")),
    y=alt.Y("value:Q", title=described(FACT)),
    color=alt.Color(
        "result:N",
        title="Result",
        scale=alt.Scale(domain=RESULTS, range=[COLOURS[result] for result in ("succeeded", "failed", "unreported")]),
    ),
    shape=alt.Shape(
        "result:N", title="Result", scale=alt.Scale(domain=RESULTS, range=["circle", "cross", "triangle-up"])
    ),
).properties(
    title=alt.Title(
        f"The median {FACT} is {middles[0] or 0:.4g} after success and {middles[1] or 0:.4g} after failure",
        subtitle=f"Approved decisions of {REFUNDS} in {SHOP}.",
        anchor="start",
    ),
    width=640,
    height=300,
)

# %% [markdown]
# In the demo, the bad refunds lie slightly below 250, the amount from which a person must review a refund. This is
# fraud, and not the fault of a version.
#
# Effectiveness shows *that* a week went wrong, some days later. It does not show which decisions have something in
# common, or whether the rulebook or the requests were the cause. The notebook `anomaly_investigation` continues here.
#
# ## What to remember
#
# - Compare versions and weeks, not only policies.
# - Read the interval, not the dot. Among many versions, some look worse by chance.
# - Versions decided different cases. Nothing was assigned at random, so a version need not be the cause of a
#   difference.
# - The last weeks are provisional, and the results of blocked actions stay unknown.
