"""docs/reference/lake.md and a page for each table of the lake, from the definitions of its columns."""

from __future__ import annotations

from typing import Final

import polars as pl

from docs.tools.markdown import table
from workbench.columns import BENCHMARKS, MEANINGS, TABLES, Table
from workbench.lake.reader import EVENT_DATES

SOURCE: Final = "workbench/columns.py"

NAMES: Final = {pl.String: "text", pl.Int64: "integer", pl.Float64: "number", pl.Boolean: "boolean", pl.Date: "date"}
"""What the pages call Polars types without parts."""

_INTRO: Final = """\
# Tables of the lake

This page lists the tables of the [lake](../glossary.md#lake), a copy of the ledger in Parquet files. Each table
has a page with its columns.

"""
_CONVENTIONS: Final = """
In all tables:

- Times are UTC with milliseconds.
- Hashes are SHA-256 in lower-case hex.
- Positions are those of the scope's chain. A position belongs to a scope: join tables on both `scope_id` and
  `position`.
- A column that takes any JSON value contains its JSON text.
- A value that the caller did not send is null.
- Columns marked `*` can be left out of the lake with the setting [`personal_fields`](settings.md#personal_fields).

## Facts in columns

`facts`, and only `facts`, has four more columns for each field that the deciding rulebooks declare or test. A file
omits those of the last three that are null in all of its rows.

"""
_CLOCK: Final = """
## Event times

On the clock `occurred`, each of these dates is the event time, or the recorded date if there is no event time. Callers
choose event times, and no signature covers them. `week` of `cases` follows `created_at`. An `executed_at` more than 5
minutes after its receipt was reported does not count.

"""
_FILES: Final = """
## Files

- The files of a scope are in `scope=<id>/month=<YYYY-MM>/`. The month is that of the row in UTC, and for `metrics` that
  of the report. Rows are sorted by policy, and those of `metrics` then by name.
- `scope=<id>/manifest.json` lists the files. Take the list from it, because the folder can contain files of unfinished
  or earlier exports.
- Frozen benchmarks are in `benchmarks/<YYYY-MM>.parquet`, and imported histories in `history/`. You can remove a
  scope's folder and export it again; histories are kept.
"""
_FACTS: Final = (
    (
        "`<field>:type`",
        "enum",
        "`absent`, `null`, `boolean`, `number`, `string`, `array`, `object`, or `withheld` for a personal field. Null "
        "if the field was not extracted.",
    ),
    ("`<field>:number`", "number", "A number. 1 and 0 for true and false."),
    ("`<field>:string`", "text", "A string."),
    ("`<field>:json`", "text", "The canonical JSON of an array or object."),
)


def type_name(dtype: object) -> str:
    """What the pages call a type."""
    if isinstance(dtype, pl.Enum):
        return "enum"
    if isinstance(dtype, pl.Datetime):
        return "time"
    if isinstance(dtype, pl.List):
        if isinstance(dtype.inner, pl.Struct):
            return f"list of {{{', '.join(field.name for field in dtype.inner.fields)}}}"
        return f"list of {type_name(dtype.inner)}"
    return next(name for of, name in NAMES.items() if dtype == of)


def pages() -> dict[str, str]:
    """The index, and a page for each table."""
    tables = {**TABLES, "benchmarks": BENCHMARKS}
    index = table(
        ("Table", "Rows", "Columns"),
        ((f"[`{name}`](lake/{name}.md)", MEANINGS[name], str(len(columns))) for name, columns in tables.items()),
    )
    facts = table(("Column", "Type", "Meaning"), _FACTS)
    clock = table(
        ("Table", "Date", "Event time"),
        (
            (
                f"`{name}`",
                f"`{date}`",
                ", ".join(f"`{column}`" for column in dict.fromkeys(event.meta.root_names()) if column != date),
            )
            for name, dates in EVENT_DATES.items()
            for date, event in dates.items()
        ),
    )
    return {"lake.md": f"{_INTRO}{index}{_CONVENTIONS}{facts}{_CLOCK}{clock}{_FILES}"} | {
        f"lake/{name}.md": _page(name, columns) for name, columns in tables.items()
    }


def _page(name: str, columns: Table) -> str:
    rows = (
        (f"`{column}`", _type(of.dtype), f"{of.meaning} *" if of.personal else of.meaning)
        for column, of in columns.items()
    )
    personal = any(of.personal for of in columns.values())
    mark = " `*`: can be left out as [personal](../settings.md#personal_fields)." if personal else ""
    return (
        f"# Table `{name}`\n\nThis page lists the columns of the [lake](../../glossary.md#lake) table `{name}`.\n"
        f"{MEANINGS[name]}{mark}\n\n{table(('Column', 'Type', 'Meaning'), rows)}"
    )


def _type(dtype: object) -> str:
    values = f": {', '.join(f'`{value}`' for value in dtype.categories)}" if isinstance(dtype, pl.Enum) else ""
    return f"{type_name(dtype)}{values}"
