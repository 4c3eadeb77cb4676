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
# **Question.** How do you query thousands of decisions, and how do you know that the data is complete and unchanged?
#
# **Answer.** Read the *lake*: the entries of the ledger as Parquet files, in tables. Polars, DuckDB, and pandas can
# read it, and give the same numbers. A check recomputes the hashes of every row and compares them with the chain.
#
# **How.** We look at the tables, run the same kind of query in three tools, read facts, and verify the files.

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
# ## Choose the data
#
# Some cells read one *scope* (a tenant) and one policy. To read your own data, change the names in this cell.

# %% tags=["parameters"]
SCOPE = "harbor-supply"
POLICY = "pricing_exception"
LAKE = os.environ.get("GATE_LAKE", "../var-demo/lake")

# %%
lake = open_lake(LAKE)

# %% [markdown]
# ## What is in the lake?
#
# Each scope has its own chain, and a **manifest** that lists its files. Read only files that the manifest lists. Its
# **watermark** is a position in the chain: the files contain every entry up to it, and no later entry.

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
# `open_lake` reads only the manifests. Your snapshot does not change while the service continues to export. Open the
# lake again to see more.
#
# *Left out* counts the fields that the operator marked as personal. They are empty in the lake.
#
# ## Which tables are there?
#
# There is one table for each type of entry, and four more:
#
# - `cases`: one row per decision, with the latest reports about it;
# - `metrics`: the numbers of its latest outcome;
# - `facts`: the facts that it was decided from;
# - `rulebooks`: the rulebooks that made decisions.

# %%
pl.DataFrame(
    [
        {"table": name, "columns": len(columns), "rows": lake.table(name).select(pl.len()).collect().item()}
        for name, columns in TABLES.items()
    ]
)

# %% [markdown]
# Most questions are about `cases`. Its columns:

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
# A table is a lazy frame. Polars reads nothing until `collect`, and then only the columns and row groups that the query
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
most = by_month.group_by("month").agg(pl.col("decisions").sum()).sort("decisions", "month").to_dicts()[-1]
VERDICTS = alt.Scale(domain=["yes", "review", "no"], range=[COLOURS[verdict] for verdict in ("yes", "review", "no")])
alt.Chart(by_month).mark_bar().encode(
    x=alt.X("yearmonth(month):O", title="Month of the decision (UTC)", axis=alt.Axis(format="%b %Y", labelAngle=-45)),
    y=alt.Y("decisions:Q", title="Decisions per month"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
).properties(
    title=alt.Title(
        f"{most['decisions']:,} of {by_month['decisions'].sum():,} decisions were made in {most['month']:%B %Y}",
        subtitle="All scopes, by month and verdict.",
        anchor="start",
    ),
    width=560,
    height=260,
)

# %% [markdown]
# The first and the last month are incomplete, and the small companies joined late. The next query reads one scope, and
# only its files.

# %%
scope = lake.scope(SCOPE)
scope.cases(POLICY).group_by("policy_version", pl.col("verdict").cast(pl.String)).len().sort(
    "policy_version", "verdict"
).collect()

# %% [markdown]
# ## DuckDB
#
# `lake.sql` writes a query that returns the rows of a table. It lists the files of the manifest, so it never reads a
# half-written file.

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
# ### Do both tools agree?
#
# Here is the same count in both: decisions by policy and latest outcome.

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
print(f"Polars and DuckDB agree in all {len(of_duckdb)} groups.")

# %% [markdown]
# ### Numbers of outcomes
#
# `metrics` has one row for each number in the latest outcome of a decision. Positions are unique only within a scope,
# so join by scope and position. The query shows the policy's metrics by version and by month of the decision.

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
# Every tool that reads Parquet can read the list of files. pandas loads everything into memory, so list the columns
# that you need.

# %%
outcomes = pd.read_parquet(lake.files("outcomes"), columns=["outcome_status", "decision_position", "position"])
outcomes["outcome_status"].value_counts()

# %% [markdown]
# There are more outcomes than decisions with an outcome. For example, a `pending` can come first, or a success can be
# reverted later. The latest outcome in the chain counts, and `cases` contains it.
#
# ## How are facts stored?
#
# Facts are JSON: the same fact may be a number in one request and text in the next. A rulebook distinguishes the two,
# so the lake does too. Each field that a rulebook reads has four columns. The example is the first numeric fact of the
# policy.

# %%
rulebook = scope.table("rulebooks").filter(pl.col("policy_id") == POLICY).sort("position").collect()["body"][-1]
declared = json.loads(rulebook)["input_schema"]["properties"]
numbers = [fact for fact, told in declared.items() if told.get("type") in ("number", "integer")]
FACT = [*numbers, *declared, "amount"][0]

facts = scope.facts([FACT], POLICY)
facts.select(f"{FACT}:type", f"{FACT}:number", f"{FACT}:string", f"{FACT}:json").head(5).collect()

# %% [markdown]
# `type` is the JSON type, or `absent`, or `withheld` if the fact was omitted as personal. The value is in `number`,
# `string`, or `json`; arrays and objects are in `json`. Booleans are 1 and 0 in `number`.
#
# So `absent` differs from 0 and from the text `"0"`. How often was the fact missing?

# %%
facts.group_by(pl.col(f"{FACT}:type").cast(pl.String)).len("decisions").sort("decisions", descending=True).collect()

# %% [markdown]
# A field that no rulebook reads has no columns of its own. You find it in `inputs`, which contains all facts as JSON.

# %%
for inputs in facts.filter("known").select("inputs").head(1).collect()["inputs"]:
    print(json.dumps(json.loads(inputs), indent=1)[:600])

# %% [markdown]
# You can join facts and cases by `position`, the place of the decision in its chain. Positions are unique only within a
# scope.

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
common = drawn.group_by("value").agg(pl.col("decisions").sum()).sort("decisions", "value")["value"].to_list()[-1:]
alt.Chart(drawn).mark_bar().encode(
    x=alt.X("value:Q", bin="binned", title=described(FACT)),
    x2="end:Q",
    y=alt.Y("decisions:Q", title="Decisions"),
    color=alt.Color("verdict:N", title="Verdict", scale=VERDICTS),
).properties(
    title=alt.Title(
        f"The most frequent {FACT} is from {common[0]:g} to {common[0] + step:g}" if common else "No values",
        subtitle=f"{POLICY} in {SCOPE}, by verdict.",
        anchor="start",
    ),
    width=560,
    height=260,
)

# %% [markdown]
# ## Does the lake agree with the chain?
#
# Each row of an entry has its hash, its leaf, and the rolling root of the chain. `verify` reads every file, recomputes
# the leaves and roots, and compares the last root with the manifest. It detects every changed, missing, repeated, or
# moved row.

# %%
for name in lake.scopes:
    manifest = lake.scope(name).manifest
    found = [f"{finding.check}: {finding.detail}" for finding in verify(lake.directory, manifest)]
    assert not found, found
    print(f"{name:20} complete: {manifest.position:6,} entries, root {manifest.merkle_root[:16]}...")

# %% [markdown]
# In the demo, all scopes are complete. This check compares the lake with itself. `gate lake verify --against-ledger`
# also compares it with the ledger. A signed checkpoint that you kept proves that the root was not replaced.
