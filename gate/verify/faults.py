"""One wrong place in a document."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gate.encoding.canonical import canonical

_SHOWN_WHOLE: Final = 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong place in a document.

    Attributes:
        place: The place, as the name of the check: `execution_receipts[3].execution_hash`.
        expected: The value that a comparison expects.
        actual: The value in the document.
        compared: Whether it is a comparison.
    """

    place: str
    expected: object = None
    actual: object = None
    compared: bool = False


def differing(place: str, expected: object, actual: object, *, plain: bool = False) -> Iterator[Fault]:
    """A fault if two JSON values differ. `plain` is as for `canonical`.

    Raises:
        MaterialRefused: One of them has no canonical JSON.
    """
    if not is_same(expected, actual, plain=plain):
        yield Fault(place, expected, actual, compared=True)


def is_same(one: object, other: object, *, plain: bool = False) -> bool:
    """Whether two JSON values are the same, in a time that depends on the shorter one. `plain` is as for `canonical`.

    Raises:
        MaterialRefused: They have no canonical JSON.
    """
    # Values that differ in Python differ; but Python finds true and 1 equal.
    return bool(one == other) and (
        (type(one) is type(other) is str) or canonical(one, plain=plain) == canonical(other, plain=plain)
    )


def shown(value: object) -> object:
    """A value as a result shows it. A long value is replaced by {`sha256`, `bytes`} of its canonical JSON."""
    text = canonical(value)
    return value if len(text) <= _SHOWN_WHOLE else {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
