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
# # What would have been decided?
#
# **Question.** A version of a policy did harm. Would the version before it have prevented the harm?
#
# **Answer for the demo.** Yes, for the most part. The version before would have stopped about 40 percent of the
# decisions that `2026-07-20` approved. Only about one in five of these succeeded, and about nine in ten of the rest.
#
# **How.** The ledger keeps the facts of each decision, and every rulebook. So we can repeat past decisions under
# another version, or with other facts. This is a simulation: it stores nothing and authorizes nothing.
#
# The notebook `effectiveness` found the version. The numbers in the text are those of `make demo`.

# %%
import json
import os
from datetime import timedelta

import altair as alt
import polars as pl

from workbench import counterfactuals, effectiveness, open_lake
from workbench.charts.colours import OF as COLOURS
from workbench.engines.wording import described

alt.renderers.enable("png", ppi=120)
_ = pl.Config(tbl_rows=30, tbl_hide_dataframe_shape=True, fmt_str_lengths=60, tbl_width_chars=140)

# %% [markdown]
# ## Choose the data
#
# A *scope* is a tenant, with its policies. The *lake* contains its decisions. To read your own data, change the names
# in this cell.

# %% tags=["parameters"]
SCOPE = "harbor-supply"
POLICY = "pricing_exception"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)
snapshot = lake.scope(SCOPE)

# %% [markdown]
# ## The bad weeks
#
# We look for the version whose success rate has the lowest end of its interval, the version used before it, and the
# days on which it decided.

# %%
versions = effectiveness(snapshot, POLICY).frame.filter(pl.col("part") == "version").sort("high")
worst = versions["name"][0]

rulebooks = snapshot.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()
bodies = {version: json.loads(body) for version, body in rulebooks.select("policy_version", "body").iter_rows()}
order = [*bodies]
before = order[max(order.index(worst) - 1, 0)]

decided = snapshot.cases(POLICY).filter(pl.col("policy_version") == worst)
since, last = decided.select(first=pl.col("created_at").min(), last=pl.col("created_at").max()).collect().row(0)
until = last + timedelta(milliseconds=1)
print(f"Version {worst} decided from {since:%Y-%m-%d} to {last:%Y-%m-%d}. The version before it is {before}.")

# %% [markdown]
# ## The same requests under the version before
#
# We repeat every decision of those days with the other rulebook, from the same facts.

# %%
again = counterfactuals(snapshot, POLICY, rulebook=bodies[before], since=since, until=until)
again.plot()

# %% [markdown]
# Read the chart by rows. Each row is a verdict that was given, and shows the verdicts that the other version would
# give.

# %%
body = again.to_dict()
print("decisions:", body["decisions"], " repeated:", body["redecided"], " facts unknown:", body["unknown"])
print("changed:", body["changed"])
print("verdicts given:   ", body["verdicts"]["before"])
print("verdicts simulated:", body["verdicts"]["after"])

# %% [markdown]
# A quick check: each decision, repeated under its own rulebook with its own facts, must give the same result.

# %%
same = counterfactuals(snapshot, POLICY, since=since, until=until).to_dict()
assert same["changed"] == 0
print("changed under their own rulebook:", same["changed"])

# %% [markdown]
# ## What happened to the changed decisions?
#
# A *transition* is the pair of a given verdict and the verdict of the other version. The table shows the outcomes of
# the decisions **as they were made**.

# %%
again.frame.select(
    "verdict", "then_verdict", "rule", "then_rule", "decisions", "succeeded", "partial", "failed", "reverted"
)

# %% [markdown]
# Would the other version have kept the right approvals? The chart shows the success rate of each transition.


# %%
def wilson(successes: pl.Expr, trials: pl.Expr, z: float = 1.959964) -> list[pl.Expr]:
    """A share with its 95% Wilson interval, as three columns."""
    rate = successes / trials
    middle = (rate + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z * (rate * (1 - rate) / trials + z**2 / (4 * trials**2)).sqrt() / (1 + z**2 / trials)
    return [rate.alias("rate"), (middle - half).alias("low"), (middle + half).alias("high")]


paths = (
    again.frame.filter(pl.col("verdict") == "yes")
    .with_columns(terminal=pl.sum_horizontal("succeeded", "partial", "failed", "reverted"))
    .group_by("then_verdict")
    .agg(pl.sum("decisions", "succeeded", "terminal"))
    .filter(pl.col("terminal") > 0)
    .with_columns(
        *wilson(pl.col("succeeded"), pl.col("terminal")),
        path=pl.format("would be {}", "then_verdict"),
        told=pl.format("{} of {}", "succeeded", "terminal"),
    )
)
stopped, good, final = (
    paths.filter(pl.col("then_verdict") != "yes").select(pl.sum("decisions", "succeeded", "terminal")).row(0)
)
base = alt.Chart(paths).encode(
    y=alt.Y("path:N", title="Given yes,", sort=["would be yes", "would be review", "would be no"])
)
alt.layer(
    base.mark_rule(strokeWidth=3, color="#0072b2").encode(
        x=alt.X(
            "low:Q",
            title="Success rate (share of cases that succeeded)",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(domain=[0, 1]),
        ),
        x2="high:Q",
    ),
    base.mark_point(filled=True, size=110, opacity=1, color="#0072b2").encode(x="rate:Q"),
    base.mark_text(align="left").encode(x=alt.value(528), text="told:N"),
).properties(
    title=alt.Title(
        f"{before} would have stopped {stopped:,} approved decisions; {good / max(final, 1):.0%} of "
        f"those with a result succeeded",
        subtitle="Lines are 95% Wilson intervals. On the right: succeeded of terminal outcomes.",
        anchor="start",
    ),
    width=520,
    height=alt.Step(40),
)

# %% [markdown]
# In the demo, the answer is clear. Decisions that both versions approve did as well as in other weeks. Most decisions
# that only the new version approved went wrong. So the new limits caused the harm, not the month.
#
# ## Which decisions changed?
#
# `decisions` lists the changed decisions as a lazy frame. Here we join two numbers that the rulebooks test. Facts for
# which the two versions have different limits come first.


# %%
def tests(condition: dict) -> list[dict]:
    """Every test of a fact in a condition, however deep."""
    parts = [*condition.get("all", []), *condition.get("any", []), *([condition["not"]] if "not" in condition else [])]
    return [test for part in parts for test in tests(part)] + ([condition] if "field" in condition else [])


def limits(version: str) -> set[tuple[str, float]]:
    """The numbers that a version's rules hold facts against."""
    found = [test for rule in bodies[version]["rules"] for test in tests(rule["condition"])]
    compared = [test for test in found if test["operator"] in ("gt", "gte", "lt", "lte")]
    return {(test["field"], test["value"]) for test in compared if isinstance(test["value"], int | float)}


differing = sorted({fact for fact, _ in limits(before) ^ limits(worst)})
tested = sorted({fact for fact, _ in limits(before) | limits(worst)})
declared = bodies[worst]["input_schema"]["properties"]
ranked = [*dict.fromkeys([*differing, *tested, *declared, "discount_percent", "margin_percent"])]
ACROSS, UP = ranked[:2]
print("across:", ACROSS, " up:", UP)

# %%
facts = snapshot.facts([ACROSS, UP], POLICY).select("position", across=f"{ACROSS}:number", up=f"{UP}:number")
lost = again.decisions.filter(pl.col("verdict") == "yes", pl.col("then_verdict") != "yes").join(facts, on="position")
lost.sort("position").select(
    pl.col("created_at").dt.date().alias("day"),
    pl.col("across").alias(ACROSS),
    pl.col("up").alias(UP),
    "verdict",
    "then_verdict",
    "then_reason_code",
    "outcome_status",
).head(8).collect()

# %% [markdown]
# The next chart shows all approved decisions of those weeks by these two facts. If there are more than 4,000, it shows
# a random sample.

# %%
RESULTS = ["succeeded", "failed or reverted", "partial, open, or not reported"]
points = (
    decided.filter(pl.col("verdict") == "yes")
    .join(facts, on="position")
    .select(
        "across",
        "up",
        result=pl.when(pl.col("outcome_status") == "succeeded")
        .then(pl.lit(RESULTS[0]))
        .when(pl.col("outcome_status").is_in(["failed", "reverted"]))
        .then(pl.lit(RESULTS[1]))
        .otherwise(pl.lit(RESULTS[2])),
    )
    .collect()
)
failures = points.filter(pl.col("result") == RESULTS[1]).height
outside = lost.filter(pl.col("outcome_status").is_in(["failed", "reverted"])).collect().height
points = points if points.height <= 4000 else points.sample(4000, seed=1)

marks = pl.DataFrame(
    [
        {"version": version, "across" if fact == ACROSS else "up": limit}
        for version in (before, worst)
        for fact, limit in sorted(limits(version))
        if fact in (ACROSS, UP)
    ],
    schema={"version": pl.String, "across": pl.Float64, "up": pl.Float64},
)
styled = alt.Chart(marks).encode(
    strokeDash=alt.StrokeDash(
        "version:N", title="Limits in version", scale=alt.Scale(domain=[before, worst], range=[[6, 4], [1, 0]])
    )
)
dots = (
    alt.Chart(points)
    .mark_point(filled=True, opacity=0.75, size=45)
    .encode(
        x=alt.X("across:Q", title=described(ACROSS)),
        y=alt.Y("up:Q", title=described(UP)),
        color=alt.Color(
            "result:N",
            title="Result",
            scale=alt.Scale(
                domain=RESULTS, range=[COLOURS[result] for result in ("succeeded", "failed", "unreported")]
            ),
        ),
        shape=alt.Shape(
            "result:N", title="Result", scale=alt.Scale(domain=RESULTS, range=["circle", "cross", "triangle-up"])
        ),
    )
)
alt.layer(
    dots,
    styled.mark_rule(strokeWidth=1.5).transform_filter("isValid(datum.across)").encode(x="across:Q"),
    styled.mark_rule(strokeWidth=1.5).transform_filter("isValid(datum.up)").encode(y="up:Q"),
).properties(
    title=alt.Title(
        f"{before} would have stopped {outside:,} of the {failures:,} failures",
        subtitle=f"Decisions that {worst} approved, with the limits of both versions.",
        anchor="start",
    ),
    width=560,
    height=380,
)

# %% [markdown]
# In the demo, most failures lie to the right of the dashed limits or below them.
#
# ## What if the facts had been different?
#
# A *patch* changes the facts of every decision in a slice (RFC 7396: given values replace, null removes). Then each
# decision is repeated by its **own** rulebook. The example: the software maker `orbit-software` declares a change
# freeze for all actions of its agents in the last four weeks.
#
# With your own scope, this part uses your policy and the first true-or-false fact of its rulebook. You can write
# another patch.

# %%
AGENTS, ACTIONS, PATCH = "orbit-software", "agent_action_policy", {"change_freeze": True}
if SCOPE != "harbor-supply" or AGENTS not in lake.scopes:
    flags = [fact for fact, told in declared.items() if told.get("type") == "boolean"]
    AGENTS, ACTIONS, PATCH = SCOPE, POLICY, {flags[0]: True} if flags else {ACROSS: None}

agents = lake.scope(AGENTS)
end = agents.cases(ACTIONS).select(pl.col("created_at").max()).collect().item()
frozen = counterfactuals(agents, ACTIONS, patch=PATCH, since=end - timedelta(weeks=4))
frozen.plot()

# %% [markdown]
# Which rules stop the actions?

# %%
frozen.frame.filter("changed").select("verdict", "rule", "then_verdict", "then_rule", "decisions").head(10)

# %% [markdown]
# This is the cost of a freeze: the actions that it would stop. Its benefit is not in these numbers. We know the results
# of the actions as they were, but not how many of the stopped ones would have done harm.
#
# ## What this cannot know
#
# - **The result of another verdict.** An outcome belongs to the decision as it was made. If approved deals failed, then
#   blocking them would have avoided *these* failures. For blocked deals, no outcome was ever seen.
# - **The behavior of people.** Under another rulebook, callers send other requests. For example, sellers learn the
#   limit and ask for a little less.
# - **The answer of a reviewer.** *Review* is not *no*. A reviewer would have allowed some of these actions.
# - **Missing facts.** If facts were erased or omitted as personal, the decision counts as unknown, and is not in the
#   transitions.
# - **The future.** These are the requests of those weeks. Other weeks have other requests.
