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
# # Reading the lake
#
# The ledger is made to be appended to and proven. For questions over thousands of decisions there is the *lake*: the
# same entries as Parquet files, table by table. This notebook shows what is in it, and how Polars, DuckDB and pandas
# read it.

# %%
import json
import os

import altair as alt
import duckdb
import pandas as pd
import polars as pl

from workbench import open_lake
from workbench.charts.colours import OF as COLOURS
from workbench.columns import TABLES
from workbench.engines.wording import described
from workbench.lake.verify import verify

alt.renderers.enable("png", ppi=120)
_ = pl.Config(tbl_rows=60, tbl_hide_dataframe_shape=True, fmt_str_lengths=170, tbl_width_chars=230)

# %% [markdown]
# The lake that is read, and a scope and a policy for what is about one of them. Put your own here.

# %% tags=["parameters"]
SCOPE = "harbor-supply"
POLICY = "pricing_exception"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)

# %% [markdown]
# ## Manifest and watermark
#
# Each *scope*, a tenant, has a chain of its own and a **manifest**, which is the only truth about its files. Its
# **watermark** is a position in the chain: every entry up to it is in the files, and none after it.

# %%
pl.DataFrame(
    [
        {
            "scope": name,
            "watermark": lake.scope(name).manifest.position,
            "cases resolved to": lake.scope(name).manifest.compacted,
            "files": len(lake.scope(name).manifest.files),
            "megabytes": round(sum(file.bytes for file in lake.scope(name).manifest.files) / 1e6, 1),
            "left out": len(lake.scope(name).manifest.personal),
        }
        for name in lake.scopes
    ]
)

# %% [markdown]
# `open_lake` read the manifests and nothing else. What you hold stays as it was, while the service goes on exporting.
# Open the lake again to see more.
#
# *Left out* counts the fields that the operator marked as personal. They are empty in the lake.
#
# ## Tables
#
# One table for each type of entry, and four more: `cases`, a row for each decision with the latest of what was
# reported about it; `metrics`, what its latest outcome measured; `facts`, what it was decided from; `rulebooks`, those
# that decided.

# %%
pl.DataFrame(
    [
        {"table": name, "columns": len(columns), "rows": lake.table(name).select(pl.len()).collect().item()}
        for name, columns in TABLES.items()
    ]
)

# %% [markdown]
# Most questions are about `cases`. Each column has a meaning:

# %%
pl.DataFrame(
    [
        {"column": name, "type": str(column.dtype).partition("(")[0], "meaning": column.meaning}
        for name, column in TABLES["cases"].items()
    ]
)

# %% [markdown]
# ## Polars
#
# A table is a lazy frame: nothing is read until `collect`, and then only the columns and row groups that the query
# needs.

# %%
by_month = (
    lake.table("cases")
    .group_by(pl.col("created_at").dt.truncate("1mo").dt.date().alias("month"), pl.col("verdict").cast(pl.String))
    .agg(decisions=pl.len(), reported=pl.col("outcome_status").is_not_null().sum())
    .sort("month", "verdict")
    .collect()
)
by_month.tail(6)

# %%
VERDICTS = alt.Scale(domain=["yes", "review", "no"], range=[COLOURS[verdict] for verdict in ("yes", "review", "no")])
alt.Chart(by_month).mark_bar().encode(
    x=alt.X("yearmonth(month):O", title="Month of the decision (UTC)", axis=alt.Axis(format="%b %Y", labelAngle=-45)),
    y=alt.Y("decisions:Q", title="Decisions per month"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
).properties(title=alt.Title("Decisions of all scopes, by month and verdict", anchor="start"), width=560, height=260)

# %% [markdown]
# The first and the last month are not whole, and the small companies came late. One scope alone, which reads its own
# files only:

# %%
scope = lake.scope(SCOPE)
scope.cases(POLICY).group_by("policy_version", pl.col("verdict").cast(pl.String)).len().sort(
    "policy_version", "verdict"
).collect()

# %% [markdown]
# ## DuckDB
#
# `lake.sql` writes a query that gives a table's rows. Its list of files is the manifest's, so that no half-written
# file slips in.

# %%
query = lake.sql("cases")
lines = query.replace(lake.directory.as_posix(), "<lake>").splitlines()
print("\n".join([*lines[:4], f"  ... {len(lines) - 5} more ...", lines[-1]] if len(lines) > 8 else lines))

# %%
duckdb.sql(f"""
    SELECT policy_id,
           count(*) AS decisions,
           round(avg(CAST(verdict = 'yes' AS DOUBLE)), 3) AS approved,
           count(outcome_status) AS reported
    FROM ({query})
    GROUP BY ALL
    ORDER BY decisions DESC
""").pl()

# %% [markdown]
# ### Both engines agree
#
# The same count twice: decisions by policy and latest outcome.

# %%
of_polars = (
    lake.table("cases")
    .group_by("policy_id", outcome=pl.col("outcome_status").cast(pl.String))
    .len("decisions")
    .collect()
)
of_duckdb = duckdb.sql(
    f"SELECT policy_id, CAST(outcome_status AS VARCHAR) AS outcome, count(*) AS decisions FROM ({query}) GROUP BY ALL"
).fetchall()
assert {row[:2]: row[2] for row in of_polars.rows()} == {row[:2]: row[2] for row in of_duckdb}
print(len(of_duckdb), "groups, the same in both")

# %% [markdown]
# ### What was measured
#
# `metrics` has a row for each number that a decision's latest outcome measured. Positions belong to a scope: join by
# both. What was measured after the policy's decisions, by version and by the month of the decision:

# %%
duckdb.sql(
    f"""
    SELECT policy_version,
           CAST(date_trunc('month', created_at AT TIME ZONE 'UTC') AS DATE) AS month,
           name,
           count(*) AS decisions,
           median(value) AS median
    FROM ({scope.sql("cases")}) JOIN ({scope.sql("metrics")}) USING (scope_id, position, policy_id, policy_version)
    WHERE policy_id = ?
    GROUP BY ALL
    ORDER BY policy_version, month, name
""",
    params=[POLICY],
).pl().tail(6)

# %% [markdown]
# ## pandas
#
# Whatever reads Parquet can take the list of files. pandas holds everything in memory, so name the columns that you
# need.

# %%
outcomes = pd.read_parquet(lake.files("outcomes"), columns=["outcome_status", "decision_position", "position"])
outcomes["outcome_status"].value_counts()

# %% [markdown]
# There are more outcomes than decisions that have one: a `pending` comes first, or a success is reverted later. The
# latest in the chain counts, and `cases` has it.
#
# ## Facts and their four columns
#
# Facts are JSON, and a fact may be a number in one request and text in the next. A rulebook tells the two apart, so
# the lake has to. Each field that a rulebook reads has four columns. Here, of the numbers that the policy's rulebook
# declares, the first by name:

# %%
rulebook = scope.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()["body"][-1]
declared = json.loads(rulebook)["input_schema"]["properties"]
numbers = [fact for fact, told in declared.items() if told.get("type") in ("number", "integer")]
FACT = [*numbers, *declared, "amount"][0]

facts = scope.facts([FACT], POLICY)
facts.select(f"{FACT}:type", f"{FACT}:number", f"{FACT}:string", f"{FACT}:json").head(5).collect()

# %% [markdown]
# `type` says which JSON type it is, or `absent`, or `withheld` where it was left out as personal. The value is in
# `number`, `string` or `json`, the last for arrays and objects. Booleans are 1 and 0 in `number`.
#
# So `absent` is not 0, and not the text `"0"`. How often was the fact missing?

# %%
facts.group_by(pl.col(f"{FACT}:type").cast(pl.String)).len("decisions").sort("decisions", descending=True).collect()

# %% [markdown]
# A field that no rulebook reads has no columns, but it is in `inputs`, which holds all facts as JSON.

# %%
for inputs in facts.filter("known").select("inputs").head(1).collect()["inputs"]:
    print(json.dumps(json.loads(inputs), indent=1)[:600])

# %% [markdown]
# Facts join with cases by `position`, the decision's place in its chain. Positions are those of a scope, so join
# within one.

# %%
drawn = (
    facts.select("position", value=f"{FACT}:number")
    .join(scope.cases(POLICY).select("position", pl.col("verdict").cast(pl.String)), on="position")
    .filter(pl.col("value").is_not_null())
    .collect()
)
width = ((drawn["value"].max() or 0) - (drawn["value"].min() or 0)) / 20
step = next(of * 10.0**power for power in range(-6, 16) for of in (1, 2, 5) if of * 10.0**power >= width)
drawn = (
    drawn.with_columns(value=(pl.col("value") // step * step))
    .group_by("value", "verdict")
    .len("decisions")
    .with_columns(end=pl.col("value") + step)
)
alt.Chart(drawn).mark_bar().encode(
    x=alt.X("value:Q", bin="binned", title=described(FACT)),
    x2="end:Q",
    y=alt.Y("decisions:Q", title="Decisions"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
).properties(
    title=alt.Title(f"{POLICY} in {SCOPE}, by {FACT} and verdict", anchor="start"),
    width=560,
    height=260,
)

# %% [markdown]
# ## Does the lake say what the chain says?
#
# Each row of an entry carries its hash, its leaf and the chain's rolling root. `verify` reads every file, computes
# leaves and roots anew, and holds the last one against the manifest. A row that was changed, left out, doubled or
# moved would show.

# %%
for name in lake.scopes:
    manifest = lake.scope(name).manifest
    found = [f"{finding.check}: {finding.detail}" for finding in verify(lake.directory, manifest)]
    assert not found, found
    print(f"{name:20} whole: {manifest.position:6,} entries, root {manifest.merkle_root[:16]}...")

# %% [markdown]
# This holds the lake against itself. `gate lake verify --against-ledger` holds it against the ledger as well, and a
# signed checkpoint that you kept proves that the root is the one that was.
