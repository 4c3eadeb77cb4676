"""A caller whose key a process remembers, and the rule that holds for it: every answer rests on the key as it is now.

    caller = Caller(directory, authority, "report", clock)
    with caller.confirming():
        body = parse(sent)              # a refusal leaves only if the key may still report

Looking up a key at every request would cost more than the decision. So a request uses the key that its process
remembers, and the ledger confirms it. The append compares the access epoch in its own transaction. A refusal, which
appends nothing, looks up the key before it is sent. The only answer to a disabled key is that it is disabled.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime

from gate.errors import GateError
from gate.ledger.access.authority import Authority
from gate.ledger.access.scopes import Directory


class Caller:
    """Who calls, for the length of one request.

    Attributes:
        authority: The authority as it is known by now.
    """

    __slots__ = ("_access", "_clock", "_directory", "authority")

    def __init__(self, directory: Directory, authority: Authority, access: str, clock: Callable[[], datetime]) -> None:
        """Takes the directory, the authority as it is remembered, the access that the request needs, and the clock."""
        self.authority = authority
        self._directory = directory
        self._access = access
        self._clock = clock

    @property
    def scope_id(self) -> str:
        """The caller's scope."""
        return self.authority.scope_id

    def confirm(self) -> Authority:
        """The authority as the ledger has it now.

        Raises:
            AccessForbidden: `SVC_API_UNAUTHORIZED`: the key is disabled or expired by now, or lacks the access.
            ServiceUnavailable: `SVC_STORAGE_UNAVAILABLE`.
        """
        self.authority = self._directory.confirm(self.authority, self._clock())
        self.authority.require(self._access)
        return self.authority

    def confirming(self) -> AbstractContextManager[None]:
        """Confirms the key before a refusal leaves the block; raises as `confirm` where it no longer holds."""
        return _Confirming(self)


class _Confirming(AbstractContextManager[None]):
    __slots__ = ("_caller",)

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __enter__(self) -> None:
        return

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, GateError):
            self._caller.confirm()
