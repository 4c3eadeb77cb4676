"""The user of a request, the scope, and the rights there. Looked up for every page and every act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gate.errors import AccessForbidden, AccessRefused
from gate.ledger.access.users import Act, User, may

SIGNED_OUT: Final = "DASHBOARD_SIGNED_OUT"
"""The code of the error where nobody is signed in, or not any more."""


@dataclass(frozen=True, slots=True)
class Access:
    """A user in one of their scopes.

    Attributes:
        user: The user, as the ledger has them now.
        scope_id: The scope.
        scope: Its name.
        role: The user's role in it.
    """

    user: User
    scope_id: str
    scope: str
    role: str

    def may(self, act: Act) -> bool:
        """Whether the user's role in the scope allows an act."""
        return may(self.role, act)

    def require(self, act: Act) -> None:
        """Requires that the user's role in the scope allows an act.

        Raises:
            AccessForbidden: `DASHBOARD_FORBIDDEN`.
        """
        if not self.may(act):
            raise AccessForbidden(
                "DASHBOARD_FORBIDDEN",
                f"The role {self.role} in scope {self.scope} cannot do this; ask an operator for another role.",
            )


def access(user: User | None, scope: str | None) -> Access:
    """The access of a user to a scope.

    Args:
        user: The user; None where nobody is signed in, or not any more.
        scope: The scope's name; the first of the user's scopes by name where None.

    Raises:
        AccessRefused: `DASHBOARD_SIGNED_OUT`: there is no user.
        AccessForbidden: `DASHBOARD_SCOPE_UNKNOWN`: the scope does not exist, or the user may not see it. The two look
            the same; or `DASHBOARD_NO_SCOPE`.
    """
    if user is None:
        raise AccessRefused(SIGNED_OUT, "You are signed out. Sign in again.")
    names = sorted((name, scope_id) for scope_id, name in user.scopes.items())
    if not names:
        raise AccessForbidden(
            "DASHBOARD_NO_SCOPE", "Your user has no access to any scope. Ask an operator to run `gate users grant`."
        )
    for name, scope_id in names:
        if scope in (None, name):
            return Access(user, scope_id, name, user.roles[scope_id])
    raise AccessForbidden(
        "DASHBOARD_SCOPE_UNKNOWN",
        "That scope does not exist, or you have no access to it. Choose a scope in the list, or ask an operator.",
    )
