"""Where rulebook ids lead, as a process remembers it: the append of a decision says whether it is still so.

Looking up a route at every decision would cost more than the decision. So a decision uses the route that its process
remembers, and the ledger compares the scope's route epoch in the transaction that appends. If the epoch changed, the
decision is made again by the active route. A refusal, which appends nothing, looks up the route before it counts.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar

from cachetools import LRUCache

from gate.errors import GateError
from gate.ledger.chain.changes import ActiveRoute, Changes
from gate.records.documents import RulebookPointer

Answer = TypeVar("Answer")

_REMEMBERED: Final = 4096


class Routes:
    """The routes of all scopes."""

    def __init__(self, changes: Changes) -> None:
        """Works over the changes of a ledger."""
        self._changes = changes
        self._lock = Lock()
        self._seen: LRUCache[tuple[str, str], ActiveRoute] = LRUCache(_REMEMBERED)

    def active(self, scope_id: str, rulebook_id: str) -> ActiveRoute:
        """Where a rulebook id leads now; remembered from here on.

        Raises:
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        found = self._changes.active(scope_id, rulebook_id)
        # What is not there is not remembered: callers choose the name.
        if found.route is not None:
            with self._lock:
                self._seen[scope_id, rulebook_id] = found
        return found

    def remembered(self, scope_id: str, rulebook_id: str) -> ActiveRoute | None:
        """Where it led when this process last looked; None where it never did, or there was no route."""
        with self._lock:
            return self._seen.get((scope_id, rulebook_id))


class Routing:
    """The route of one request: the remembered route at the first try, and the active route after that."""

    def __init__(self, routes: Routes, scope_id: str) -> None:
        """Takes the routes, and the caller's scope."""
        self._routes = routes
        self._scope_id = scope_id
        self._tried = False

    def decide(self, reference: RulebookPointer | None, decide: Callable[[ActiveRoute | None], Answer]) -> Answer:
        """What `decide` makes of the route of a reference; None for one that names its version, or is none.

        Args:
            reference: The rulebook_ref of the request.
            decide: Decides by the route.
        """
        if reference is None or not {"hash", "version"}.isdisjoint(reference):
            return decide(None)
        rulebook_id = reference["rulebook_id"]
        remembered = None if self._tried else self._routes.remembered(self._scope_id, rulebook_id)
        self._tried = True
        if remembered is None:
            return decide(self._routes.active(self._scope_id, rulebook_id))
        try:
            return decide(remembered)
        except GateError:
            found = self._routes.active(self._scope_id, rulebook_id)
            if found.epoch == remembered.epoch:
                raise
        return decide(found)
