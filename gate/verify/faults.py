"""What is wrong with one place in a document."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gate.encoding.canonical import canonical

_SHOWN_WHOLE: Final = 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that does not hold.

    Attributes:
        place: Where, as the name of the check: `execution_receipts[3].execution_hash`.
        expected: For a comparison, what should stand there.
        actual: For a comparison, what stands there.
        compared: Whether it is a comparison.
    """

    place: str
    expected: object = None
    actual: object = None
    compared: bool = False


def differing(place: str, expected: object, actual: object, *, plain: bool = False) -> Iterator[Fault]:
    """A fault where two JSON values are not the same value; `plain` as `canonical` takes it.

    Raises:
        MaterialRefused: One of them has no canonical JSON.
    """
    if not is_same(expected, actual, plain=plain):
        yield Fault(place, expected, actual, compared=True)


def is_same(one: object, other: object, *, plain: bool = False) -> bool:
    """Whether two JSON values are the same value; it takes no longer than the shorter of them asks for.

    `plain` as `canonical` takes it.

    Raises:
        MaterialRefused: They have no canonical JSON.
    """
    # Values that Python finds different are; but Python finds true and 1 equal.
    return bool(one == other) and (
        (type(one) is type(other) is str) or canonical(one, plain=plain) == canonical(other, plain=plain)
    )


def shown(value: object) -> object:
    """A value as a result shows it: {sha256, bytes} of its canonical JSON in place of one that is long."""
    text = canonical(value)
    return value if len(text) <= _SHOWN_WHOLE else {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
