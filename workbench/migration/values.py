"""Decisions by the value of a fact: numbers by the classes of the exact analysis, other values one by one.

    tally = ValueTally("region", bodies)
    tally.add(rows)                # of each stretch
    tally.classes(changes)

The most frequent texts, arrays, and objects have classes of their own, and the others share one class. Candidates are
the first `MAX_NAMES` that occur, so that a field with a different value in each decision costs no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import orjson
import polars as pl

from gate.rulebooks.documents import RulebookBody
from gate.rulebooks.explanation import shown
from workbench.facts import FACT_TYPE, json_of, number_of, string_of, type_of
from workbench.migration.classes import class_words, classes_of, number_class, types_of
from workbench.migration.tally import Groups, Names, keyed

MAX_VALUES: Final = 20
"""How many texts, arrays and objects of a field have a class of their own."""

MAX_NUMBERS: Final = 100
"""How many classes of numbers of a field have a class of their own, those of the most decisions."""

LONGEST_VALUE: Final = 200
"""How many characters a text, or the JSON of an array or object, has at most to be told on its own."""

_KINDS: Final[Sequence[str]] = FACT_TYPE.categories.to_list()
_TEXTS: Final = ("string", "array", "object")
# The code of a fact: its JSON type's place in FACT_TYPE, with true and the values that are told apart after them.
_TRUE, _NAMED, _NUMBERS = len(_KINDS), len(_KINDS) + 1, len(_KINDS) + 2
_TO_TRUE: Final = _TRUE - _KINDS.index("boolean")
_CALLED: Final = {
    "null": "null",
    "boolean": "a boolean",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}


class ValueTally:
    """The decisions by the value of a field."""

    def __init__(self, field: str, bodies: Sequence[RulebookBody]) -> None:
        """Takes the field, and the rulebooks whose tests divide its numbers.

        Raises:
            NotDecided: The tests have too many constants.
        """
        self.field: Final = field
        self._of: Final = classes_of(field, bodies)
        types = types_of(field, bodies)
        kinds = ["number" if type_ == "integer" else type_ for type_ in types] or list(_CALLED)
        self._expected: Final = frozenset(kinds)
        self._groups: Final = Groups()
        self._names: Final = {name: Names() for name, of in _NAMED_BY.items() if self._expected & of}

    @property
    def read(self) -> set[str]:
        """The columns of the fact that `add` needs."""
        columns = [type_of(self.field), number_of(self.field)]
        columns += [string_of(self.field)] if "string" in self._names else []
        columns += [json_of(self.field)] if "json" in self._names else []
        return {name for column in columns for name in column.meta.root_names()}

    def add(self, rows: pl.DataFrame) -> None:
        """Takes the decisions of a stretch that are decided again: `fate`, `position`, and the columns of the fact."""
        code = self._code()
        if not self._names:
            self._groups.add(rows.lazy().select(keyed(code), "position").collect())
            return
        coded = rows.lazy().select(code, "fate", "position", *self._texts()).collect()
        for name, names in self._names.items():
            told = coded.lazy().filter((pl.col("code") == _NAMED) & pl.col(name).is_not_null())
            names.add(told.select(pl.col(name).alias("name"), pl.col("fate").alias("number"), "position").collect())
        others = coded.lazy().filter(pl.col("code") != _NAMED)
        self._groups.add(others.select(keyed(pl.col("code")), "position").collect())

    def classes(self, counted: Callable[[pl.DataFrame], dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The classes that occur, each with what `counted` says of its groups."""
        found = self._groups.told().partition_by("of", as_dict=True, include_key=False)
        groups = {int(code): part for (code,), part in found.items()}
        for kind in ("absent", "null"):
            if (code := _KINDS.index(kind)) in groups:
                yield {"class": self._words(kind, kind), **counted(groups[code])}
        for code, word in ((_KINDS.index("boolean"), "false"), (_TRUE, "true")):
            if code in groups:
                yield {"class": self._words("boolean", word), **counted(groups[code])}
        yield from self._number_classes(groups, counted)
        yield from self._value_classes(groups, counted)
        for kind in ("number", *_TEXTS):
            if kind not in self._expected and (code := _KINDS.index(kind)) in groups:
                yield {"class": self._words(kind, _CALLED[kind]), **counted(groups[code])}
        if (code := _KINDS.index("withheld")) in groups:
            yield {"class": f"{self.field} is withheld", **counted(groups[code])}

    def _code(self) -> pl.Expr:
        kind = type_of(self.field)
        code = kind.to_physical().cast(pl.UInt16)
        truth = code + (number_of(self.field) == 1).cast(pl.UInt16) * _TO_TRUE
        found = pl.when(kind == "boolean").then(truth).otherwise(code)
        if "number" in self._expected:
            number = number_class(self.field, self._of).cast(pl.UInt16) + _NUMBERS
            found = pl.when(kind == "number").then(number).otherwise(found)
        if self._names:
            short = pl.any_horizontal(text.is_not_null() for text in self._shortened())
            named = kind.is_in([name for name in _TEXTS if name in self._expected]) & short
            # Longer ones keep the code of their type.
            found = pl.when(named).then(pl.lit(_NAMED, pl.UInt16)).otherwise(found)
        return found.cast(pl.UInt16).alias("code")

    def _shortened(self) -> list[pl.Expr]:
        columns = {"string": string_of(self.field), "json": json_of(self.field)}
        texts = [columns[name].alias(name) for name in self._names]
        return [pl.when(text.str.len_chars() <= LONGEST_VALUE).then(text) for text in texts]

    def _texts(self) -> list[pl.Expr]:
        return [text.alias(name) for name, text in zip(self._names, self._shortened(), strict=True)]

    def _number_classes(
        self, groups: dict[int, pl.DataFrame], counted: Callable[[pl.DataFrame], dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        found = {code: part for code, part in groups.items() if code >= _NUMBERS}
        most = sorted(found, key=lambda code: (-int(found[code]["decisions"].sum()), code))[:MAX_NUMBERS]
        for code in sorted(most, key=lambda code: (self._least(code - _NUMBERS), code)):
            yield {"class": class_words(self.field, self._of, code - _NUMBERS), **counted(found[code])}
        others = [part for code, part in found.items() if code not in most]
        if others:
            yield {"class": f"{self.field} is another number", **counted(pl.concat(others))}

    def _least(self, index: int) -> float:
        return min(span.low for span in self._of.classes[index].spans)

    def _value_classes(
        self, groups: dict[int, pl.DataFrame], counted: Callable[[pl.DataFrame], dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        if not self._names:
            return
        values = pl.concat(
            [
                names.frame.rename({"number": "fate"}).with_columns(pl.lit(name).alias("by"))
                for name, names in self._names.items()
            ]
        )
        totals = values.group_by("by", "name").agg(pl.col("decisions").sum())
        most = totals.sort("decisions", "by", "name", descending=[True, False, False]).head(MAX_VALUES)
        parts = values.partition_by("by", "name", as_dict=True, include_key=False)
        for by, name in most.select("by", "name").iter_rows():
            value = name if by == "string" else orjson.loads(name)
            yield {"class": f"{self.field} is {shown(value)}", **counted(parts[by, name])}
        rest = values.join(most, on=["by", "name"], how="anti").select("fate", "decisions", "positions")
        long = [groups[code] for kind in _TEXTS if kind in self._expected and (code := _KINDS.index(kind)) in groups]
        beyond = [names.beyond.rename({"number": "fate"}) for names in self._names.values()]
        others = pl.concat([part.with_columns(pl.col("fate").cast(pl.Int64)) for part in (rest, *long, *beyond)])
        if not others.is_empty():
            word = "another value" if most.height else "a long value"
            yield {"class": f"{self.field} is {word}", **counted(others)}

    def _words(self, kind: str, called: str) -> str:
        wrong = kind != "absent" and kind not in self._expected
        return f"{self.field} is {called}{' (wrong type)' if wrong else ''}"


_NAMED_BY: Final = {"string": frozenset({"string"}), "json": frozenset({"array", "object"})}
