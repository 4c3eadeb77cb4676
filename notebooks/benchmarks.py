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
# A success rate of 90 percent: is that good? *Benchmarks* put a policy beside the same policy in other scopes of the
# service, whose operators agreed to that. They tell percentiles of rates that are rounded before anybody sees them,
# and nothing of any one scope.
#
# The data is the demo ledger with a dozen small companies, as `make demo` makes it. What the text says of numbers
# holds for that; another seed, or a demo without `--peers`, tells less, or nothing.

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
# ## What is looked at
#
# A *scope* is a tenant: here, one company each. The *lake* is the ledger as Parquet files, and holds what was frozen
# for benchmarks. Put your own here; all that follows takes these names.

# %% tags=["parameters"]
SCOPE = "lumen-retail"
POLICY = "refund_policy"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)
snapshot = lake.scope(SCOPE)

# %% [markdown]
# ## Beside the others
#
# Once a month the service *freezes* what is compared: the decisions of the month before last, each by what came of it
# until the month began. Every decision has had a month and more to come to its end, and counts in one freeze only.

# %%
report = benchmarks(snapshot, POLICY)
report

# %% [markdown]
# The diamond is the company's own rate. The bar holds the middle half of the other companies, the tick is the one in
# the middle. Where nothing is told of others, the chart says why.

# %%
report.plot()

# %% [markdown]
# The company's own rates are exact, those of others are rounded to 0.05. So a difference of less than that says
# nothing, and the recommendation is no more than a pointer: `above_cohort` and `below_cohort` are outside of the
# middle half.

# %%
report.frame

# %% [markdown]
# ## Not one number but three
#
# A success rate alone can be bought: who approves only what cannot fail has a high one. So three rates are told, and
# no two of them are bound to each other.
#
# - **success rate**: of what has a result, how much succeeded;
# - **approval rate**: of what was asked, how much was approved;
# - **terminal coverage**: of what was asked, how much has a result.
#
# Few approvals with high success: a careful policy, or a timid one. High success with little coverage: the failures
# may not have been reported yet. Side by side for all policies of the company:

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
# Of some policies nothing is told: too few companies use them, or too few of their decisions have a result. That is
# the rule and no fault. A group of four would give away too much of each.
#
# ## Asking for more company
#
# A caller can ask for larger cohorts, never for smaller ones. Asked too much, the answer says that it is withheld,
# and why. The numbers of scopes and decisions are told in steps of 1, 2 and 5, so that no asking finds out whether
# one company more or less takes part.

# %%
asked = []
for scopes in (5, 10, 20):
    across = benchmarks(snapshot, POLICY, min_cohort_scopes=scopes).to_dict()["cross_customer"]
    asked.append({"min_cohort_scopes": scopes, "status": across["status"], "why": across["explanation"] or "-"})
pl.DataFrame(asked)

# %% [markdown]
# ## Where a difference comes from
#
# A benchmark says that, and never why. For the why there is only the own data: which version, which rule? A company
# that lies below the others looks at the rules whose decisions seldom succeed.

# %%
effectiveness(snapshot, POLICY).plot("rule")

# %% [markdown]
# ## Seen from the other side
#
# A lake holds every scope of its instance, so an operator can ask for each. No scope sees itself among the others.
# The spread of the small companies is what makes the bars above.

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
        title="Beside the others",
        scale=alt.Scale(range=list(NAMES)),
    ),
    size=alt.Size("terminal:Q", title="Terminal outcomes"),
).properties(
    title=alt.Title(
        f"{POLICY} succeeded in {spread['success_rate'].min() or 0:.0%} to {spread['success_rate'].max() or 0:.0%} of "
        f"cases in {spread.height} scopes",
        subtitle="One month of every scope, as each sees itself.",
        anchor="start",
    ),
    width=560,
    height=alt.Step(20),
)

# %% [markdown]
# ## What this cannot say
#
# - *Whether the cases are alike.* Other companies have other customers. A shop of lamps and a travel agency refund for
#   other reasons.
# - *What is within the rounding.* 0.85 stands for anything from 0.825 up to 0.875.
# - *Who.* Nobody can learn a company's rate nearer than the rounding, whatever joins, leaves or is asked for. How far
#   that goes, and what outside knowledge adds, stands in [benchmarks.md](../docs/benchmarks.md#the-guarantee).
