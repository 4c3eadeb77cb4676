"""Users of the workbench: added, granted roles, signed in, kept signed in, and refused all alike."""

from __future__ import annotations

import os
import pwd
import socket
import unicodedata
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

import pytest
from nacl.pwhash import argon2id

from gate.errors import AccessRefused, OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access import passwords, users
from gate.ledger.access.authority import Scope
from gate.ledger.access.users import ROLES, Act, User, Users, may
from tests.support.samples import NOW, in_threads, ledger_url, rows_of

PASSWORD: Final = "correct horse battery"
OTHER: Final = "staple of the battery"
A_SECOND: Final = timedelta(seconds=1)
A_DAY: Final = timedelta(days=1)

Change: TypeAlias = Callable[[Users, Scope], User]


class Counted:
    """Stands for argon2id: hashes with the least work there is, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def str(self, password: bytes, opslimit: int, memlimit: int) -> bytes:
        self.times += 1
        return argon2id.str(password, argon2id.OPSLIMIT_MIN, argon2id.MEMLIMIT_MIN)

    def verify(self, password_hash: bytes, password: bytes) -> bool:
        self.times += 1
        return argon2id.verify(password_hash, password)


@pytest.fixture(autouse=True)
def hashing(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Real hashes take a tenth of a second each."""
    counted = Counted()
    monkeypatch.setattr(passwords, "argon2id", counted)
    return counted


@pytest.fixture
def other(ledger: Ledger) -> Scope:
    return ledger.directory.create_scope("other", "team", NOW)


@pytest.fixture
def ada(ledger: Ledger, scope: Scope) -> User:
    return ledger.users.add("ada", PASSWORD, [scope], "author", None, NOW)


def refusal_of(attempt: Callable[[], object]) -> str:
    with pytest.raises(OperatorError) as refusal:
        attempt()
    return refusal.value.code


def logged(ledger: Ledger, beginning: str = "user.") -> list[tuple[str, str, Any]]:
    entries = ledger.operator_log.latest(1000)
    assert ledger.operator_log.find_break() is None
    return [(entry.action, entry.subject, entry.details) for entry in entries if entry.action.startswith(beginning)]


def test_a_user_is_added_listed_and_found_by_name(ledger: Ledger, scope: Scope, other: Scope) -> None:
    ends = NOW + A_DAY
    made = ledger.users.add("Zoe.b-1", PASSWORD, [other, scope, other], "approver", ends, NOW)
    assert made == User(
        user_id=made.user_id,
        name="Zoe.b-1",
        roles={scope.scope_id: "approver", other.scope_id: "approver"},
        scopes={scope.scope_id: "acme", other.scope_id: "other"},
        created_at=timestamp(NOW),
        expires_at=timestamp(ends),
        disabled_at=None,
        last_sign_in_at=None,
        epoch=0,
    )
    assert made.user_id.startswith("usr_")
    ben = ledger.users.add("ben", PASSWORD, [other], "viewer", None, NOW + A_SECOND)
    assert ben.user_id > made.user_id
    assert ledger.users.user("Zoe.b-1") == made
    assert ledger.users.users() == [made, ben]
    assert (ledger.users.users(scope), ledger.users.users(other)) == ([made], [made, ben])
    assert logged(ledger)[0] == (
        "user.added",
        "Zoe.b-1",
        {"scopes": ["acme", "other"], "role": "approver", "expires_at": timestamp(ends)},
    )


def test_what_a_user_cannot_be_is_refused_and_not_logged(ledger: Ledger, scope: Scope, ada: User) -> None:
    before = rows_of(ledger.store)

    def add(name: str = "ben", password: str = PASSWORD, role: str = "viewer", days: int = 1) -> Callable[[], object]:
        return lambda: ledger.users.add(name, password, [scope], role, NOW + days * A_DAY, NOW)

    unnamed = ["", "-a", "a b", "caf\u00e9", "x" * 65, "a\0b", "\udcff"]
    assert {refusal_of(add(name)) for name in unnamed} == {"USER_NAME_INVALID"}
    assert {refusal_of(add(name)) for name in ("ada", "ADA", "aDa")} == {"USER_EXISTS"}
    unfit = ["", "x" * 11, "\u00e9" * 257, "x" * 100_000, "\ud800" * 12, "e\u0301" * 11]
    assert {refusal_of(add(password=password)) for password in unfit} == {"PASSWORD_UNFIT"}
    assert refusal_of(add("a-longer-name", "A-Longer-Name")) == "PASSWORD_UNFIT"
    assert refusal_of(add(role="admin")) == "ROLE_UNKNOWN"
    assert refusal_of(add(days=0)) == "USER_EXPIRY_PAST"
    assert rows_of(ledger.store) == before


def test_an_operators_link_signs_a_user_in_who_may_and_is_logged(ledger: Ledger, ada: User) -> None:
    later = NOW + A_SECOND
    let_in = ledger.users.let_in("ada", later)
    assert (let_in.user_id, let_in.epoch, let_in.last_sign_in_at) == (ada.user_id, ada.epoch, timestamp(later))
    assert logged(ledger)[-1] == ("user.signed_in", "ada", {})
    ledger.users.disable("ada", later)
    before = rows_of(ledger.store)
    with pytest.raises(AccessRefused):
        ledger.users.let_in("ada", later)
    assert refusal_of(lambda: ledger.users.let_in("ben", later)) == "USER_UNKNOWN"
    assert rows_of(ledger.store) == before


def test_a_name_is_refused_before_a_password_is_asked_for(ledger: Ledger, ada: User) -> None:
    ledger.users.require_addable("ben", "viewer", None, NOW)
    assert refusal_of(lambda: ledger.users.require_addable("Ada", "viewer", None, NOW)) == "USER_EXISTS"


@pytest.mark.parametrize("names", [("ada",) * 6, ("ada", "Ada", "aDa", "adA", "ADa", "ADA")])
def test_of_users_that_are_added_at_once_under_one_name_there_is_one(
    ledger: Ledger, scope: Scope, names: tuple[str, ...]
) -> None:
    ledgers = [open_ledger(ledger_url(ledger)) for _ in names]

    def add(number: int) -> str:
        try:
            return ledgers[number].users.add(names[number], PASSWORD, [scope], "viewer", None, NOW).user_id
        except OperatorError as error:
            return error.code

    made = in_threads(len(names), add)
    assert made.count("USER_EXISTS") == len(names) - 1
    assert [user.user_id in made for user in ledger.users.users()] == [True]
    assert [action for action, *_ in logged(ledger)] == ["user.added"]
    for opened in ledgers:
        opened.close()


@pytest.mark.parametrize(
    ("password", "typed"),
    [
        ("\u00e9" * 12, "e\u0301" * 12),
        ("\uac01" * 256, unicodedata.normalize("NFD", "\uac01" * 256)),
        ("\U0001f600" * 256, "\U0001f600" * 256),
        (" \0\t twelve. ", " \0\t twelve. "),
    ],
    ids=["another form", "three for one", "bytes", "odd"],
)
def test_a_password_is_any_text_however_it_is_composed(ledger: Ledger, scope: Scope, password: str, typed: str) -> None:
    ledger.users.add("ada", password, [scope], "viewer", None, NOW)
    assert ledger.users.sign_in("ada", typed, NOW).name == "ada"
    with pytest.raises(AccessRefused):
        ledger.users.sign_in("ada", password[:-1], NOW)


def test_a_sign_in_is_remembered_and_logged(ledger: Ledger, scope: Scope, ada: User) -> None:
    later = NOW + A_SECOND
    user = ledger.users.sign_in("ada", PASSWORD, later)
    assert (user.user_id, user.epoch, user.last_sign_in_at) == (ada.user_id, ada.epoch, timestamp(later))
    assert user.roles == {scope.scope_id: "author"}
    assert ledger.users.user("ada") == user
    entry = ledger.operator_log.latest(1)[0]
    assert (entry.action, entry.subject, entry.operator) == ("user.signed_in", "ada", "ada (workbench)")


def refused_sign_ins(ledger: Ledger, scope: Scope) -> dict[str, tuple[str, str]]:
    """A name and a password for each reason to refuse a sign-in at `NOW` and a day."""
    for name, expires in (("right", None), ("gone", None), ("old", NOW + A_DAY)):
        ledger.users.add(name, PASSWORD, [scope], "viewer", expires, NOW)
    ledger.users.disable("gone", NOW)
    return {
        "wrong_password": ("right", OTHER),
        "unknown_name": ("nobody", PASSWORD),
        "disabled": ("gone", PASSWORD),
        "expired": ("old", PASSWORD),
    }


def test_every_refusal_says_and_costs_the_same(
    ledger: Ledger, scope: Scope, hashing: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refused_sign_ins(ledger, scope)
    probed: list[None] = []
    monkeypatch.setattr(ledger.store, "probe", lambda: probed.append(None))
    told, hashed, waited = set(), [], []
    for number in range(2):
        for name, password in (*refused.values(), ("nobody-else", PASSWORD), ("\0", PASSWORD), ("\udcff", PASSWORD)):
            hashes, writes = hashing.times, len(probed) + len(logged(ledger))
            with pytest.raises(AccessRefused) as refusal:
                ledger.users.sign_in(name, password, NOW + A_DAY + number * A_SECOND)
            told.add((type(refusal.value), str(refusal.value)))
            hashed.append(hashing.times - hashes)
            waited.append(len(probed) + len(logged(ledger)) - writes)
    assert len(told) == 1
    assert told.pop()[1].startswith("SIGN_IN_REFUSED: The name or the password is wrong")
    assert set(hashed) == {1}
    assert set(waited) == {1}, "each waited once for the disk"


def test_refusals_are_logged_with_their_reason_once_a_minute_and_without_what_was_typed(
    ledger: Ledger, scope: Scope
) -> None:
    refused = refused_sign_ins(ledger, scope)
    before, begin = len(logged(ledger)), NOW + A_DAY
    for seconds in (0, 1, 59, 60, 61):
        for name, password in (*refused.values(), ("a-mistyped-password", PASSWORD)):
            with pytest.raises(AccessRefused):
                ledger.users.sign_in(name, password, begin + seconds * A_SECOND)
    subjects = {reason: "unknown" if reason == "unknown_name" else name for reason, (name, _) in refused.items()}
    first = [("user.sign_in_refused", subject, {"reason": reason}) for reason, subject in subjects.items()]
    # Two names are unknown, of which one was logged each time.
    unlogged = {subject: 5 if subject == "unknown" else 2 for subject in subjects.values()}
    again = [(*entry, subject, {**of, "refusals_not_logged": unlogged[subject]}) for *entry, subject, of in first]
    assert logged(ledger)[before:] == first + again
    assert {entry.operator for entry in ledger.operator_log.latest(8)} == {
        f"{name} (workbench)" for name in ("right", "unknown", "gone", "old")
    }
    assert "mistyped" not in str(rows_of(ledger.store))


def test_a_sign_in_says_how_many_refusals_before_it_were_not_logged(ledger: Ledger, ada: User) -> None:
    for _ in range(4):
        with pytest.raises(AccessRefused):
            ledger.users.sign_in("ada", OTHER, NOW)
    for _ in range(2):
        ledger.users.sign_in("ada", PASSWORD, NOW)
    assert logged(ledger)[-3:] == [
        ("user.sign_in_refused", "ada", {"reason": "wrong_password"}),
        ("user.signed_in", "ada", {"refusals_not_logged": 3}),
        ("user.signed_in", "ada", {}),
    ]


def test_a_lockout_is_logged_once_a_minute_without_what_was_typed(ledger: Ledger, ada: User) -> None:
    for seconds in (0, 1, 60):
        for name in ("ada", "a-mistyped-password", "another\0"):
            ledger.users.log_lockout(name, "203.0.113.9", ["name", "both"], NOW + seconds * A_SECOND)
    details = {"address": "203.0.113.9", "counted_by": ["both", "name"]}
    expected = [("user.sign_in_locked", subject, details) for subject in ("ada", "unknown")]
    assert logged(ledger)[1:] == expected * 2
    assert "mistyped" not in str(rows_of(ledger.store))


def test_a_clock_that_was_set_back_hides_no_refusal(ledger: Ledger, ada: User) -> None:
    for days in (2, 1):
        with pytest.raises(AccessRefused):
            ledger.users.sign_in("ada", OTHER, NOW + days * A_DAY)
    assert [action for action, *_ in logged(ledger)] == ["user.added", *["user.sign_in_refused"] * 2]


CHANGES: Final[dict[str, Change]] = {
    "user.granted": lambda of, scope: of.grant("ada", scope, "viewer", NOW),
    "user.revoked": lambda of, scope: of.revoke("ada", scope, NOW),
    "user.password_set": lambda of, scope: of.set_password("ada", OTHER, NOW),
    "user.disabled": lambda of, scope: of.disable("ada", NOW),
    "user.signed_out": lambda of, scope: of.sign_out("ada", NOW),
}
DETAILS: Final[dict[str, Any]] = {
    "user.granted": {"scope": "acme", "role": "viewer"},
    "user.revoked": {"scope": "acme", "role": "author"},
}


@pytest.mark.parametrize("action", CHANGES)
def test_a_change_ends_every_session_at_once_and_is_logged(
    ledger: Ledger, scope: Scope, ada: User, action: str
) -> None:
    elsewhere = open_ledger(ledger_url(ledger))
    user = elsewhere.users.sign_in("ada", PASSWORD, NOW)
    assert elsewhere.users.current(user.user_id, user.epoch, NOW) == user
    changed = CHANGES[action](ledger.users, scope)
    assert changed == ledger.users.user("ada")
    assert changed.epoch > user.epoch
    assert elsewhere.users.current(user.user_id, user.epoch, NOW) is None
    assert elsewhere.users.ended(user.user_id, NOW) == ("disabled" if action == "user.disabled" else "changed")
    entry = ledger.operator_log.latest(1)[0]
    assert (entry.action, entry.subject, entry.details) == (action, "ada", DETAILS.get(action, {}))
    assert entry.operator == f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"
    elsewhere.close()


def test_a_session_has_the_roles_of_this_moment(ledger: Ledger, scope: Scope, other: Scope, ada: User) -> None:
    def roles() -> dict[str, str]:
        user = ledger.users.sign_in("ada", PASSWORD, NOW)
        current = ledger.users.current(user.user_id, user.epoch, NOW)
        assert current == user
        return {current.scopes[scope_id]: role for scope_id, role in current.roles.items()}

    assert roles() == {"acme": "author"}
    ledger.users.grant("ada", scope, "viewer", NOW)
    ledger.users.grant("ada", other, "approver", NOW)
    assert roles() == {"acme": "viewer", "other": "approver"}
    ledger.users.revoke("ada", scope, NOW)
    assert roles() == {"other": "approver"}
    ledger.users.revoke("ada", other, NOW)
    assert roles() == {}
    assert ledger.users.users(other) == []


def test_a_change_that_changes_nothing_ends_no_session_and_is_not_logged(
    ledger: Ledger, scope: Scope, other: Scope, ada: User
) -> None:
    before = rows_of(ledger.store)
    assert ledger.users.grant("ada", scope, "author", NOW) == ada
    assert ledger.users.enable("ada", NOW) == ada
    assert refusal_of(lambda: ledger.users.revoke("ada", other, NOW)) == "ROLE_MISSING"
    assert refusal_of(lambda: ledger.users.grant("ada", scope, "admin", NOW)) == "ROLE_UNKNOWN"
    assert refusal_of(lambda: ledger.users.set_password("ada", "short", NOW)) == "PASSWORD_UNFIT"
    assert rows_of(ledger.store) == before
    first, again = (ledger.users.disable("ada", NOW + days * A_DAY) for days in range(2))
    assert first == again
    assert first.disabled_at == timestamp(NOW)


@pytest.mark.parametrize("name", ["nobody", "Ada", "", "a\0", "\udcff"])
def test_nobody_is_called_unknown(ledger: Ledger, scope: Scope, ada: User, name: str) -> None:
    of = ledger.users
    attempts: list[Callable[[], object]] = [
        lambda: of.user(name),
        lambda: of.grant(name, scope, "viewer", NOW),
        lambda: of.revoke(name, scope, NOW),
        lambda: of.set_password(name, PASSWORD, NOW),
        lambda: of.disable(name, NOW),
        lambda: of.enable(name, NOW),
        lambda: of.sign_out(name, NOW),
    ]
    assert {refusal_of(attempt) for attempt in attempts} == {"USER_UNKNOWN"}


def test_a_disabled_user_is_enabled_with_the_same_password_and_no_session(ledger: Ledger, ada: User) -> None:
    ledger.users.disable("ada", NOW)
    user = ledger.users.user("ada")
    assert (user.status(NOW), ledger.users.current(user.user_id, user.epoch, NOW)) == ("disabled", None)
    assert ledger.users.enable("ada", NOW).status(NOW) == "active"
    assert ledger.users.current(ada.user_id, ada.epoch, NOW) is None
    assert ledger.users.sign_in("ada", PASSWORD, NOW).status(NOW) == "active"


def test_an_expired_user_signs_in_again_after_a_later_expiry(ledger: Ledger, scope: Scope) -> None:
    ends = NOW + A_DAY
    made = ledger.users.add("ada", PASSWORD, [scope], "viewer", ends, NOW)
    assert ledger.users.current(made.user_id, made.epoch, ends - A_SECOND) == made
    assert ledger.users.current(made.user_id, made.epoch, ends) is None
    assert ledger.users.ended(made.user_id, ends) == "expired"
    assert refusal_of(lambda: ledger.users.enable("ada", ends, ends)) == "USER_EXPIRY_PAST"
    assert ledger.users.enable("ada", ends).status(ends) == "expired"
    later = ledger.users.enable("ada", ends, ends + A_DAY)
    assert (later.expires_at, later.status(ends)) == (timestamp(ends + A_DAY), "active")
    assert ledger.users.sign_in("ada", PASSWORD, ends).user_id == made.user_id


@pytest.mark.parametrize("user_id", ["usr_0", "", "a\0", "\udcff"])
def test_an_unknown_session_is_over(ledger: Ledger, ada: User, user_id: str) -> None:
    assert ledger.users.current(user_id, 0, NOW) is None
    assert ledger.users.current(ada.user_id, ada.epoch + 1, NOW) is None


def test_a_new_password_takes_the_place_of_the_old(ledger: Ledger, ada: User) -> None:
    ledger.users.set_password("ada", OTHER, NOW, by="ada")
    assert ledger.operator_log.latest(1)[0].operator == "ada (workbench)"
    with pytest.raises(AccessRefused):
        ledger.users.sign_in("ada", PASSWORD, NOW)
    assert ledger.users.sign_in("ada", OTHER, NOW).epoch == ada.epoch + 1
    ledger.users.sign_out("ada", NOW, by="ada")
    assert ledger.operator_log.latest(1)[0].operator == "ada (workbench)"


@pytest.mark.parametrize("change", ["user.password_set", "user.disabled"])
def test_a_change_while_a_password_is_verified_counts(
    ledger: Ledger, scope: Scope, ada: User, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    def matches(password: str, password_hash: str | None) -> bool:
        CHANGES[change](ledger.users, scope)
        return passwords.matches(password, password_hash)

    monkeypatch.setattr(users, "matches", matches)
    with pytest.raises(AccessRefused):
        ledger.users.sign_in("ada", PASSWORD, NOW)


def test_no_password_and_no_hash_leaves_the_table_of_users(ledger: Ledger, ada: User) -> None:
    ledger.users.set_password("ada", OTHER, NOW)
    user = ledger.users.sign_in("ada", OTHER, NOW)
    with pytest.raises(AccessRefused) as refusal:
        ledger.users.sign_in("ada", PASSWORD, NOW)
    rows = rows_of(ledger.store)
    (row,) = rows.pop("users")
    (password_hash,) = [cell for cell in row if str(cell).startswith("$argon2id$")]
    for secret in (PASSWORD, OTHER, password_hash, password_hash.rpartition("$")[2]):
        assert secret not in f"{user!r}{asdict(user)}{ledger.users!r}{refusal.value!r}{rows}"
    assert not [cell for cell in row if OTHER in str(cell)]


def test_a_password_is_hashed_as_slowly_as_is_meant_for_sign_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def hashed(password: bytes, opslimit: int, memlimit: int) -> bytes:
        asked.append((opslimit, memlimit))
        return b"$argon2id$"

    monkeypatch.setattr(passwords, "argon2id", SimpleNamespace(str=hashed))
    passwords.hash_password(PASSWORD, "ada")
    assert passwords.matches(PASSWORD, None) is False
    assert asked == [(argon2id.OPSLIMIT_INTERACTIVE, argon2id.MEMLIMIT_INTERACTIVE)] * 2


def test_a_damaged_hash_is_nobodys(ledger: Ledger) -> None:
    for damaged in ("", "x", "$argon2id$v=19$", "$argon2id$" + "x" * 200):
        assert passwords.matches(PASSWORD, damaged) is False


def test_where_the_log_cannot_be_written_nothing_is_changed(ledger: Ledger, scope: Scope, ada: User) -> None:
    def execute(sql: str) -> None:
        with ledger.store.write() as connection:
            connection.exec_driver_sql(sql)

    before = rows_of(ledger.store)
    execute("ALTER TABLE operator_log RENAME TO gone")
    attempts: list[Callable[[], object]] = [
        lambda: ledger.users.add("ben", PASSWORD, [scope], "viewer", None, NOW),
        lambda: ledger.users.sign_in("ada", PASSWORD, NOW),
        lambda: ledger.users.sign_in("ada", OTHER, NOW),
        *(lambda change=change: change(ledger.users, scope) for change in CHANGES.values()),
    ]
    for attempt in attempts:
        with pytest.raises(ServiceUnavailable):
            attempt()
    execute("ALTER TABLE gone RENAME TO operator_log")
    assert rows_of(ledger.store) == before


@pytest.mark.parametrize(
    ("act", "roles"),
    [
        ("see", {"viewer", "author", "approver"}),
        ("dismiss", {"author", "approver"}),
        ("draft", {"author"}),
        ("approve", {"approver"}),
    ],
)
def test_a_role_allows_its_acts_and_no_other(act: Act, roles: set[str]) -> None:
    assert {role for role in (*ROLES, "admin", "", None) if may(role, act)} == roles
