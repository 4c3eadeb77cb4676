"""The checks of a verification in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from gate.ids import parse_timestamp
from gate.verify import Verification
from gate.verify.catalog import RECORD
from workbench.engines.rendering import on_one_line
from workbench.engines.wording import counted, moment, phrase

_LONGEST: Final = 400

_CHECKS: Final = [check for group in RECORD for check in group.checks]
WORDS: Final[Mapping[str, str]] = MappingProxyType({check.name: check.holds for check in _CHECKS if check.holds})
WORDS_OF_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {check.name: check.advice for check in _CHECKS if check.advice}
)
"""What stands in the place of `WORDS` where a record is advisory."""

_SKIPPED: Final[Mapping[str, str]] = MappingProxyType({check.name: check.skipped for check in _CHECKS if check.skipped})
_SKIPPED_OF_ADVICE: Final[Mapping[str, str]] = MappingProxyType({"evaluation": "The model's answer was erased"})
_RESULTS: Final[Mapping[bool | None, tuple[str, str]]] = MappingProxyType(
    {True: ("good", "holds"), False: ("bad", "does not hold"), None: ("", "skipped")}
)


@dataclass(frozen=True, slots=True)
class Check:
    """A check that was made, or skipped.

    Attributes:
        name: Its name.
        words: What holds where it holds.
        tone: `good`, `bad`, or "".
        result: holds, does not hold, or skipped.
        why: Why it was skipped; "" where it was not.
        expected: The computed value, if the check is a comparison that does not hold.
        actual: The value in the record, likewise.
    """

    name: str
    words: str
    tone: str
    result: str
    why: str
    expected: str | None
    actual: str | None


def checks(found: Verification, *, advisory: bool = False) -> list[Check]:
    """The checks of a verification: those that do not hold first, then those skipped.

    Args:
        found: The verification.
        advisory: Whether the record is advisory.
    """
    order = (False, None, True)
    made = sorted(found.checks.items(), key=lambda check: order.index(check[1]))
    words = {**WORDS, **WORDS_OF_ADVICE} if advisory else WORDS
    skipped = {**_SKIPPED, **_SKIPPED_OF_ADVICE} if advisory else _SKIPPED
    return [_check(name, holds, found, words, skipped) for name, holds in made]


def headline(found: Verification) -> str:
    """What a verification found, with the number of its checks."""
    results = list(found.checks.values())
    holding, failing, skipped = (results.count(result) for result in (True, False, None))
    fails = f"{failing} {'fails' if failing == 1 else 'fail'}" if failing else "none fails"
    told = f"{counted(holding, 'check holds', 'checks hold')}, {fails}"
    skips = f", {skipped} {'was' if skipped == 1 else 'were'} skipped" if skipped else ""
    return f"{'Verified' if found.verified else 'Not verified'}: {told}{skips}"


def stamp(of: object) -> str:
    """A timestamp as the page writes moments; any other value unchanged."""
    try:
        return moment(parse_timestamp(str(of)))
    except ValueError:
        return value(of)


def value(of: Any) -> str:
    """A JSON value on one line, its beginning where it is long, with its size."""
    try:
        text = of if isinstance(of, str) else orjson.dumps(of).decode()
    except orjson.JSONEncodeError:
        text = str(of)
    line = on_one_line(text[:_LONGEST])
    return line if len(text) <= _LONGEST else f"{line}... ({counted(len(text.encode()), 'byte')})"


def _check(
    name: str, holds: bool | None, found: Verification, words: Mapping[str, str], skipped: Mapping[str, str]
) -> Check:
    tone, result = _RESULTS[holds]
    compared = holds is False and name in found.expected
    return Check(
        name,
        words.get(name, phrase(name)),
        tone,
        result,
        skipped.get(name, "Its material is not available") if holds is None else "",
        value(found.expected[name]) if compared else None,
        value(found.actual.get(name)) if compared else None,
    )
