"""Who may see which scope: a foreign one and an unknown one are refused alike."""

from __future__ import annotations

import pytest

from gate.errors import AccessForbidden, AccessRefused
from gate.ledger.access.users import Act, User
from workbench.dashboard.store.access import access


def user(**roles: str) -> User:
    """A user with roles in scopes, whose ids are their names turned round."""
    return User(
        "usr_1",
        "ada",
        {name[::-1]: role for name, role in roles.items()},
        {name[::-1]: name for name in roles},
        created_at="2026-01-01T00:00:00.000Z",
        expires_at=None,
        disabled_at=None,
        last_sign_in_at=None,
        epoch=1,
    )


def test_a_scope_is_found_by_its_name_and_the_first_one_without_a_name() -> None:
    ada = user(zeta="viewer", acme="author")
    assert (access(ada, None).scope, access(ada, None).scope_id, access(ada, None).role) == ("acme", "emca", "author")
    assert (access(ada, "zeta").scope_id, access(ada, "zeta").role) == ("atez", "viewer")


@pytest.mark.parametrize("scope", ["other", "emca", "ACME", "", "acme ", "\0"])
def test_every_other_scope_is_refused_alike(scope: str) -> None:
    with pytest.raises(AccessForbidden) as refused:
        access(user(acme="approver"), scope)
    assert refused.value.code == "DASHBOARD_SCOPE_UNKNOWN"
    assert "That scope does not exist, or you have no access to it." in refused.value.message
    assert scope.strip() not in refused.value.message or not scope.strip("\0 ")


def test_a_user_without_a_scope_and_nobody_are_told_what_to_do() -> None:
    with pytest.raises(AccessForbidden, match="gate users grant"):
        access(user(), None)
    with pytest.raises(AccessRefused, match="Sign in again"):
        access(None, "acme")


@pytest.mark.parametrize(
    ("role", "acts"),
    [("viewer", {"see"}), ("author", {"see", "dismiss", "draft"}), ("approver", {"see", "dismiss", "approve"})],
)
def test_a_role_allows_its_acts_and_no_others(role: str, acts: set[Act]) -> None:
    who = access(user(acme=role), "acme")
    every: tuple[Act, ...] = ("see", "dismiss", "draft", "approve")
    for act in every:
        assert who.may(act) == (act in acts)
        if act in acts:
            who.require(act)
        else:
            with pytest.raises(AccessForbidden, match=f"role {role} in scope acme"):
                who.require(act)
