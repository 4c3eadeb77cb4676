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
# # What would this change do?
#
# Before a new version of a policy decides anything, it can decide the past: every decision once more, from its own
# facts, by the *candidate* and by the version that is *in force*. What differs between the two is the candidate's
# doing. That is a simulation. It stores nothing, and it authorizes nothing.
#
# `gate migrate dry-run` makes a report of the same figures, for a person who has to say yes. Here we look behind them.
# What the text says of numbers holds for `make demo` as it comes.

# %%
import json
import os
from pathlib import Path

import altair as alt
import polars as pl

from workbench import migration_dry_run, open_lake
from workbench.charts.colours import OF as COLOURS
from workbench.migration.asked import version_in_force, versions

alt.renderers.enable("png", ppi=120)
_ = pl.Config(tbl_rows=30, tbl_cols=12, tbl_hide_dataframe_shape=True, fmt_str_lengths=60, tbl_width_chars=160)

# %% [markdown]
# What is looked at: a scope, one of its policies, the lake that holds them, and the candidate. The candidate is a
# rulebook file, or a version by which the policy has decided; without one it is the version before the one in force, so
# that this is the dry run of going back. Put your own here; all that follows takes these names.

# %% tags=["parameters"]
SCOPE = "harbor-supply"
POLICY = "pricing_exception"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")
CANDIDATE = None

# %%
snapshot = open_lake(LAKE).scope(SCOPE)
order = versions(snapshot, POLICY)
active = version_in_force(snapshot, POLICY)
chosen = CANDIDATE or order[max(order.index(active) - 1, 0)]
candidate = chosen if chosen in order else Path(chosen)
print("versions that have decided:", ", ".join(order))
print("in force, as far as the lake has come:", active, " candidate:", candidate)

# %% [markdown]
# ## The short answer

# %%
run = migration_dry_run(snapshot, POLICY, candidate, base=active)
print(*run.lines, sep="\n")

# %% [markdown]
# ## Which verdict becomes which
#
# By rows: what the version in force decides of the same facts. By columns: what the candidate would. Most decisions of
# the past were made by earlier versions; what *these* decided otherwise is no change that the candidate brings, and is
# told apart.

# %%
run.plot()

# %%
earlier = pl.DataFrame(run.body["earlier"], schema={"policy_version": pl.String, "decisions": pl.Int64, "of": pl.Int64})
earlier.rename({"decisions": "decided otherwise than now", "of": "of all"})

# %% [markdown]
# ## When
#
# A candidate that changes much in some weeks and nothing in others reacts to something that was special about them.

# %%
run.plot("weeks")

# %% [markdown]
# ## By which rules, and what came of it
#
# A *transition* is the rule that decides now, and the one that would. Each has the outcomes of its decisions **as they
# were made**: good ones that would be lost, and bad ones that would be spared.

# %%
TEXTS = ("rule", "verdict", "then_rule", "then_verdict")
KNOWN = ("succeeded", "partial", "failed", "reverted", "pending", "review", "unreported")
moved = pl.DataFrame(
    [
        {**{name: row[name] for name in (*TEXTS, "decisions")}, **{name: row["outcomes"][name] for name in KNOWN}}
        for row in run.body["transitions"]
    ],
    schema=dict.fromkeys(TEXTS, pl.String) | dict.fromkeys(("decisions", *KNOWN), pl.Int64),
)
moved

# %% [markdown]
# Each sentence about outcomes has its interval, and the last one says what nobody can know.

# %%
outcomes = run.body["outcomes"]
print(*(of["sentence"] for of in outcomes.values() if isinstance(of, dict)), outcomes["unknowable"], sep="\n")

# %% [markdown]
# ## For all facts, not only for those of the past
#
# The exact difference of both rulebooks is a list of regions: facts that the one decides otherwise than the other. Some
# have no decision yet. The most dangerous come first: what is refused now, and would be approved.

# %%
traffic = {of["region"]: of["decisions"] for of in run.body["regions"]}
regions = [] if run.difference is None else run.difference.to_dict()["regions"]
for number, region in enumerate(regions[:8]):
    print(f"{region['severity']}: {region['from']['decision']} becomes {region['to']['decision']}")
    print(f"  where {region['condition']}")
    print(f"  {traffic[number]:,} past decisions; for example {json.dumps(region['witness'])}")

# %% [markdown]
# ## The decisions behind it
#
# `decisions` has every past decision, lazily, with what it was, what the version in force says and what the candidate
# would say. Join whatever tells you more.

# %%
changed = run.decisions().filter("verdict_changed").collect()
changed.select(
    "created_at", "base_verdict", "base_rule", "then_verdict", "then_rule", "outcome_status", "decision_id"
).tail(8)

# %% [markdown]
# Of those that would change, what came of them, month by month?

# %%
monthly = (
    changed.with_columns(
        month=pl.col("created_at").dt.truncate("1mo").dt.date(), result=pl.col("outcome_status").fill_null("unreported")
    )
    .filter(pl.col("result").is_in(KNOWN))
    .group_by("month", "result")
    .len("decisions")
    .sort("month", "result")
)
alt.Chart(monthly).mark_bar().encode(
    x=alt.X("yearmonth(month):O", title="Month of the decision"),
    y=alt.Y("decisions:Q", title="Decisions that would change"),
    color=alt.Color(
        "result:N", title="What came of them", scale=alt.Scale(domain=list(KNOWN), range=[COLOURS[of] for of in KNOWN])
    ),
).properties(title=alt.Title("What came of the decisions that would change", anchor="start"), width=560, height=220)

# %% [markdown]
# ## What this cannot know
#
# - **What would have come of another verdict.** An outcome belongs to the decision as it was made. What is blocked has
#   none.
# - **How people would have answered.** Under another version callers ask for other things.
# - **Facts that are gone.** What was erased, left out as personal, or made by another adapter is not decided anew. It
#   is counted, and never guessed.

# %%
pl.DataFrame(
    [(of["reason"], of["decisions"]) for of in run.body["not_redecided"]],
    schema={"not decided anew because": pl.String, "decisions": pl.Int64},
    orient="row",
)
