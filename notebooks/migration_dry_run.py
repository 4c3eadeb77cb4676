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
# **Question.** A new version of a policy, the *candidate*, should replace the active version. What would it change?
#
# **Answer for the demo.** Here the candidate is the bad version `2026-07-20` of the pricing policy. It would newly
# approve more than a third of all past decisions. Of those with a known result, about four in ten did not succeed in
# full. So it should not be applied.
#
# **How.** We repeat every past decision from its own facts, by the candidate and by the active version. The difference
# between the two is the effect of the candidate. This is a simulation: it stores nothing and authorizes nothing.
#
# `gate migrate dry-run` writes a report with the same figures, for the person who must approve the change. This
# notebook shows the details. The numbers in the text are those of `make demo`.

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
# ## Choose the data
#
# A *scope* is a tenant, with its policies. The *lake* contains its decisions. The candidate is a rulebook file, or a
# version that has made decisions. By default it is the version before the active one, so the notebook shows a rollback.
# To read your own data, change the names in this cell.

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
print("active version in the lake:", active, " candidate:", candidate)

# %% [markdown]
# ## The short answer

# %%
run = migration_dry_run(snapshot, POLICY, candidate, base=active)
print(*run.lines, sep="\n")

# %% [markdown]
# ## Which verdicts change?
#
# Rows are the verdicts of the active version, and columns are those of the candidate, both from the same facts.
#
# Earlier versions made most of the past decisions. If *their* verdict differs from the active version, the candidate is
# not the reason. The table after the chart counts these decisions separately.

# %%
run.plot()

# %%
earlier = pl.DataFrame(run.body["earlier"], schema={"policy_version": pl.String, "decisions": pl.Int64, "of": pl.Int64})
earlier.rename({"decisions": "other verdict than active version", "of": "of all"})

# %% [markdown]
# ## When would it change them?
#
# If a candidate changes much in some weeks and nothing in others, then those weeks were special.

# %%
run.plot("weeks")

# %% [markdown]
# ## Which rules change them, and with which results?
#
# A *transition* is the rule that decides now, and the rule that would decide. Each one has the outcomes of its
# decisions **as they were made**: good results that would be lost, and bad results that would be avoided.

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
# Each sentence about outcomes has its interval. The last sentence states what nobody can know.

# %%
outcomes = run.body["outcomes"]
print(*(of["sentence"] for of in outcomes.values() if isinstance(of, dict)), outcomes["unknowable"], sep="\n")

# %% [markdown]
# ## What about facts that never occurred?
#
# The exact difference of both rulebooks is a list of regions: sets of facts for which the two decide differently. Some
# regions have no past decision yet. The most dangerous come first: requests that are refused now and would be approved.

# %%
traffic = {of["region"]: of["decisions"] for of in run.body["regions"]}
regions = [] if run.difference is None else run.difference.to_dict()["regions"]
for number, region in enumerate(regions[:8]):
    print(f"{region['severity']}: {region['from']['decision']} becomes {region['to']['decision']}")
    print(f"  where {region['condition']}")
    print(f"  {traffic[number]:,} past decisions; for example {json.dumps(region['witness'])}")

# %% [markdown]
# ## The decisions themselves
#
# `decisions` returns every past decision as a lazy frame, with its own verdict and the verdicts of both versions. You
# can join other tables to it.

# %%
changed = run.decisions().filter("verdict_changed").collect()
changed.select(
    "created_at", "base_verdict", "base_rule", "then_verdict", "then_rule", "outcome_status", "decision_id"
).tail(8)

# %% [markdown]
# What were the results of the decisions that would change, month by month?

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
    x=alt.X("yearmonth(month):O", title="Month of the decision", axis=alt.Axis(format="%b %Y", labelAngle=-45)),
    y=alt.Y("decisions:Q", title="Decisions that would change"),
    color=alt.Color(
        "result:N", title="Outcome", scale=alt.Scale(domain=list(KNOWN), range=[COLOURS[of] for of in KNOWN])
    ),
).properties(
    title=alt.Title(
        f"{changed['outcome_status'].is_not_null().sum():,} of {changed.height:,} changed decisions have an outcome",
        anchor="start",
    ),
    width=560,
    height=220,
)

# %% [markdown]
# ## What this cannot know
#
# - **The result of another verdict.** An outcome belongs to the decision as it was made. Blocked actions have none.
# - **The behavior of people.** Under another version, callers send other requests.
# - **Missing facts.** If facts were erased, omitted as personal, or made by another adapter, the decision is not
#   repeated. The next table counts these decisions, and never guesses their result.

# %%
pl.DataFrame(
    [(of["reason"], of["decisions"]) for of in run.body["not_redecided"]],
    schema={"reason for not repeating": pl.String, "decisions": pl.Int64},
    orient="row",
)
