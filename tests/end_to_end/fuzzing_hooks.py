"""What the contract fuzzer loads: no two of its requests share an idempotency key, for a key that was used answers with
its record whatever else the request holds, and the fuzzer would take that for a request that was not looked at.

In the short form, one value of a wrong type is sent in each place, and not five; and every third wrong method to each
address, beginning with another one at the next address, so that each method is sent to some.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any, Final

import schemathesis

from tests.support.torture import LONG

_LONGEST = 280
_serial = count(1)
_operations: Final[dict[str, int]] = {}
_seen: Final[Counter[tuple[object, ...]]] = Counter()


@schemathesis.hook
def filter_case(_: schemathesis.HookContext, case: schemathesis.Case[Any]) -> bool:
    """Whether a generated case is sent."""
    data: Any = None if case.meta is None else case.meta.phase.data
    scenario = getattr(data, "scenario", None)
    if LONG or scenario not in ("incorrect_type", "unspecified_http_method"):
        return True
    operation = case.operation.label
    number = _operations.setdefault(operation, len(_operations))
    if scenario == "incorrect_type":
        return _is_first((operation, data.parameter_location, data.parameter, data.location, data.description))
    _seen[(operation,)] += 1
    return _seen[(operation,)] % 3 == number % 3


def _is_first(place: tuple[object, ...]) -> bool:
    _seen[place] += 1
    return _seen[place] == 1


@schemathesis.hook
def before_call(_: schemathesis.HookContext, case: schemathesis.Case[Any], __: dict[str, Any]) -> None:
    """Makes a usable idempotency key one of its own; what is no key stays as it is."""
    key: Any = None if case.headers is None else case.headers.get("x-idempotency-key")
    if isinstance(key, str) and 0 < len(key) <= _LONGEST and key.isascii() and key.isprintable():
        case.headers["x-idempotency-key"] = f"{key}-{next(_serial)}"
