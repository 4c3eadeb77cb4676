"""Scopes and keys: made, listed, disabled, rotated, expired, and never kept in the clear."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select

from gate.errors import AccessForbidden, AccessRefused, OperatorError
from gate.ids import timestamp
from gate.ledger import Ledger
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.ledger.tables import metadata
from tests.support.samples import NOW
from tests.support.scopes import scope_of_old


def test_a_scope_is_created_once_and_found_by_name(ledger: Ledger) -> None:
    made = ledger.directory.create_scope("Acme-GmbH_2.eu", "team", NOW)
    assert ledger.directory.scope("Acme-GmbH_2.eu") == made
    assert (made.plan, made.created_at) == ("team", timestamp(NOW))
    assert [found.name for found in ledger.directory.scopes()] == ["Acme-GmbH_2.eu"]
    with pytest.raises(OperatorError) as refusal:
        ledger.directory.create_scope("Acme-GmbH_2.eu", "team", NOW)
    assert refusal.value.code == "SCOPE_EXISTS"


@pytest.mark.parametrize(
    "name",
    [
        "",
        " a",
        "a ",
        "a b",
        "a\n",
        "x" * 65,
        "a\u0000b",
        "-a",
        ".a",
        "_a",
        "caf\u00e9",
        "a/b",
        "</script>",
        "\u212aelvin",
        "\u0661",
    ],
)
def test_a_scope_needs_a_usable_name(ledger: Ledger, name: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        ledger.directory.create_scope(name, "team", NOW)
    assert refusal.value.code == "SCOPE_NAME_INVALID"
    assert "ASCII letters, digits, dots, underscores and hyphens" in refusal.value.message
    assert ledger.directory.scopes() == []


@pytest.mark.parametrize("name", ["a", "7", "A.b_c-9", "x" * 64])
def test_a_scope_may_be_named_with_letters_digits_and_marks(ledger: Ledger, name: str) -> None:
    assert ledger.directory.create_scope(name, "team", NOW).name == name


def test_two_scopes_may_not_differ_in_case_alone(ledger: Ledger) -> None:
    ledger.directory.create_scope("Acme", "team", NOW)
    with pytest.raises(OperatorError) as refusal:
        ledger.directory.create_scope("aCME", "team", NOW)
    assert (refusal.value.code, "'Acme'" in refusal.value.message) == ("SCOPE_EXISTS", True)
    assert [found.name for found in ledger.directory.scopes()] == ["Acme"]


def test_a_scope_with_a_name_of_an_earlier_release_goes_on(ledger: Ledger) -> None:
    directory, old = ledger.directory, scope_of_old(ledger, "Acme GmbH \u00e9", "team", NOW)
    assert directory.scope("Acme GmbH \u00e9") == old
    assert directory.set_plan(old, "unlimited", NOW).plan == "unlimited"
    key, _ = directory.create_key(old, FULL_ACCESS, None, NOW)
    assert directory.authenticate(key, NOW).scope_id == old.scope_id


def test_unknown_plans_scopes_keys_and_accesses_are_named(ledger: Ledger, scope: Scope) -> None:
    directory = ledger.directory
    attempts: dict[str, Callable[[], object]] = {
        "PLAN_UNKNOWN": lambda: directory.create_scope("x", "gold", NOW),
        "SCOPE_UNKNOWN": lambda: directory.scope("nobody"),
        "KEY_UNKNOWN": lambda: directory.disable_key("0123", NOW),
        "ACCESS_UNKNOWN": lambda: directory.create_key(scope, {"decide", "admin"}, None, NOW),
        "ACCESS_CONFLICT": lambda: directory.create_key(scope, {"resolve", "read", "decide"}, None, NOW),
        "KEY_EXPIRY_PAST": lambda: directory.create_key(scope, FULL_ACCESS, NOW, NOW),
    }
    for code, attempt in attempts.items():
        with pytest.raises(OperatorError) as refusal:
            attempt()
        assert refusal.value.code == code
    with pytest.raises(OperatorError):
        directory.create_key(scope, [], None, NOW)


def test_a_plan_can_be_changed(ledger: Ledger, scope: Scope) -> None:
    key, _ = ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)
    ledger.directory.set_plan(scope, "starter", NOW)
    assert ledger.directory.scope(scope.name).plan == "starter"
    assert ledger.directory.authenticate(key, NOW).plan == "starter"


@pytest.mark.parametrize(
    ("plan", "cap"), [("starter", -1), ("team", 2**53), ("team", 2**63), ("unlimited", 0), ("unlimited", 5)]
)
def test_a_cap_is_a_number_that_the_plan_can_have(ledger: Ledger, scope: Scope, plan: str, cap: int) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: ledger.directory.create_scope("x", plan, NOW, monthly_cap=cap),
        lambda: ledger.directory.set_plan(scope, plan, NOW, monthly_cap=cap),
    ]
    for attempt in attempts:
        with pytest.raises(OperatorError) as refusal:
            attempt()
        assert refusal.value.code == "CAP_INVALID"
    assert [(found.name, found.plan) for found in ledger.directory.scopes()] == [("acme", "unlimited")]


def test_a_plan_brings_its_cap_unless_the_operator_names_another(ledger: Ledger) -> None:
    made = ledger.directory.create_scope("x", "starter", NOW)
    assert made.monthly_cap == 10_000
    for plan, cap, expected in (
        ("starter", 0, 0),
        ("team", None, 1_000_000),
        ("team", 2**53 - 1, 2**53 - 1),
        ("unlimited", None, None),
    ):
        made = ledger.directory.set_plan(made, plan, NOW, monthly_cap=cap)
        assert ledger.directory.scope("x") == made
        assert (made.plan, made.monthly_cap) == (plan, expected)


def test_a_key_names_its_scope_and_only_its_hash_is_kept(ledger: Ledger, scope: Scope) -> None:
    key, made = ledger.directory.create_key(scope, {"decide", "read"}, None, NOW)
    prefix, key_id, secret = key.split("_", 2)
    assert (prefix, key_id) == ("dgk", made.key_id)
    assert key_id.startswith(scope.scope_id)
    assert len(secret) >= 43
    authority = ledger.directory.authenticate(key, NOW)
    assert (authority.scope_id, authority.key_id, authority.plan) == (scope.scope_id, key_id, "unlimited")
    assert authority.access == {"decide", "read"}
    with ledger.store.read() as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(select(table)):
                assert not [cell for cell in row if secret in str(cell)], (table.name, row)


def test_an_access_that_a_key_lacks_is_forbidden(ledger: Ledger, scope: Scope) -> None:
    key, _ = ledger.directory.create_key(scope, {"read"}, None, NOW)
    authority = ledger.directory.authenticate(key, NOW)
    authority.require("read")
    with pytest.raises(AccessForbidden, match="'decide'"):
        authority.require("decide")


@pytest.mark.parametrize(
    "change",
    [
        lambda key: "",
        lambda key: "dgk",
        lambda key: "dgk__",
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.upper(),
        lambda key: key.replace("dgk_", "xxx_"),
        lambda key: f"dgk_{'0' * 24}_{key.split('_', 2)[2]}",
        lambda key: key.replace("_", "_ ", 1),
        lambda key: "dgk_" + "a" * 5000,
        lambda key: "dgk_é_\u0000",
    ],
)
def test_a_key_that_is_not_exactly_right_is_unknown(ledger: Ledger, key: str, change: object) -> None:
    assert callable(change)
    with pytest.raises(AccessRefused) as refusal:
        ledger.directory.authenticate(change(key), NOW)
    assert not isinstance(refusal.value, AccessForbidden)
    assert refusal.value.code == "SVC_API_UNAUTHORIZED"


def test_a_disabled_key_is_refused_at_once_and_for_good(ledger: Ledger, key: str) -> None:
    (made,) = ledger.directory.keys()
    first = ledger.directory.disable_key(made.key_id, NOW)
    again = ledger.directory.disable_key(made.key_id, NOW + timedelta(days=1))
    assert first.disabled_at == again.disabled_at == timestamp(NOW)
    with pytest.raises(AccessForbidden, match="disabled"):
        ledger.directory.authenticate(key, NOW)


def test_a_key_expires_at_its_moment(ledger: Ledger, scope: Scope) -> None:
    key, made = ledger.directory.create_key(scope, FULL_ACCESS, NOW + timedelta(hours=1), NOW)
    ledger.directory.authenticate(key, NOW + timedelta(minutes=59))
    with pytest.raises(AccessForbidden, match="expired"):
        ledger.directory.authenticate(key, NOW + timedelta(hours=1))
    assert made.status(NOW + timedelta(hours=2)) == "expired"


def test_rotation_gives_a_new_key_with_the_same_access_and_ends_the_old(ledger: Ledger, scope: Scope) -> None:
    old, made = ledger.directory.create_key(scope, {"decide"}, NOW + timedelta(days=9), NOW)
    new, replacement = ledger.directory.rotate_key(made.key_id, timedelta(), NOW)
    assert (replacement.access, replacement.expires_at) == (made.access, made.expires_at)
    assert ledger.directory.authenticate(new, NOW).scope_id == scope.scope_id
    with pytest.raises(AccessForbidden):
        ledger.directory.authenticate(old, NOW)
    with pytest.raises(OperatorError) as refusal:
        ledger.directory.rotate_key(made.key_id, timedelta(), NOW)
    assert refusal.value.code == "KEY_NOT_ACTIVE"


def test_rotation_can_leave_the_old_key_working_for_a_while(ledger: Ledger, scope: Scope) -> None:
    old, made = ledger.directory.create_key(scope, FULL_ACCESS, None, NOW)
    ledger.directory.rotate_key(made.key_id, timedelta(hours=2), NOW)
    ledger.directory.authenticate(old, NOW + timedelta(hours=1))
    with pytest.raises(AccessForbidden):
        ledger.directory.authenticate(old, NOW + timedelta(hours=2))


def test_an_overlap_never_extends_a_key(ledger: Ledger, scope: Scope) -> None:
    old, made = ledger.directory.create_key(scope, FULL_ACCESS, NOW + timedelta(hours=1), NOW)
    ledger.directory.rotate_key(made.key_id, timedelta(hours=2), NOW)
    with pytest.raises(AccessForbidden):
        ledger.directory.authenticate(old, NOW + timedelta(hours=1))


def test_the_last_use_is_kept_to_the_minute(ledger: Ledger, key: str) -> None:
    def last_used() -> str | None:
        return ledger.directory.keys()[0].last_used_at

    assert last_used() is None
    ledger.directory.authenticate(key, NOW)
    assert last_used() == timestamp(NOW)
    ledger.directory.authenticate(key, NOW + timedelta(seconds=59))
    assert last_used() == timestamp(NOW)
    ledger.directory.authenticate(key, NOW + timedelta(seconds=60))
    assert last_used() == timestamp(NOW + timedelta(seconds=60))
