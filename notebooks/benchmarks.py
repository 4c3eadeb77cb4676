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
# # How do we compare?
#
# **Question.** A policy succeeds in 90 percent of its cases. Is that good, compared with other companies?
#
# **Answer for the demo.** The refunds of `lumen-retail` succeed about as often as those of the others: its rate lies in
# the middle half of at least ten other companies. For its other policies there is no comparison, because too few
# companies use them.
#
# **How.** *Benchmarks* compare a policy with the same policy in other scopes of the service. Only scopes whose
# operators agreed take part. The report shows rounded percentiles, and no rate of any single scope.
#
# The data is the demo ledger of `make demo`, with a dozen small companies. Without `--peers`, there is nothing to
# compare. With another seed, the numbers differ.

# %%
import os

import altair as alt
import polars as pl

from workbench import benchmarks, effectiveness, open_lake
from workbench.charts.colours import NAMES
from workbench.engines.wording import phrase

alt.renderers.enable("png", ppi=120)
_ = pl.Config(tbl_rows=30, tbl_hide_dataframe_shape=True, fmt_str_lengths=90, tbl_width_chars=140)

# %% [markdown]
# ## Choose the data
#
# A *scope* is a tenant: in the demo, a company. The *lake* is the ledger as Parquet files, with the frozen counts of
# the benchmarks. To read your own data, change the names in this cell.

# %% tags=["parameters"]
SCOPE = "lumen-retail"
POLICY = "refund_policy"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)
snapshot = lake.scope(SCOPE)

# %% [markdown]
# ## Are we above or below the others?
#
# Once a month, the service *freezes* the numbers to compare. It takes the decisions of the month before last, with the
# outcomes reported until the current month began. So every decision had at least a month to get a result, and counts in
# only one freeze.

# %%
report = benchmarks(snapshot, POLICY)
report

# %% [markdown]
# In the chart, the diamond is the rate of the company. The bar covers the middle half of the other companies, and the
# tick is their median. If there is no comparison, the chart says why.

# %%
report.plot()

# %% [markdown]
# The company's own rates are exact. Those of the others are rounded to 0.05, so smaller differences mean nothing. The
# recommendations `above_cohort` and `below_cohort` mean that the rate lies outside the middle half.

# %%
report.frame

# %% [markdown]
# ## Why three rates?
#
# A policy that approves only safe cases always has a high success rate. So the report has three independent rates:
#
# - **success rate**: the share of cases with a result that succeeded;
# - **approval rate**: the share of requests that were approved;
# - **terminal coverage**: the share of requests that have a result.
#
# Few approvals with high success mean a careful policy, or a timid one. If success is high and coverage is low,
# failures may still be unreported. The table shows all policies of the company.

# %%
own = sorted(snapshot.binding().cases().select("policy_id").unique().collect()["policy_id"])
rows = []
for policy_id in own:
    body = benchmarks(snapshot, policy_id).to_dict()
    across = body["cross_customer"]
    rows.append(
        {
            "policy": policy_id,
            **{name: body["your_metrics"][name] for name in ("success_rate", "approval_rate", "terminal_coverage")},
            "others": across["scopes_at_least"],
            "others' p50": None if across["percentiles"] is None else across["percentiles"]["success_rate"]["p50"],
            "recommendation": body["recommendation"],
            "withheld": across["reason"],
        }
    )
pl.DataFrame(rows, infer_schema_length=None)

# %% [markdown]
# In the demo, only the refunds can be compared. For the other policies, too few companies take part, or too few of
# their decisions have a result. This protects them: a comparison within a small group would reveal too much about each
# company.
#
# ## Can we ask for a larger group?
#
# You can ask for a larger group, but not for a smaller one. If the group is too small, the report withholds the
# comparison and says why. It gives the numbers of scopes and decisions only in steps of 1, 2, and 5. So nobody can find
# out whether one more company takes part.

# %%
asked = []
for scopes in (5, 10, 20):
    across = benchmarks(snapshot, POLICY, min_cohort_scopes=scopes).to_dict()["cross_customer"]
    asked.append({"min_cohort_scopes": scopes, "status": across["status"], "why": across["explanation"] or "-"})
pl.DataFrame(asked)

# %% [markdown]
# ## Where does a difference come from?
#
# A benchmark shows a difference, and not its reason. For the reason, use your own data: which version, and which rule?
# If your rate is low, look at the rules whose decisions seldom succeed.

# %%
effectiveness(snapshot, POLICY).plot("rule")

# %% [markdown]
# ## All scopes of the service
#
# A lake contains every scope of its instance, so an operator can run the report for each of them. No scope sees the
# rate of another. The chart shows how much the companies differ.

# %%
everyone = []
for name in lake.scopes:
    body = benchmarks(lake.scope(name), POLICY).to_dict()
    if body["your_metrics"]["success_rate"] is not None:
        everyone.append(
            {
                "scope": name,
                "success_rate": body["your_metrics"]["success_rate"],
                "terminal": body["your_metrics"]["terminal"],
                "recommendation": phrase(body["recommendation"]),
            }
        )
spread = pl.DataFrame(
    everyone,
    schema={"scope": pl.String, "success_rate": pl.Float64, "terminal": pl.Int64, "recommendation": pl.String},
).sort("success_rate", "scope")
alt.Chart(spread).mark_point(filled=True, size=90, opacity=1).encode(
    x=alt.X("success_rate:Q", title="Success rate", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False)),
    y=alt.Y("scope:N", title=None, sort=None, axis=alt.Axis(grid=True)),
    color=alt.Color(
        "recommendation:N",
        title="Compared with others",
        scale=alt.Scale(range=list(NAMES)),
    ),
    size=alt.Size("terminal:Q", title="Terminal outcomes"),
).properties(
    title=alt.Title(
        f"{POLICY} succeeded in {spread['success_rate'].min() or 0:.0%} to {spread['success_rate'].max() or 0:.0%} of "
        f"cases in {spread.height} scopes",
        subtitle="The frozen month, with each scope's own exact rate.",
        anchor="start",
    ),
    width=560,
    height=alt.Step(20),
)

# %% [markdown]
# ## What this cannot say
#
# - **Whether the cases are similar.** Other companies have other customers. A lamp shop and a travel agency refund for
#   different reasons.
# - **Differences within the rounding.** 0.85 means any value from 0.825 up to 0.875.
# - **Who takes part.** Nobody can learn the rate of a company more precisely than the rounding, even by joining,
#   leaving, or asking again. For the guarantee and its limits, see the [benchmark
#   formulas](../docs/reference/formulas/benchmarks.md).
