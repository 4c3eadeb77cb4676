"""Guards of an action, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gate.client import (
    Client,
    Guard,
    Permit,
    SqliteStore,
)
from tests.support.samples import sample_rulebook

YES = {"discount_percent": 10, "margin_percent": 22}


def guarding(client: Client, facts: dict[str, Any] = YES, **said: Any) -> Guard:
    usual = {"action": "approve_discount", "target": ("crm", "deal-1042")}
    return client.guard(sample_rulebook(), facts, **(usual | said))


def runs(client: Client, facts: dict[str, Any] = YES, **said: Any) -> Permit:
    with guarding(client, facts, **said) as permit:
        pass
    return permit


def executions(client: Client, permit: Permit) -> list[Any]:
    client.flush()
    return list(client.list_executions(permit.decision_id)["executions"])


class Died(BaseException):
    """A process that is gone: nothing after it runs."""


@contextmanager
def dying_in(store: SqliteStore, method: str, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> Iterator[None]:
    """Lets a process end at one of the store's writes, and forgets that it did once the block is left."""
    real = getattr(store, method)

    def die(*arguments: Any, **named: Any) -> Any:
        if after:
            real(*arguments, **named)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(store, method, die)
        # It would tidy up, which a process that is gone does not.
        patch.setattr(store, "unstart", lambda intent: None)
        with pytest.raises(Died):
            yield
