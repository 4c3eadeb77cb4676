"""Fixtures: signatures that were found good need not be checked again for each of thousands of changes elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest
from nacl.signing import VerifyKey


@pytest.fixture(scope="module", autouse=True)
def _checked_once() -> Iterator[None]:
    """Remembers by key, message and signature that a signature is good. One that is not is checked each time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(VerifyKey, "verify", lru_cache(maxsize=10_000)(VerifyKey.verify))
        yield
