"""Backups: an instance in one file, made while it works, laid out anew from it, or not at all."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from sqlalchemy import text

from gate.clock import utc_now
from gate.decisions.erasure import erase
from gate.errors import GateError, OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.instance import backup
from gate.instance.audit import check_chain
from gate.instance.backup import make_backup, restore_backup
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import FULL_ACCESS, Scope
from gate.ledger.access.dismissals import FlaggedAnomaly
from gate.ledger.chain.reviews import Terms
from gate.ledger.chain.writer import Appended
from gate.ledger.stores.copies import copy_pages
from gate.ledger.stores.sqlite import SqliteLedgerStore
from gate.ledger.stores.store import Store
from gate.proof import chain
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES
from gate.verify import verify_record
from tests.support.entries import entry
from tests.support.postgres import Postgres
from tests.support.samples import GRANT, HELD, PILOT, copy_as_release, in_threads, rows_of, sample_request
from tests.support.scopes import scope_of_old

PASSWORD: Final = "correct horse battery"

Open: TypeAlias = Callable[..., Instance]
NewDatabase: TypeAlias = Callable[[str], str | None]


@pytest.fixture
def databases(request: pytest.FixtureRequest) -> Iterator[NewDatabase]:
    """Makes a fresh database of a kind; None stands for the file in the home."""
    with ExitStack() as made:

        def new(kind: str) -> str | None:
            server: Postgres | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
            return None if server is None else made.enter_context(server.database())

        yield new


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens instances, and closes them in the end."""
    with ExitStack() as instances:

        def open_(home: Path, database_url: str | None = None) -> Instance:
            instance = open_instance(load_settings(home, database_url=database_url))
            instances.callback(instance.close)
            return instance

        yield open_


@pytest.fixture
def used(instance: Instance, scope: Scope, key: str) -> Instance:
    """An instance that decided, with an idempotency key and a cap in use, and a key disabled."""
    fill(instance, key)
    return instance


def fill(instance: Instance, key: str) -> None:
    directory = instance.ledger.directory
    capped = scope_of_old(instance.ledger, "capped \u00e9", "starter", utc_now(), monthly_cap=5)
    second, _ = directory.create_key(capped, {"decide", "register"}, None, utc_now())
    for sender in (key, second):
        for number in range(2):
            assert decide(instance, sender, f"order-{number}")[0] == "created"
    _, gone = directory.create_key(capped, FULL_ACCESS, None, utc_now())
    directory.disable_key(gone.key_id, utc_now())
    instance.ledger.users.add("ada", PASSWORD, [capped], "author", None, utc_now())
    flagged = FlaggedAnomaly("ano_0", "pricing_exception", "high", 0.9)
    instance.ledger.dismissals.dismiss(capped, flagged, "Known: \u00e9.", "ada", utc_now())
    instance.pilots.submit(PILOT, utc_now())


def report_and_erase(instance: Instance, key: str) -> None:
    """An outcome of the first decision under a key, and an erasure of the second."""
    authority = instance.ledger.directory.authenticate(key, utc_now())
    first, second = (decide(instance, key, f"order-{number}")[1]["decision_id"] for number in range(2))
    instance.lifecycle().report(authority, OUTCOMES, first, {"outcome_status": "succeeded"})
    erase(instance.ledger, second, "asked for", utc_now())


def resolve(instance: Instance, scope: Scope, key: str) -> str:
    """A held decision with an owner, its grant, and a receipt behind it; the decision's id."""
    directory = instance.ledger.directory
    authority = directory.authenticate(key, utc_now())
    owner = directory.authenticate(directory.create_key(scope, {"resolve"}, None, utc_now())[0], utc_now())
    instance.ledger.review_owners.set(scope, "", "", Terms("desk \u00e9", 3_600, 60), utc_now())
    decided = instance.gate().decide(authority, sample_request(**HELD), request_id="req_0").record["decision_id"]
    instance.resolutions().resolve(owner, decided, GRANT, idempotency_key="grant-1")
    reported = instance.lifecycle().report(authority, EXECUTIONS, decided, {"execution_status": "executed"})
    receipt: Any = reported.report
    assert receipt["flags"] == []
    return decided


def decide(instance: Instance, key: str, idempotency_key: str) -> tuple[str, Any]:
    authority = instance.ledger.directory.authenticate(key, utc_now())
    request = sample_request(discount_percent=10, margin_percent=22, note="\u0000\U0001f600")
    decision = instance.gate().decide(authority, request, request_id="req_0", idempotency_key=idempotency_key)
    return decision.status, decision.record


def contents(store: Store) -> dict[str, Any]:
    """Every row but what was logged since the backup."""
    rows: dict[str, Any] = rows_of(store)
    rows["operator_log"] = [row for row in rows["operator_log"] if "instance.restored" not in row]
    return rows


def key_files(instance: Instance) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (instance.settings.home / "keys").iterdir()}


def refusal(attempt: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(OperatorError) as refused:
        attempt(*arguments)
    return refused.value.code


def is_instance(home: Path) -> bool:
    try:
        open_instance(load_settings(home)).close()
    except OperatorError:
        return False
    return True


@pytest.mark.parametrize(
    ("source", "target"), [("sqlite", "sqlite"), ("sqlite", "postgresql"), ("postgresql", "sqlite")]
)
def test_what_is_restored_is_what_was_backed_up_on_whatever_database(
    tmp_path: Path,
    databases: NewDatabase,
    opened: Open,
    source: str,
    target: str,
) -> None:
    from_url, to_url = databases(source), databases(target)
    create_instance(tmp_path / "home", base_url="http://gate.example", database_url=from_url)
    instance = opened(tmp_path / "home", from_url)
    scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
    key, _ = instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())
    fill(instance, key)
    report_and_erase(instance, key)
    before = contents(instance.ledger.store)
    filled = ("decisions", "latest_outcomes", "outcome_counts", "users", "user_scopes", "anomaly_dismissals")
    assert all(before[name] for name in filled)
    made = make_backup(instance, tmp_path / "backup.db", utc_now())
    assert (made.file, made.entries, made.missing, made.logged) == (tmp_path / "backup.db", 6, None, True)
    assert made.size == made.file.stat().st_size
    (noted,) = instance.ledger.operator_log.latest(1)
    assert (noted.action, noted.subject) == ("instance.backed_up", str(made.file))
    restore_backup(made.file, tmp_path / "again", to_url, utc_now())
    restored = opened(tmp_path / "again", to_url)
    assert restored.ledger.store.engine.name == target
    assert contents(restored.ledger.store) == before
    assert key_files(restored) == key_files(instance)
    assert (restored.settings.home / "settings.toml").read_bytes() == (tmp_path / "home/settings.toml").read_bytes()
    sizes = {found.name: check_chain(restored, found.scope_id) for found in restored.ledger.directory.scopes()}
    assert sizes == {"acme": (4, None), "capped \u00e9": (2, None)}
    assert decide(restored, key, "order-0") == decide(instance, key, "order-0")
    assert restored.ledger.users.sign_in("ada", PASSWORD, utc_now()) == replace(
        instance.ledger.users.user("ada"), last_sign_in_at=restored.ledger.users.user("ada").last_sign_in_at
    )
    status, record = decide(restored, key, "order-new")
    assert (status, record["audit_chain"]["chain_position"]) == ("created", 5)
    assert record["decision_confidence"]["similar_decisions"] == 1
    assert verify_record(record, instance.trust()).verified
    log = restored.ledger.operator_log
    noted, signed_in = log.latest(2)
    assert (noted.action, noted.subject, signed_in.action) == ("instance.restored", str(made.file), "user.signed_in")
    assert log.find_break() is None


@pytest.mark.parametrize(("source", "target"), [("sqlite", "postgresql"), ("postgresql", "sqlite")])
def test_reviews_their_owners_and_resolutions_are_restored(
    tmp_path: Path, databases: NewDatabase, opened: Open, source: str, target: str
) -> None:
    from_url, to_url = databases(source), databases(target)
    create_instance(tmp_path / "home", base_url="http://gate.example", database_url=from_url)
    instance = opened(tmp_path / "home", from_url)
    scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
    decision_id = resolve(instance, scope, instance.ledger.directory.create_key(scope, FULL_ACCESS, None, utc_now())[0])
    before = contents(instance.ledger.store)
    assert before["reviews"]
    assert before["review_owners"]
    make_backup(instance, tmp_path / "backup.db", utc_now())
    restore_backup(tmp_path / "backup.db", tmp_path / "again", to_url, utc_now())
    restored = opened(tmp_path / "again", to_url)
    assert contents(restored.ledger.store) == before
    assert check_chain(restored, scope.scope_id) == (3, None)
    standing = restored.resolutions().standing(scope.scope_id, decision_id)
    assert (standing["state"], standing["owner"]) == ("executed", "desk \u00e9")
    assert standing == instance.resolutions().standing(scope.scope_id, decision_id)


def test_a_backup_is_private_and_alone(used: Instance, tmp_path: Path) -> None:
    directory = tmp_path / "backups"
    directory.mkdir()
    made = make_backup(used, directory / "backup.db", utc_now())
    assert [file.name for file in directory.iterdir()] == ["backup.db"]
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    restore_backup(made.file, tmp_path / "again", None, utc_now())
    assert [file.name for file in directory.iterdir()] == ["backup.db"]
    home = tmp_path / "again"
    assert {stat.S_IMODE(file.stat().st_mode) for file in home.rglob("*") if file.is_file()} == {0o600}
    assert {stat.S_IMODE(file.stat().st_mode) for file in (home, home / "keys")} == {0o700}
    names = {"ledger.db", "ledger.db.lock", "keys", "settings.toml", "checkpoints.jsonl", "checkpoints.jsonl.lock"}
    assert {file.name for file in home.iterdir()} == names


def test_the_private_keys_stay_out_of_the_restored_ledger(used: Instance, tmp_path: Path) -> None:
    made = make_backup(used, tmp_path / "backup.db", utc_now())
    restore_backup(made.file, tmp_path / "again", None, utc_now())
    ledger = (tmp_path / "again" / "ledger.db").read_bytes()
    for name, content in key_files(used).items():
        if name.endswith(".pem"):
            assert content in made.file.read_bytes()
            assert content not in ledger


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_backup_made_while_threads_append_is_a_beginning_of_the_chain(
    tmp_path: Path, databases: NewDatabase, opened: Open, kind: str
) -> None:
    url = databases(kind)
    create_instance(tmp_path / "home", database_url=url)
    instance = opened(tmp_path / "home", url)
    scope = instance.ledger.directory.create_scope("acme", "unlimited", utc_now())
    begun, done = threading.Semaphore(0), threading.Event()

    def work(part: int) -> int:
        if part == 0:
            for _ in range(60):
                assert begun.acquire(timeout=60)
            try:
                return make_backup(instance, tmp_path / "backup.db", utc_now()).entries
            finally:
                done.set()
        number = 0
        while not done.is_set():
            number += 1
            assert isinstance(instance.ledger.entries.append(entry(scope.scope_id, 10**6 * part + number)), Appended)
            begun.release()
        return number

    backed_up, *appended = in_threads(4, work)
    restore_backup(tmp_path / "backup.db", tmp_path / "again", None, utc_now())
    restored = opened(tmp_path / "again")
    _, all_links = instance.ledger.entries.latest_links(scope.scope_id, 10**6)
    head, links = restored.ledger.entries.latest_links(scope.scope_id, 10**6)
    assert (len(all_links), len(links)) == (sum(appended), backed_up)
    assert backed_up >= 60
    assert links == all_links[:backed_up]
    assert chain.find_break(links, start=chain.Head(scope.chain_id), end=head) is None


def test_an_older_backup_is_restored_as_this_release_keeps_it(
    used: Instance, key: str, tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(store: Store, file: Path) -> None:
        first = SqliteLedgerStore(file)
        copy_as_release(store, first)
        first.close()

    monkeypatch.setattr(backup, "copy_to_file", copy)
    used.ledger.directory.set_plan(used.ledger.directory.scope("capped \u00e9"), "starter", utc_now())
    made = make_backup(used, tmp_path / "backup.db", utc_now())
    restore_backup(made.file, tmp_path / "again", None, utc_now())
    restored = opened(tmp_path / "again")
    assert restored.ledger.directory.scopes() == used.ledger.directory.scopes()
    capped = restored.ledger.directory.scope("capped \u00e9")
    assert restored.ledger.entries.used(capped.scope_id, timestamp(utc_now())[:7]) == 2
    assert check_chain(restored, capped.scope_id) == (2, None)
    assert decide(restored, key, "order-0")[0] == "replayed"
    assert [found.action for found in restored.ledger.operator_log.latest(9)] == ["instance.restored"]


def test_an_hmac_secret_is_named_as_missing(tmp_path: Path, opened: Open) -> None:
    create_instance(tmp_path / "home")
    secret = tmp_path / "secret"
    secret.write_text("a secret of at least 32 bytes, yes")
    (tmp_path / "home" / "settings.toml").write_text(
        f'receipt_signing = "hmac-sha256"\nreceipt_hmac_secret_file = "{secret}"\n'
    )
    made = make_backup(opened(tmp_path / "home"), tmp_path / "backup.db", utc_now())
    assert made.missing == secret
    assert secret.read_bytes() not in made.file.read_bytes()


class TestBackupRefused:
    """What cannot be backed up leaves nothing behind."""

    def test_a_file_that_is_there_stays_as_it_is(self, used: Instance, tmp_path: Path) -> None:
        file = tmp_path / "backup.db"
        file.write_text("something else")
        before = rows_of(used.ledger.store)
        assert refusal(make_backup, used, file, utc_now()) == "BACKUP_EXISTS"
        assert (file.read_text(), rows_of(used.ledger.store)) == ("something else", before)

    def test_a_file_that_came_in_between_stays_as_it_is(
        self, used: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "backup.db"
        sync = backup._sync

        def sync_late(path: Path) -> None:
            file.write_text("something else")
            sync(path)

        monkeypatch.setattr(backup, "_sync", sync_late)
        assert refusal(make_backup, used, file, utc_now()) == "BACKUP_UNWRITABLE"
        assert file.read_text() == "something else"

    def test_where_nothing_can_be_written_it_is_said(self, used: Instance, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        for place in (tmp_path / "file" / "backup.db", tmp_path / "nowhere" / "backup.db"):
            with pytest.raises(OperatorError) as refused:
                make_backup(used, place, utc_now())
            assert refused.value.code == "BACKUP_UNWRITABLE"
            assert str(place) in refused.value.message
        assert {found.name for found in tmp_path.iterdir()} == {"file", "home"}

    @pytest.mark.parametrize(
        "failure", [OSError(errno.ENOSPC, "No space left on device"), sqlite3.OperationalError("disk is full")]
    )
    def test_a_full_disk_leaves_nothing(
        self, used: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
    ) -> None:
        def fail(*_: object) -> None:
            raise failure

        for step in ("_add_files", "_sync"):
            with monkeypatch.context() as patched:
                patched.setattr(backup, step, fail)
                assert refusal(make_backup, used, tmp_path / "backup.db", utc_now()) == "BACKUP_UNWRITABLE"
            assert {found.name for found in tmp_path.iterdir()} == {"home"}
        make_backup(used, tmp_path / "backup.db", utc_now())

    @pytest.mark.heavy
    def test_a_ledger_that_cannot_be_read_leaves_nothing(
        self, tmp_path: Path, databases: NewDatabase, opened: Open
    ) -> None:
        url = databases("postgresql")
        create_instance(tmp_path / "home", database_url=url)
        instance = opened(tmp_path / "home", url)
        with instance.ledger.store.write() as connection:
            connection.execute(text("ALTER TABLE claims RENAME TO gone"))
        with pytest.raises(ServiceUnavailable):
            make_backup(instance, tmp_path / "backup.db", utc_now())
        assert {found.name for found in tmp_path.iterdir()} == {"home"}


class TestRestoreRefused:
    """What cannot be restored leaves no instance."""

    @pytest.fixture
    def file(self, used: Instance, tmp_path: Path) -> Path:
        return make_backup(used, tmp_path / "backup.db", utc_now()).file

    @pytest.fixture
    def interrupt(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        """Lets a step fail once, as on a full disk, where it gets to a file of that name."""

        def prepare(step: str, file_name: str) -> None:
            real, failed = getattr(backup, step), False

            def once(first: object, *rest: object) -> object:
                nonlocal failed
                if not failed and file_name in str(first):
                    failed = True
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(first, *rest)

            monkeypatch.setattr(backup, step, once)

        return prepare

    @pytest.fixture
    def again(self, tmp_path: Path) -> Path:
        return tmp_path / "again"

    @pytest.mark.heavy
    def test_an_instance_or_a_ledger_that_is_there_stays_as_it_is(
        self, used: Instance, file: Path, again: Path, databases: NewDatabase
    ) -> None:
        home = used.settings.home
        before = rows_of(used.ledger.store), key_files(used)
        assert refusal(restore_backup, file, home, None, utc_now()) == "INSTANCE_EXISTS"
        # Another home, and the ledger that is in use.
        assert refusal(restore_backup, file, again, used.settings.ledger_url, utc_now()) == "LEDGER_EXISTS"
        assert not is_instance(again)
        # An instance that lost its settings.
        shutil.copytree(home, again / "lost")
        (again / "lost" / "settings.toml").unlink()
        assert refusal(restore_backup, file, again / "lost", None, utc_now()) == "LEDGER_EXISTS"
        url = databases("postgresql")
        restore_backup(file, again / "first", url, utc_now())
        assert refusal(restore_backup, file, again / "second", url, utc_now()) == "LEDGER_EXISTS"
        assert (rows_of(used.ledger.store), key_files(used)) == before

    def test_what_is_no_backup_is_refused(self, used: Instance, file: Path, again: Path, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("not a database")
        (tmp_path / "empty").touch()
        copy_pages(used.settings.home / "ledger.db", tmp_path / "ledger")
        for name in ("text", "empty", "ledger", "nowhere", "home"):
            code = refusal(restore_backup, tmp_path / name, again, None, utc_now())
            assert code == "BACKUP_UNREADABLE", name
        assert not again.exists()
        assert {found.name for found in tmp_path.iterdir()} == {"backup.db", "home", "text", "empty", "ledger"}

    def test_a_cut_backup_is_refused(self, file: Path, again: Path) -> None:
        whole = file.read_bytes()
        for length in (1, 100, 4096, 5000, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
            file.write_bytes(whole[:length])
            assert refusal(restore_backup, file, again, None, utc_now()) == "BACKUP_UNREADABLE", length
            assert not again.exists()

    def test_a_damaged_backup_is_refused_or_the_damage_is_in_nothing_that_it_holds(
        self, used: Instance, file: Path, tmp_path: Path, opened: Open
    ) -> None:
        whole, before = file.read_bytes(), (contents(used.ledger.store), key_files(used))
        places = range(24, len(whole), len(whole) // 40)
        for place in places:
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
            home = tmp_path / f"again-{place}"
            try:
                restore_backup(file, home, None, utc_now())
            except GateError:
                assert not is_instance(home)
            else:
                restored = opened(home)
                assert (contents(restored.ledger.store), key_files(restored)) == before, place

    @pytest.mark.parametrize(
        ("step", "file_name"), [("write_private", ".pem"), ("copy_rows", ""), ("write_private", "settings.toml")]
    )
    def test_an_interrupted_restore_leaves_no_instance_and_can_be_repeated(
        self, file: Path, again: Path, key: str, opened: Open, interrupt: Callable[..., None], step: str, file_name: str
    ) -> None:
        interrupt(step, file_name)
        assert refusal(restore_backup, file, again, None, utc_now()) == "INSTANCE_UNWRITABLE"
        assert not is_instance(again)
        restore_backup(file, again, None, utc_now())
        assert decide(opened(again), key, "order-0")[0] == "replayed"

    def test_where_no_instance_can_be_written_it_is_said(self, file: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        for home in (tmp_path / "file", tmp_path / "file" / "home"):
            assert refusal(restore_backup, file, home, None, utc_now()) == "INSTANCE_UNWRITABLE"
