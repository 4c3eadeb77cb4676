"""Facts in columns: the JSON type and the value of each field that rulebooks read, next to the JSON of all facts.

    frame.with_columns(fact_series(inputs, ("margin_percent",)))     # when a decision is written
    with_fields(pl.scan_parquet(path), fields_of(body))              # when a rulebook reads it

A field is a dotted path through objects, as in rulebooks. It takes four columns, here for the field `f`:

    f:type     FACT_TYPE   its JSON type, `absent` if it is missing, `withheld` if it is personal and was not kept;
                           null if it was not extracted, or if the facts are unknown
    f:number   Float64     a number; booleans as 1 and 0
    f:string   String      a string
    f:json     String      the canonical JSON of an array or object

The column `inputs` holds the canonical JSON of all facts of the decision, null if they are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, cast

import orjson
import polars as pl

from gate.decisions.again.counterfactuals import merge_patch
from gate.encoding.canonical import canonical
from gate.encoding.strict_json import MAX_SAFE_INTEGER
from gate.errors import MaterialRefused
from gate.rulebooks.documents import Condition, RulebookBody

INPUTS: Final = "inputs"
"""The column with the canonical JSON of all facts."""

ABSENT: Final = "absent"
WITHHELD: Final = "withheld"
_TYPES: Final = (ABSENT, "null", "boolean", "number", "string", "array", "object", WITHHELD)
FACT_TYPE: Final = pl.Enum(_TYPES)
"""What a fact is: a JSON type, not there, or withheld."""

_TYPE: Final = ":type"
_NUMBER: Final = ":number"
_STRING: Final = ":string"
_JSON: Final = ":json"
_DTYPES: Final[Mapping[str, pl.DataType]] = {
    _TYPE: FACT_TYPE,
    _NUMBER: pl.Float64(),
    _STRING: pl.String(),
    _JSON: pl.String(),
}

# No field's name has a colon, so this is never one of their columns.
_EXTRACTED: Final = ":extracted"
# It bounds the memory of a batch's parsed facts.
_ROWS_AT_ONCE: Final = 50_000


class _Absent:
    """Stands for a field that is not there."""

    __slots__ = ()


class _Unknown:
    """Stands for facts that are not known, and for whatever they may hold."""

    __slots__ = ()

    def get(self, _name: str, _default: object) -> _Unknown:
        return self


class _Object(Protocol):
    """What fields are looked for in: a JSON object, or facts that are not known."""

    def get(self, name: str, default: object, /) -> object: ...


_ABSENT: Final = _Absent()
_UNKNOWN: Final = _Unknown()
_ENTERED: Final = frozenset({dict, _Unknown})
_NUMERIC: Final = frozenset({bool, int, float})
_CONTAINERS: Final = frozenset({list, dict})

# Positions in FACT_TYPE, by the Python type of a JSON value.
_CODES: Final[Mapping[type, int | None]] = {
    _Unknown: None,
    _Absent: 0,
    type(None): 1,
    bool: 2,
    int: 3,
    float: 3,
    str: 4,
    list: 5,
    dict: 6,
}
_WITHHELD_CODES: Final = {kind: 7 if code else code for kind, code in _CODES.items()}


def type_of(field: str) -> pl.Expr:
    """The column with the JSON type of a field."""
    return pl.col(f"{field}{_TYPE}")


def number_of(field: str) -> pl.Expr:
    """The column with a field's numbers, and its booleans as 1 and 0."""
    return pl.col(f"{field}{_NUMBER}")


def string_of(field: str) -> pl.Expr:
    """The column with a field's strings."""
    return pl.col(f"{field}{_STRING}")


def json_of(field: str) -> pl.Expr:
    """The column with the canonical JSON of a field's arrays and objects."""
    return pl.col(f"{field}{_JSON}")


def columns_of(field: str) -> dict[str, pl.DataType]:
    """The names and types of a field's columns."""
    return {f"{field}{suffix}": dtype for suffix, dtype in _DTYPES.items()}


def fields_of(body: RulebookBody) -> tuple[str, ...]:
    """The fields that a valid rulebook declares, requires or tests, sorted."""
    schema = body["input_schema"]
    tested = (test["field"] for test in tests_of(body))
    return tuple(sorted({*schema["required"], *schema["properties"], *tested}))


def tests_of(body: RulebookBody) -> Iterator[Condition]:
    """The tests of a valid rulebook: its conditions {field, operator, value} that hold no others."""
    for rule in body["rules"]:
        yield from _tests(rule["condition"])


def _tests(condition: Condition) -> Iterator[Condition]:
    if "field" in condition:
        yield condition
    elif "not" in condition:
        yield from _tests(condition["not"])
    else:
        for child in condition.get("all") or condition["any"]:
            yield from _tests(child)


def is_withheld(field: str, withheld: Collection[str]) -> bool:
    """Whether a field is one of the withheld paths, lies beneath one, or may hold one."""
    return any(f"{field}.".startswith(f"{path}.") or path.startswith(f"{field}.") for path in withheld)


def without(inputs: Mapping[str, object], withheld: Collection[str]) -> dict[str, object]:
    """The facts without the values that the withheld paths reach. The original facts do not change.

    A path matches both readings of its dots: `a.b` is the field b of a, or the field named `a.b`. If it continues
    into an array, the whole array is left out, because the value can be anywhere in it.
    """
    kept = dict(inputs)
    for path in withheld:
        kept = _removed(kept, path)
    return kept


def _removed(value: Mapping[str, object], path: str) -> dict[str, object]:
    kept: dict[str, object] = {}
    beneath = f"{path}."
    for name, item in value.items():
        within = f"{name}."
        if within.startswith(beneath):
            continue
        if not beneath.startswith(within) or type(item) not in _CONTAINERS:
            kept[name] = item
        elif type(item) is dict:
            kept[name] = _removed(item, path[len(within) :])
    return kept


def fact_series(
    inputs: Sequence[Mapping[str, object] | None], fields: Collection[str], withheld: Collection[str] = ()
) -> list[pl.Series]:
    """The columns of fields.

    Args:
        inputs: The facts of each decision, as JSON is read; None where they are not known.
        fields: The fields.
        withheld: Paths whose values are not to be kept: a field that is such a path, lies beneath one or may hold one
            shows only whether it is there.

    Returns:
        The four columns of each field, in the order of the fields.
    """
    facts: list[_Object] = [_UNKNOWN if row is None else row for row in inputs]
    reached: dict[str, list[object]] = {}

    def values_of(path: str) -> list[object]:
        if path not in reached:
            parent, dot, name = path.rpartition(".")
            if dot:
                # Some are objects: those whose type says so.
                parents = cast("list[_Object]", values_of(parent))
                reached[path] = [row.get(name, _ABSENT) if type(row) in _ENTERED else _ABSENT for row in parents]
            else:
                reached[path] = [row.get(name, _ABSENT) for row in facts]
        return reached[path]

    return _enumerated(
        series for field in fields for series in _columns(field, values_of(field), hidden=is_withheld(field, withheld))
    )


def _enumerated(columns: Iterable[pl.Series]) -> list[pl.Series]:
    """The columns, with positions in `FACT_TYPE` turned into types. One step for all costs as much as one column."""
    frame = pl.DataFrame(list(columns))
    positions = [name for name in frame.columns if name.endswith(_TYPE)]
    return frame.with_columns(pl.col(positions).cat.to(FACT_TYPE)).get_columns() if positions else []


def _columns(field: str, values: Sequence[object], *, hidden: bool) -> list[pl.Series]:
    """The columns of a field, its type as the position in `FACT_TYPE`."""
    kinds = list(map(type, values))
    table = _WITHHELD_CODES if hidden else _CODES
    types = pl.Series(f"{field}{_TYPE}", list(map(table.__getitem__, kinds)), pl.UInt8)
    seen = set() if hidden else set(kinds)

    def column(suffix: str, held: Set[type], write: Callable[[Any], object]) -> pl.Series:
        name, dtype = f"{field}{suffix}", _DTYPES[suffix]
        if seen.isdisjoint(held):
            return pl.Series(name, [None] * len(values), dtype)
        if seen <= held:
            return pl.Series(name, list(map(write, values)), dtype)
        written = [write(value) if kind in held else None for value, kind in zip(values, kinds, strict=True)]
        return pl.Series(name, written, dtype)

    # Adding 0 leaves no -0, which JSON's canonical text does not have.
    numbers = column(_NUMBER, _NUMERIC, lambda value: value + 0.0)
    return [types, numbers, column(_STRING, {str}, str), column(_JSON, _CONTAINERS, canonical_text)]


def canonical_text(value: object) -> str:
    """The canonical JSON of a value that was read from canonical JSON."""
    try:
        return canonical(value).decode()
    except MaterialRefused:
        # Read fast, a double beyond 2^53 whose canonical text has no exponent is an integer.
        return canonical(_with_doubles(value)).decode()


def _with_doubles(value: object) -> object:
    if type(value) is int:
        return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else float(value)
    if type(value) is dict:
        return {name: _with_doubles(item) for name, item in value.items()}
    return [_with_doubles(item) for item in value] if type(value) is list else value


def find_typed(frame: pl.LazyFrame, fields: Collection[str], known: pl.Expr | None = None) -> frozenset[str]:
    """Which of the fields the frame has in columns for every row whose facts are known.

    It runs a query, over the types of the fields and what `known` needs alone.

    Args:
        frame: What is stored.
        fields: The fields.
        known: Whether the facts of a row are known; without it `inputs` is read to tell.
    """
    have = frame.collect_schema().keys()
    there = [field for field in dict.fromkeys(fields) if columns_of(field).keys() <= have]
    if not there or (known is None and INPUTS not in have):
        return frozenset(there)
    known = pl.col(INPUTS).is_not_null() if known is None else known
    lacks = frame.select((type_of(field).is_null() & known).any().alias(field) for field in there)
    found = lacks.collect(engine="streaming").row(0, named=True)
    return frozenset(field for field, lacking in found.items() if not lacking)


def with_fields(
    frame: pl.LazyFrame, fields: Collection[str], withheld: Collection[str] = (), *, typed: Collection[str] = ()
) -> pl.LazyFrame:
    """The frame with the columns of fields. Missing ones are read from the JSON of the facts.

    Args:
        frame: The stored columns. Columns of the fields may be missing or null, and so may `inputs`.
        fields: The fields.
        withheld: Paths whose values were not kept. Unless a column says otherwise, a field is `withheld` if it is such
            a path, lies below one, or may contain one, because its presence is unknown.
        typed: Fields whose existing columns are complete, from `find_typed`. If that is true of all fields, `inputs` is
            not read.
    """
    have = frame.collect_schema().keys()
    asked = tuple(dict.fromkeys(fields))
    lacking = {field for field in asked if not columns_of(field).keys() <= have}
    if INPUTS not in have:
        nothing = {name: dtype for field in asked if field in lacking for name, dtype in columns_of(field).items()}
        return frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in nothing.items())
    open_ = [field for field in asked if field in lacking or field not in typed]
    hidden = [field for field in open_ if is_withheld(field, withheld)]
    read = [field for field in open_ if field not in hidden]
    filled = [column for field in hidden for column in _filled(field, _hidden_columns(field), lacking=field in lacking)]
    if not read:
        return frame.with_columns(filled)
    text = pl.col(INPUTS)
    if lacking.isdisjoint(read):
        text = pl.when(pl.any_horizontal(type_of(field).is_null() for field in read)).then(text)
    dtype = pl.Struct({name: dtype for field in read for name, dtype in columns_of(field).items()})
    extracted = text.map_batches(partial(_extract, read, dtype), dtype, is_elementwise=True).alias(_EXTRACTED)
    for field in read:
        columns = {name: pl.col(_EXTRACTED).struct.field(name) for name in columns_of(field)}
        filled += _filled(field, columns, lacking=field in lacking)
    return frame.with_columns(extracted).with_columns(filled).drop(_EXTRACTED)


def where(holds: pl.Expr, value: int, dtype: type[pl.Int16] | type[pl.UInt8]) -> pl.Expr:
    """A whole number where something holds, else null.

    It is when-then for a number, and keeps the order of rows. Of when-then between literals Polars 2.1 takes it that
    no order is to be kept: where nothing else is selected, the row groups of a file come in any.
    """
    return pl.when(holds).then(holds.cast(dtype) * pl.lit(value, dtype))


def _constant_type(holds: pl.Expr, type_: str) -> pl.Expr:
    return where(holds, _TYPES.index(type_), pl.UInt8).cat.to(FACT_TYPE)


def _hidden_columns(field: str) -> dict[str, pl.Expr]:
    nothing = {name: pl.lit(None, dtype) for name, dtype in columns_of(field).items()}
    return {**nothing, f"{field}{_TYPE}": _constant_type(pl.col(INPUTS).is_not_null(), WITHHELD)}


def _filled(field: str, columns: Mapping[str, pl.Expr], *, lacking: bool) -> Iterator[pl.Expr]:
    for name, column in columns.items():
        filled = column if lacking else pl.when(type_of(field).is_null()).then(column).otherwise(pl.col(name))
        yield filled.alias(name)


def _extract(fields: Sequence[str], dtype: pl.Struct, texts: pl.Series) -> pl.Series:
    """The columns of fields, as one, of the JSON of facts."""
    if texts.null_count() == len(texts):
        return pl.repeat(None, len(texts), dtype=dtype, eager=True).alias(texts.name)
    # A name stands in canonical JSON as it is, between quotes: facts without it need not be taken apart.
    names = sorted({f'"{field.partition(".")[0]}"' for field in fields})
    named = texts.str.contains_any(names).fill_null(value=False)
    read = texts.filter(named)
    parts = [_extract_some(fields, read.slice(start, _ROWS_AT_ONCE)) for start in range(0, len(read), _ROWS_AT_ONCE)]
    # What is absent, what is not known, and then what was read.
    found = pl.concat([pl.DataFrame(fact_series([{}, None], fields)).to_struct(), *parts])
    place = pl.when(named).then(named.cum_sum() + 1).when(texts.is_null()).then(1).otherwise(0)
    return found.gather(pl.select(place).to_series()).alias(texts.name)


def _extract_some(fields: Sequence[str], texts: pl.Series) -> pl.Series:
    rows = [None if text is None else orjson.loads(text) for text in texts.to_list()]
    return pl.DataFrame(fact_series(rows, fields)).to_struct()


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What a patch does to a field: it has this value from then on, or is absent."""

    value: object


@dataclass(frozen=True, slots=True)
class _Merged:
    """What a patch does to a field: this object is merged into it."""

    patch: Mapping[str, object]


def patched(
    frame: pl.LazyFrame,
    patch: Mapping[str, object],
    fields: Collection[str],
    withheld: Collection[str] = (),
    *,
    typed: Collection[str] = (),
) -> pl.LazyFrame:
    """The columns of fields as if the facts had been other; what is not known stays so.

    A withheld fact that the patch replaces or removes is known from then on; one that it merges into is not.

    Args:
        frame: What is stored, as `with_fields` takes it.
        patch: An RFC 7396 merge patch over the facts.
        fields: The fields.
        withheld: As `with_fields` takes it.
        typed: As `with_fields` takes it.

    Returns:
        The frame with the columns of the fields, without `inputs` and without the columns of other fields that the
        patch would change.
    """
    have = frame.collect_schema().keys()
    effects = {field: _effect(patch, field) for field in fields}
    kept = [field for field, effect in effects.items() if not isinstance(effect, _Replaced)]
    columns: list[pl.Expr] = []
    for field, effect in effects.items():
        if isinstance(effect, _Replaced):
            columns += _replaced_columns(field, effect.value, _is_known(field, have, typed))
        elif isinstance(effect, _Merged):
            columns += _merged_columns(field, effect.patch)
    others = {name.removesuffix(_TYPE) for name in have if name.endswith(_TYPE)} - effects.keys()
    stale = [name for field in others if _effect(patch, field) for name in columns_of(field) if name in have]
    return with_fields(frame, kept, withheld, typed=typed).with_columns(columns).drop(INPUTS, *stale, strict=False)


def _effect(patch: Mapping[str, object], field: str) -> _Replaced | _Merged | None:
    """What a patch does to a field, None where it leaves it as it is.

    A patch that gives a parent an object makes an object of whatever was there, and a field that it does not name is
    absent beneath it exactly where it was before.
    """
    *parents, last = field.split(".")
    for name in parents:
        if name not in patch:
            return None
        inner = patch[name]
        if not isinstance(inner, Mapping):
            return _Replaced(_ABSENT)
        patch = inner
    if last not in patch:
        return None
    value = patch[last]
    if isinstance(value, Mapping):
        return _Merged(value)
    return _Replaced(_ABSENT if value is None else value)


def _is_known(field: str, have: Collection[str], typed: Collection[str]) -> pl.Expr:
    """Whether the facts are known, by as few columns as tell it."""
    ways = []
    if f"{field}{_TYPE}" in have:
        ways.append(type_of(field).is_not_null())
    if INPUTS in have and not (ways and field in typed):
        ways.append(pl.col(INPUTS).is_not_null())
    return pl.any_horizontal(ways) if ways else pl.lit(value=False)


def _replaced_columns(field: str, value: object, known: pl.Expr) -> Iterator[pl.Expr]:
    types, *values = _enumerated(_columns(field, [value], hidden=False))
    yield _constant_type(known, types.item()).alias(types.name)
    for column in values:
        literal = pl.lit(column.item(), column.dtype)
        yield (literal if column.item() is None else pl.when(known).then(literal)).alias(column.name)


def _merged_columns(field: str, patch: Mapping[str, object]) -> Iterator[pl.Expr]:
    types, texts = type_of(field), json_of(field)
    yield pl.when(types != WITHHELD).then(pl.lit("object", FACT_TYPE)).otherwise(types).alias(f"{field}{_TYPE}")
    for suffix in (_NUMBER, _STRING):
        yield pl.lit(None, _DTYPES[suffix]).alias(f"{field}{suffix}")
    onto_object = pl.when(types == "object").then(texts)
    merged = onto_object.map_batches(partial(_merge, patch), pl.String, is_elementwise=True)
    alone = pl.when(types != WITHHELD).then(pl.lit(canonical_text(merge_patch({}, patch))))
    yield pl.coalesce(merged, alone).alias(f"{field}{_JSON}")


def _merge(patch: Mapping[str, object], texts: pl.Series) -> pl.Series:
    merged: dict[str | None, str | None] = {None: None}
    for text in texts.unique().drop_nulls().to_list():
        merged[text] = canonical_text(merge_patch(orjson.loads(text), patch))
    return pl.Series(texts.name, [merged[text] for text in texts.to_list()], pl.String)
