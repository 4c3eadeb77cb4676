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
# The ledger keeps what each decision was made from, and every rulebook that decided. So past decisions can be made
# again: under another version, or with other facts. That is a simulation. It stores nothing, and it authorizes
# nothing.
#
# The notebook `effectiveness` found a version of a pricing policy that did harm. Here we ask what the version before
# it would have done with the same requests. What the text says of numbers holds for `make demo` as it comes.

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
# What is looked at: a scope, one of its policies, and the lake that holds them. Put your own here; all that follows
# takes these names.

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
# The version whose success rate has the interval that ends lowest, the version that was first used before it, and the
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
print(f"{worst} decided from {since:%Y-%m-%d} to {last:%Y-%m-%d}; before it there was {before}")

# %% [markdown]
# ## The same requests under the version before
#
# Every decision of those days once more, from its own facts, by the other rulebook.

# %%
again = counterfactuals(snapshot, POLICY, rulebook=bodies[before], since=since, until=until)
again.plot()

# %% [markdown]
# Read it by rows: of those that got *yes* in fact, how many would have got which verdict?

# %%
body = again.to_dict()
print("decisions:", body["decisions"], " decided again:", body["redecided"], " facts unknown:", body["unknown"])
print("would go another way:", body["changed"])
print("as they were:   ", body["verdicts"]["before"])
print("as they would be:", body["verdicts"]["after"])

# %% [markdown]
# A check that costs nothing: each decision once more under its own rulebook, with its own facts, must come out as it
# was.

# %%
same = counterfactuals(snapshot, POLICY, since=since, until=until).to_dict()
assert same["changed"] == 0
print("changed under their own rulebook:", same["changed"])

# %% [markdown]
# ## What came of those that would have gone another way
#
# A *transition* is what a decision was, and what it would be. Each has the outcomes of its decisions **as they were
# made**.

# %%
again.frame.select(
    "verdict", "then_verdict", "rule", "then_rule", "decisions", "succeeded", "partial", "failed", "reverted"
)

# %% [markdown]
# Of the approved ones, were the right ones kept? Here is the success rate of each transition.


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
base = alt.Chart(paths).encode(
    y=alt.Y("path:N", title="Was yes, and", sort=["would be yes", "would be review", "would be no"])
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
        f"What came of what {worst} approved, by what {before} would have said",
        subtitle="Lines are 95% Wilson intervals; on the right, succeeded of terminal.",
        anchor="start",
    ),
    width=520,
    height=alt.Step(40),
)

# %% [markdown]
# On the demo ledger the two parts come clearly apart: what both versions approve did as well as ever, and what only
# the later one approved went wrong for the most part. So the harm came with the new limits, and not with that month.
#
# ## The decisions behind a transition
#
# `decisions` has those that would have gone another way, lazily. Join whatever tells you more. Here: two of the numbers
# that the rulebooks test. Those come first for which the two versions have different limits.


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
# All that was approved in those weeks, on the plane of the two facts; of very much, a part that chance picks.

# %%
RESULTS = ["succeeded", "failed or reverted", "partial, open or not reported"]
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
        "version:N", title="Limits of", scale=alt.Scale(domain=[before, worst], range=[[6, 4], [1, 0]])
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
    title=alt.Title(f"What {worst} approved, with the limits of both versions", anchor="start"), width=560, height=380
)

# %% [markdown]
# Deals go wrong outside the dashed limits, to the right of them and below.
#
# ## Other facts: what if a change freeze had been declared?
#
# A *patch* is laid over the facts of every decision in a slice (RFC 7396: what it names is replaced, null removes).
# Each decision is then made again by its **own** rulebook. Here: the actions of software agents in the latest four
# weeks of the software maker, had all of them come under a change freeze. For a scope of your own it is that scope and
# its policy, and a fact that its rulebook declares as true or false; put another patch here.

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
# Which rules stop them?

# %%
frozen.frame.filter("changed").select("verdict", "rule", "then_verdict", "then_rule", "decisions").head(10)

# %% [markdown]
# So far the cost of a freeze, in actions that would wait. The benefit is not in these numbers: we do not know which
# of the stopped actions would have done harm, only what came of them as they were.
#
# ## What this cannot know
#
# - **What would have come of another verdict.** An outcome belongs to the decision as it was made. That approved
#   deals failed says that blocking them would have avoided *these* failures. Of what is blocked, nothing can be said:
#   no outcome was ever seen.
# - **How people would have answered.** Under another rulebook callers ask for other things. Sellers learn the limit,
#   and ask for a little less.
# - **What a reviewer would have said.** *Review* is not *no*. Some of those would have passed.
# - **Facts that are gone.** Where facts were erased, or left out as personal, a decision counts as unknown, and is
#   not in the transitions.
# - **The future.** These are the requests of those weeks. Other weeks bring others.
