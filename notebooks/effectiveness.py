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
# A *decision gate* is asked before an action is taken: grant this discount, pay this refund? A **policy**, written
# down as a *rulebook* in numbered versions, answers **yes**, **no** or **review**. Later the caller may report an
# **outcome**: what came of the action.
#
# This notebook goes from all policies to the one version of one policy that did harm. It then shows what outcomes
# cannot say.
#
# The data is the demo ledger: a year of made-up decisions of four companies, with three incidents planted, and a few
# months of a dozen small ones to compare with. What the text says of numbers holds for `make demo` as it comes;
# another seed, or a smaller demo, may show less.
#
# Charts are drawn as pictures, so that they show everywhere and need no network.

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
# ## What is looked at
#
# A *scope* is a tenant: here, one company each. The *lake* is the ledger as Parquet files. Put your own here; all that
# follows takes these names.

# %% tags=["parameters"]
SCOPE = "harbor-supply"
POLICY = "pricing_exception"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)
print("scopes:", ", ".join(lake.scopes))

# %% [markdown]
# ## All policies
#
# An outcome is **terminal** when nothing more is expected: `succeeded`, `partial`, `failed` or `reverted`. The
# **success rate** is the share of `succeeded` among the terminal ones. Its interval is Wilson's, which behaves for
# small samples and rates near 1.

# %%
overview = roll_up(lake)
overview.plot()

# %% [markdown]
# The lowest lines are long: they belong to small companies, which decided little, so that little is known. Of the rest
# nothing stands out much over a whole year: an average drowns a bad month. So let each report judge its versions. A
# version is **below the others** when the whole of its interval lies below the interval of all other versions
# together.

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
# On the demo ledger two rows say `review_version`. Both deserve a look, and they end differently. First the pricing
# policy of the wholesaler.
#
# ## One policy

# %%
snapshot = lake.scope(SCOPE)
report = effectiveness(snapshot, POLICY)
report

# %% [markdown]
# ### Version by version

# %%
report.plot("version")

# %% [markdown]
# ### Week by week
#
# A week is that of the decision, not of the outcome. Where a version pauses, its line does.

# %%
report.plot()

# %% [markdown]
# On the demo ledger one version drops well below the rest for four weeks, and the version before it takes over again.
#
# Here is the version whose interval ends lowest, and whether the report calls it below the others. The report refuses
# to say so of fewer than 20 terminal outcomes.

# %%
versions = report.frame.filter(pl.col("part") == "version").sort("high")
worst = versions["name"][0]
called = {version["policy_version"]: version["below_others"] for version in report.to_dict()["versions"]}
print("ends lowest:", worst)
print("below the others:", called[worst])

# %% [markdown]
# ### What changed in its rulebook
#
# The lake holds every rulebook that decided. The one before is the one that was first used before it.

# %%
rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()
order = rulebooks["policy_version"].to_list()
before = order[max(order.index(worst) - 1, 0)]
bodies = {version: json.loads(body) for version, body in rulebooks.select("policy_version", "body").iter_rows()}
texts = [json.dumps(bodies[version], indent=1).splitlines() for version in (before, worst)]
print("\n".join(difflib.unified_diff(*texts, before, worst, lineterm="", n=3)))

# %% [markdown]
# In the demo: discounts up to 30 instead of 15 percent, and a margin of 8 instead of 15 percent is enough. So it
# should approve more.

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
# It does: what other versions hold or block, it lets through. Whether *those* are the ones that went wrong is a
# question for the notebook `counterfactuals`.
#
# ## What blocking hides
#
# The success rate speaks of what was let through and reported, but nobody ever sees what a blocked action would have
# led to. **Bounds** assume nothing about it: had every action been let through, at least the green share would have
# succeeded, and at most everything but the vermilion one.

# %%
PARTS = {
    "succeeded": COLOURS["succeeded"],
    "went otherwise": COLOURS["failed"],
    "no result yet": "#cccccc",
    "not let through": "#eeeeee",
}
bars, ends = [], []
for version in order:
    bounds = effectiveness(snapshot, POLICY, policy_version=version).to_dict()["bounds"]
    counts = [
        bounds["succeeded"],
        bounds["unknown"],
        bounds["unobservable"],
        bounds["observed"] - bounds["succeeded"],
    ]
    names = ["succeeded", "no result yet", "not let through", "went otherwise"]
    bars += [
        {"version": version, "part": part, "decisions": count, "rank": rank}
        for rank, (part, count) in enumerate(zip(names, counts, strict=True))
    ]
    ends += [{"version": version, "end": bounds[end]} for end in ("low", "high")]

stacked = (
    alt.Chart(pl.DataFrame(bars))
    .mark_bar()
    .encode(
        x=alt.X("decisions:Q", stack="normalize", title="Share of the version's decisions", axis=alt.Axis(format="%")),
        y=alt.Y("version:N", title="Policy version"),
        color=alt.Color(
            "part:N", title="Let through, and ...", scale=alt.Scale(domain=[*PARTS], range=[*PARTS.values()])
        ),
        order="rank:Q",
    )
)
ticks = alt.Chart(pl.DataFrame(ends)).mark_tick(thickness=3, size=28, color="black").encode(x="end:Q", y="version:N")
(stacked + ticks).properties(
    title=alt.Title(
        f"How much of {POLICY} is known at all",
        subtitle="Between the black marks lies what the success rate would be, had everything been let through.",
        anchor="start",
    ),
    width=520,
    height=alt.Step(34),
)

# %% [markdown]
# The version with the worst rate has the narrowest bounds: it blocked little, so much is known about it. Wide bounds
# are no fault. They are the price of blocking.
#
# ## Outcomes come late
#
# **Terminal coverage** is the share of decisions with a terminal outcome. For approved decisions it should be high
# and level. It falls towards the end, because results are still to come; it never reaches 1, because some are never
# reported.
#
# The interval is Wilson's again, for any share:


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
        f"How many approved decisions of {POLICY} have a result",
        subtitle=f"In {SCOPE}; the band is the 95% Wilson interval.",
        anchor="start",
    ),
    width=640,
    height=260,
)

# %% [markdown]
# How long does a result take? Here is the share of results that are in so many days after the decision. It counts
# only results that did come, so the truth is somewhat slower.

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
POLICIES = alt.Color("policy_id:N", title="Policy", scale=alt.Scale(range=list(NAMES)))
DASHES = alt.StrokeDash("policy_id:N", title="Policy")
alt.Chart(delays).mark_line(strokeWidth=2, interpolate="step-after", clip=True).encode(
    x=alt.X("days:Q", title="Days from the decision to its latest result", scale=alt.Scale(domain=[0, 28])),
    y=alt.Y("share:Q", title="Share of the results", axis=alt.Axis(format="%")),
    color=POLICIES,
    strokeDash=DASHES,
).properties(title=alt.Title(f"How late results come in {SCOPE}", anchor="start"), width=640, height=260)

# %% [markdown]
# So the latest one or two weeks of any report are provisional. A bad rollout of a policy with slow results shows a
# week or more after it began.
#
# ## A week that is not the version's fault
#
# Now the other row: refunds of the online shop. For a scope of your own, it is that scope and its policy once more.

# %%
SHOP, REFUNDS = "lumen-retail", "refund_policy"
if SCOPE != "harbor-supply" or SHOP not in lake.scopes:
    SHOP, REFUNDS = SCOPE, POLICY

shop = lake.scope(SHOP)
refunds = effectiveness(shop, REFUNDS)
refunds.plot()

# %% [markdown]
# On the demo ledger it is a single week, and the version goes on to do well after it. The report blames the version
# all the same, for that week is a large part of its results. Here is each version once more without the week that
# ends lowest.


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
# ### When does it show?
#
# The chain keeps every outcome with its date, so we can ask what was known on each day: of the decisions of that
# week, which had a terminal outcome by then, and how did they look?

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
base = alt.Chart(known).encode(
    x=alt.X("day:T", title="What was known on that day (UTC)", axis=alt.Axis(format="%d %b"))
)
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
        f"The week of {odd_week:%d %B %Y} as it came to be known",
        subtitle=f"{REFUNDS} in {SHOP}; the band is the 95% Wilson interval.",
        anchor="start",
    ),
    width=640,
    height=280,
)

# %%
shown = known.filter(pl.col("high") < (usual["low"][0] if usual.height else 0))["day"]
print("whole interval below all other weeks:", f"first on {shown[0]}" if shown.len() else "on no day of the four weeks")

# %% [markdown]
# Outcomes gave no hint in the first days. By the time they did, everything had been paid.
#
# ### What the outcomes do not show
#
# How *many* decisions there were shows on the day itself, without any outcome. Effectiveness does not look at that.

# %%
window = pl.col("created_at").dt.date().is_between(odd_week - timedelta(weeks=3), odd_week + timedelta(weeks=3))
per_day = (
    shop.cases(REFUNDS)
    .filter(window)
    .group_by(pl.col("created_at").dt.date().alias("day"), pl.col("verdict").cast(pl.String))
    .len("decisions")
    .collect()
)
alt.Chart(per_day).mark_bar().encode(
    x=alt.X("day:T", title="Day of the decision (UTC)", axis=alt.Axis(format="%d %b")),
    y=alt.Y("decisions:Q", title="Decisions per day"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
).properties(title=alt.Title(f"How often {REFUNDS} was asked in {SHOP}", anchor="start"), width=640, height=240)

# %% [markdown]
# And which ones they were, only the facts can tell: here the amount of each approved refund. Of the numbers that the
# rulebook declares it is the first by name; put another fact here.

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
        .otherwise(pl.lit("partial, open or not reported")),
    )
    .collect()
)
points = points if points.height <= 4000 else points.sample(4000, seed=1)
RESULTS = ["succeeded", "failed or reverted", "partial, open or not reported"]
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
    title=alt.Title(f"What {REFUNDS} approved in {SHOP}, by {FACT} and result", anchor="start"), width=640, height=300
)

# %% [markdown]
# On the demo ledger they crowd just below 250, from where on a person would have looked. This is fraud, and no
# version's fault.
#
# How far does effectiveness alone see? It finds *that* a week went wrong, days later. It cannot say which decisions,
# nor that they resemble one another, nor whether the rulebook was wrong or the requests were.
#
# ## What to remember
#
# - Compare versions and weeks, not only policies.
# - Read the interval, not the dot. Of many versions, some lie below the others by chance.
# - Versions met different cases. Nothing was assigned at random, so a difference need not be their doing.
# - The latest weeks are provisional, and what was blocked stays unknown.
