"""The permissions of callers: plans, accounts, keys, and the authority of a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gate.errors import AccessForbidden
from gate.ids import timestamp


@dataclass(frozen=True, slots=True)
class Plan:
    """The permissions of a scope.

    Attributes:
        requests_per_minute: Decide requests a key in a sliding minute; None for no limit.
        records_per_month: Records a scope in a UTC month, unless the operator sets another cap; None for no cap.
    """

    requests_per_minute: int | None
    records_per_month: int | None


PLANS: Final = {
    "starter": Plan(20, 10_000),
    "team": Plan(600, 1_000_000),
    "unlimited": Plan(None, None),
}
ACCESS: Final = ("decide", "report", "read", "register", "resolve")
FULL_ACCESS: Final = frozenset(ACCESS) - {"resolve"}
"""Everything but `resolve`: a key that asks for decisions must not be able to grant the held ones as well."""


@dataclass(frozen=True, slots=True)
class Scope:
    """An account: what records, rulebooks and reports belong to.

    Attributes:
        scope_id: Internal random id.
        name: The operator's name for it.
        plan: `starter`, `team`, or `unlimited`.
        monthly_cap: Records it may make in a UTC month; None for no cap.
        chain_id: Its audit chain.
        created_at: UTC timestamp.
    """

    scope_id: str
    name: str
    plan: str
    monthly_cap: int | None
    chain_id: str
    created_at: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as operators see it, without its secret. Dates are UTC timestamps, or None."""

    key_id: str
    scope_id: str
    access: frozenset[str]
    created_at: str
    expires_at: str | None
    disabled_at: str | None
    last_used_at: str | None

    def status(self, now: datetime) -> str:
        """active, disabled or expired."""
        if self.disabled_at is not None:
            return "disabled"
        if self.expires_at is not None and timestamp(now) >= self.expires_at:
            return "expired"
        return "active"


# Not everybody who decides should register: the advice to take a stronger key would undo that.
_INSTEAD: Final = {
    "register": " and may not register rulebooks; cite a registered one in rulebook_ref, or ask the operator",
    "resolve": ": it may not grant or refuse held actions. The owner's tool needs its own key with that access",
}


@dataclass(frozen=True, slots=True)
class Authority:
    """Who calls: a scope and one of its keys, authenticated.

    Attributes:
        scope_id: The scope.
        key_id: The key.
        plan: The scope's plan.
        monthly_cap: Records the scope may make in a UTC month; None for no cap.
        access: The permissions of the key.
        access_epoch: Moves on with every change of the scope's keys and plan.
    """

    scope_id: str
    key_id: str
    plan: str
    monthly_cap: int | None
    access: frozenset[str]
    access_epoch: int

    def require(self, access: str) -> None:
        """Raises `AccessForbidden` (`SVC_API_UNAUTHORIZED`) where the key lacks an access of `ACCESS`."""
        if access not in self.access:
            raise AccessForbidden(
                "SVC_API_UNAUTHORIZED",
                f"The key {self.key_id} lacks the access {access!r}{_INSTEAD.get(access, '; use a key that has it')}.",
            )
