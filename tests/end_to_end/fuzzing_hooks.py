"""What the contract fuzzer loads: no two of its requests share an idempotency key, for a key that was used answers with
its record whatever else the request holds, and the fuzzer would take that for a request that was not looked at.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import schemathesis

_LONGEST = 280
_serial = count(1)


@schemathesis.hook
def before_call(_: schemathesis.HookContext, case: schemathesis.Case[Any], __: dict[str, Any]) -> None:
    """Makes a usable idempotency key one of its own; what is no key stays as it is."""
    key: Any = None if case.headers is None else case.headers.get("x-idempotency-key")
    if isinstance(key, str) and 0 < len(key) <= _LONGEST and key.isascii() and key.isprintable():
        case.headers["x-idempotency-key"] = f"{key}-{next(_serial)}"
