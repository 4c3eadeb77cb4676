"""Limits of regions in words: `50 < amount <= 100 and country is "DE" or "AT"`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from gate.rulebooks.analysis.formulas.classes import FieldClasses, ValueClass
from gate.rulebooks.explanation import shown

_LISTED: Final = 12
"""How many values of a list are named."""


class Limit(Protocol):
    """The limit of a field; `regions.Limit`."""

    @property
    def name(self) -> str:
        """The field."""

    @property
    def of(self) -> FieldClasses:
        """Its classes."""

    @property
    def allowed(self) -> frozenset[int]:
        """Those that it may have."""

    @property
    def possible(self) -> frozenset[int]:
        """Those that it can have at all."""

    @property
    def parts(self) -> Mapping[int, bool]:
        """The parts that it must contain, or must not."""

    @property
    def items(self) -> Mapping[int, bool]:
        """The items that it must have, or must not."""


def condition_words(limits: Iterable[Limit]) -> str:
    """Limits that all hold, in words; `any facts` where there are none."""
    found = [words for limit in limits if (words := _limit_words(limit))]
    if len(found) == 1:
        return " and ".join(found[0])
    every = [f"({one})" if " or " in one else one for words in found for one in words]
    return " and ".join(every) or "any facts"


def _limit_words(limit: Limit) -> list[str]:
    asked = [
        f"{limit.name} {'contains' if wanted else 'does not contain'} {shown(value)}"
        for values, answers in ((limit.of.parts, limit.parts), (limit.of.items, limit.items))
        for value, wanted in ((values[index], wanted) for index, wanted in answers.items())
    ]
    within = limit.allowed & limit.possible
    wanted_of = {*limit.parts.values(), *limit.items.values()}
    if True not in wanted_of and _is_absent(limit, within):
        # Unlike not_contains, which is false there. What contains something is never absent.
        asked = [f"{limit.name} is absent or {words.removeprefix(f'{limit.name} ')}" for words in asked]
    if True in limit.parts.values():
        within &= _of_kind(limit, "string")
        if within >= limit.possible & _of_kind(limit, "string"):
            return asked
    if True in limit.items.values():
        within &= _of_kind(limit, "array")
        if within >= limit.possible & _of_kind(limit, "array"):
            return asked
    if within == limit.possible:
        return asked
    return [_class_words(limit, within), *asked]


def _of_kind(limit: Limit, kind: str) -> frozenset[int]:
    return frozenset(index for index, one in enumerate(limit.of.classes) if one.kind == kind)


def _class_words(limit: Limit, within: frozenset[int]) -> str:
    """The classes of a field in words: those that it has, or those that it has not where they are fewer words."""
    has = _listed(limit, within)
    without = _listed(limit, limit.possible - within)
    positive = " or ".join([*_is(limit, has[0]), *has[1]])
    # What `is` says can be denied in few words, an interval cannot.
    if without[1] or not without[0]:
        return positive
    may_be_absent = _is_absent(limit, within)
    negative = f"{limit.name} {'is absent, or ' if may_be_absent else ''}{_denied(without[0], bare=may_be_absent)}"
    return negative if len(negative) < len(positive) else positive


def _is(limit: Limit, named: Sequence[str]) -> list[str]:
    return [f"{limit.name} is {_either(named)}"] if named else []


def _is_absent(limit: Limit, within: frozenset[int]) -> bool:
    return any(limit.of.classes[index].kind == "absent" for index in within)


def _denied(named: Sequence[str], *, bare: bool) -> str:
    if list(named) == ["absent"]:
        return "is present"
    verb = "" if bare else "is "
    if len(named) == 1:
        return f"{verb}not {named[0]}"
    return f"{verb}neither {named[0]} nor {named[1]}" if len(named) == 2 else f"{verb}none of {', '.join(named)}"


def _listed(limit: Limit, within: frozenset[int]) -> tuple[list[str], list[str]]:
    """Some classes of a field as all that `is` can say of it, and as other statements, such as intervals."""
    classes = limit.of.classes
    named: list[str] = []
    for index in sorted(within):
        if classes[index].kind in ("absent", "null"):
            named.append(classes[index].kind)
    truths = [value for index in sorted(within) if classes[index].kind == "boolean" for value in classes[index].values]
    named += ["a boolean"] if len(truths) == 2 else [shown(value) for value in truths]
    found = _numbers(limit, within, named)
    for kind in ("string", "array", "object"):
        named += _constants(limit, within, kind)
    return named, found


def _constants(limit: Limit, within: frozenset[int], kind: str) -> list[str]:
    of_kind = {index: one for index, one in enumerate(limit.of.classes) if one.kind == kind and index in limit.possible}
    inside = [one for index, one in of_kind.items() if index in within]
    article = "an" if kind in ("array", "object") else "a"
    if inside and len(inside) == len(of_kind):
        return [f"{article} {kind}"]
    if any(one.is_open for one in inside):
        outside = [one for index, one in of_kind.items() if index not in within]
        return [f"{article} {kind} other than {_either(_values(outside))}"]
    return _values(inside)


def _values(classes: Iterable[ValueClass]) -> list[str]:
    values = [shown(value) for one in classes for value in one.values]
    # At least two are left out, so that the plural fits.
    return values if len(values) <= _LISTED + 1 else [*values[:_LISTED], f"{len(values) - _LISTED} more values"]


def _numbers(limit: Limit, within: frozenset[int], named: list[str]) -> list[str]:
    """Statements about numbers; single numbers are added to `named` instead."""
    found = []
    segments = _segments(limit, within)
    if segments and all(kept is not False for _, _, kept, _ in segments) and any(kept for _, _, kept, _ in segments):
        named.append("a number")
        return []
    for whole in (None, True, False):
        for low, high, closed_low, closed_high in _runs(segments, whole):
            if low == high:
                named.append(shown(low))
            else:
                found.append(_interval(limit.name, low, high, (closed_low, closed_high), whole))
    return found


Segment = tuple[float, float, bool | None, bool | None]


def _segments(limit: Limit, within: frozenset[int]) -> list[Segment]:
    """The number line in pieces: low, high, whether it is kept (None where no value can be), and which half alone."""
    pieces: dict[tuple[float, float], list[tuple[bool | None, bool]]] = {}
    for index, one in enumerate(limit.of.classes):
        for span in one.spans:
            halves = pieces.setdefault((span.low, span.high), [])
            if index in limit.possible:
                halves.append((span.whole, index in within))
    found: list[Segment] = []
    for (low, high), halves in sorted(pieces.items()):
        kept = {is_kept for _, is_kept in halves}
        if len(kept) == 2:
            found.append((low, high, False, next(whole for whole, is_kept in halves if is_kept)))
        else:
            found.append((low, high, next(iter(kept), None), None))
    return _joined(found)


def _joined(segments: list[Segment]) -> list[Segment]:
    """The same, with points between kept halves counted to those: 30 to `below 30, a whole number`."""
    found = list(segments)
    for at, (low, high, kept, _) in enumerate(segments):
        beside = {segments[near][3] for near in (at - 1, at + 1) if 0 <= near < len(segments)}
        whole = float(low).is_integer() if low == high else None
        if kept and whole in beside - {None}:
            found[at] = (low, high, False, whole)
    return found


def _runs(segments: Sequence[Segment], whole: bool | None) -> Iterator[tuple[float, float, bool, bool]]:
    """Neighbouring segments as one: low, high, and whether the bounds belong to it."""
    run: list[Segment] = []
    for segment in [*segments, None]:
        kept = segment is not None and (segment[3] is whole if whole is not None else segment[2] is True)
        neutral = segment is not None and segment[2] is None
        if segment is not None and (kept or (neutral and run)):
            run.append(segment)
            continue
        while run and run[-1][2] is None:
            run.pop()
        if run:
            first, last = run[0], run[-1]
            yield first[0], last[1], first[0] == first[1], last[0] == last[1]
        run = []


def _interval(name: str, low: float, high: float, closed: tuple[bool, bool], whole: bool | None) -> str:
    above, below = ("<=" if inclusive else "<" for inclusive in closed)
    if math.isinf(low) and math.isinf(high):
        text = f"{name} is a number"
    elif math.isinf(low):
        text = f"{name} {below} {shown(high)}"
    elif math.isinf(high):
        text = f"{name} {'>=' if closed[0] else '>'} {shown(low)}"
    else:
        text = f"{shown(low)} {above} {name} {below} {shown(high)}"
    if whole is None:
        return text
    return f"{text} ({'a whole number' if whole else 'a number with a fraction'})"


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
