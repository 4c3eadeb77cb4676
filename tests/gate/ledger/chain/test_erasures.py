"""Erasing: what goes, what stays, and that nothing of it is left in the ledger's files."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from gate.clock import utc_now
from gate.decisions import erasure
from gate.decisions.erasure import erase
from gate.encoding.canonical import content_hash
from gate.errors import OperatorError, ServiceUnavailable
from gate.instance.audit import check_chain
from gate.instance.backup import make_backup, restore_backup
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.chain import erasures
from gate.ledger.stores import sqlite
from gate.ledger.tables import entries
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES, text
from gate.verify import verify_record
from tests.independent import verifier
from tests.support.samples import in_threads, ledger_url, rows_of, sample_request, sqlite_file

SECRET = "Ada Lovelace, born 1815 \u0000\U0001f600"


def request_about(person: str) -> dict[str, Any]:
    return sample_request(discount_percent=10, margin_percent=22, person=person)


def decide(instance: Instance, authority: Authority, key: str, person: str = SECRET) -> Any:
    decision = instance.gate().decide(authority, request_about(person), request_id="req_1", idempotency_key=key)
    return decision.record


@pytest.fixture
def records(instance: Instance, authority: Authority) -> list[dict[str, Any]]:
    """Three decisions about a person."""
    return [decide(instance, authority, f"order-{number}") for number in range(3)]


def refusal(ledger: Ledger, decision_id: str, reason: str = "asked for") -> str:
    with pytest.raises(OperatorError) as refused:
        erase(ledger, decision_id, reason, utc_now())
    return refused.value.code


def test_what_was_erased_is_gone_and_all_else_stays(
    instance: Instance, scope: Scope, authority: Authority, records: list[dict[str, Any]]
) -> None:
    ledger, record = instance.ledger, records[1]
    done = erase(ledger, record["decision_id"], "A person asked for it.", utc_now())
    note = {
        "erasure_id": done.erasure["erasure_id"],
        "erased_at": done.erasure["erased_at"],
        "members": ["evaluation", "input"],
    }
    left = instance.gate().decision(authority, record["decision_id"])
    assert left == {**record, "evaluation": None, "erased": note}
    assert instance.gate().request_body(authority, record["decision_id"]) is None
    assert [instance.gate().decision(authority, other["decision_id"]) for other in records[::2]] == records[::2]
    result = verify_record(left, instance.trust())
    assert (result.verified, result.error, result.checks["evaluation"]) == (True, "MATERIAL_ERASED", None)
    assert check_chain(instance, scope.scope_id) == (4, None)


def test_the_chain_has_an_entry_about_it(instance: Instance, scope: Scope, records: list[dict[str, Any]]) -> None:
    record, now = records[0], utc_now()
    done = erase(instance.ledger, record["decision_id"], "A person asked for it.", now)
    entry = instance.ledger.entries.at(scope.scope_id, 4)
    assert entry is not None
    assert erasure.stored_erasure(instance.ledger, scope.scope_id, record["decision_id"]) == done.erasure
    stated = {name: value for name, value in done.erasure.items() if name != "erasure_hash"}
    assert done.erasure["erasure_hash"] == verifier.canonical_hash(verifier.compact(stated))
    assert (done.scope, stated["reason"], stated["erased"]) == (scope.name, "A person asked for it.", note_of(record))
    assert (stated["decision_record_hash"], stated["decision_receipt_hash"]) == (
        record["record_hash"],
        record["receipt_hash"],
    )
    assert {name: entry.link[name] for name in ("entry_type", "decision_id", "record_hash", "receipt_hash")} == {
        "entry_type": "erasure",
        "decision_id": record["decision_id"],
        "record_hash": done.erasure["erasure_hash"],
        "receipt_hash": None,
    }
    assert (entry.link["policy_id"], entry.link["policy_version"]) == (record["policy_id"], record["policy_version"])
    _, links = instance.ledger.entries.latest_links(scope.scope_id, 9)
    assert verifier.link_failures(links) == []


def note_of(record: dict[str, Any]) -> list[str]:
    return [name for name in ("adapter_facts", "evaluation", "input") if name in record or name == "input"]


def test_the_operator_log_has_it_without_the_reason(
    ledger: Ledger, scope: Scope, records: list[dict[str, Any]]
) -> None:
    done = erase(ledger, records[0]["decision_id"], f"{SECRET} asked for it.", utc_now())
    (logged,) = ledger.operator_log.latest(1)
    assert (logged.action, logged.subject) == ("decision.erased", records[0]["decision_id"])
    assert logged.details == {"scope": scope.name, "erasure_id": done.erasure["erasure_id"]}
    assert ledger.operator_log.find_break() is None


def test_the_key_of_an_erased_decision_still_answers_it(
    instance: Instance, authority: Authority, records: list[dict[str, Any]]
) -> None:
    erase(instance.ledger, records[0]["decision_id"], "asked for", utc_now())
    replayed = instance.gate().decide(authority, request_about(SECRET), request_id="req_2", idempotency_key="order-0")
    assert replayed.status == "replayed"
    assert replayed.record == instance.gate().decision(authority, records[0]["decision_id"])
    assert "erased" in replayed.record


def test_reports_about_an_erased_decision_are_taken(
    instance: Instance, scope: Scope, authority: Authority, records: list[dict[str, Any]]
) -> None:
    decision_id = records[0]["decision_id"]
    instance.lifecycle().report(authority, OUTCOMES, decision_id, {"outcome_status": "pending"})
    erase(instance.ledger, decision_id, "asked for", utc_now())
    instance.lifecycle().report(authority, OUTCOMES, decision_id, {"outcome_status": "succeeded"})
    instance.lifecycle().report(authority, EXECUTIONS, decision_id, {"execution_status": "executed"})
    assert check_chain(instance, scope.scope_id) == (7, None)


def test_what_is_unknown_or_erased_before_or_without_a_reason_is_refused(
    ledger: Ledger, records: list[dict[str, Any]]
) -> None:
    decision_id = records[0]["decision_id"]
    before = rows_of(ledger.store)
    for reason in ("", "  ", "x" * 501, "asked for\udcff"):
        assert refusal(ledger, decision_id, reason) == "ERASURE_REASON_INVALID"
    for unknown in ("dec_unknown", "", "\0", "dec\udcff", records[0]["audit_chain"]["chain_id"]):
        assert refusal(ledger, unknown) == "DECISION_NOT_FOUND"
    assert rows_of(ledger.store) == before
    erase(ledger, decision_id, "x" * 500, utc_now())
    after = rows_of(ledger.store)
    assert refusal(ledger, decision_id) == "DECISION_ALREADY_ERASED"
    assert rows_of(ledger.store) == after


def test_an_entry_that_is_no_decision_is_not_erased(
    instance: Instance, authority: Authority, records: list[dict[str, Any]]
) -> None:
    reported = instance.lifecycle().report(
        authority, EXECUTIONS, records[0]["decision_id"], {"execution_status": "executed"}
    )
    assert refusal(instance.ledger, text(reported.report, "execution_receipt_id")) == "DECISION_NOT_FOUND"


def test_of_several_at_once_one_erases(instance: Instance, scope: Scope, records: list[dict[str, Any]]) -> None:
    decision_id = records[0]["decision_id"]

    def attempt(_: int) -> str:
        with closing(open_ledger(ledger_url(instance.ledger))) as other:
            try:
                return str(erase(other, decision_id, "asked for", utc_now()).erasure["erasure_id"][:3])
            except OperatorError as error:
                return error.code

    assert sorted(in_threads(4, attempt)) == ["DECISION_ALREADY_ERASED"] * 3 + ["era"]
    assert check_chain(instance, scope.scope_id) == (4, None)


def test_an_erasure_that_fails_on_its_way_leaves_everything_as_it_was(
    instance: Instance, scope: Scope, records: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last statement fails, as where the process is killed before the commit."""

    def fail(*_: object) -> None:
        raise ServiceUnavailable("SVC_STORAGE_UNAVAILABLE", "It failed.")

    before = rows_of(instance.ledger.store)
    with monkeypatch.context() as patched:
        patched.setattr(erasures, "record", fail)
        with pytest.raises(ServiceUnavailable):
            erase(instance.ledger, records[0]["decision_id"], "asked for", utc_now())
    assert rows_of(instance.ledger.store) == before
    erase(instance.ledger, records[0]["decision_id"], "asked for", utc_now())
    assert check_chain(instance, scope.scope_id) == (4, None)


def test_a_backup_of_an_erased_ledger_holds_nothing_of_it_and_restores(
    instance: Instance, scope: Scope, records: list[dict[str, Any]], tmp_path: Path
) -> None:
    traces = stored_of(instance.ledger, records[0])
    erase(instance.ledger, records[0]["decision_id"], "asked for", utc_now())
    file = tmp_path / "backup.db"
    make_backup(instance, file, utc_now())
    assert not traces_in(traces, [file], instance.ledger)
    url = f"sqlite:///{tmp_path / 'restored.db'}"
    restore_backup(file, tmp_path / "restored", url, utc_now())
    with closing(open_instance(load_settings(tmp_path / "restored", database_url=url))) as restored:
        assert check_chain(restored, scope.scope_id) == (4, None)
        assert rows_of(restored.ledger.store)["decisions"] == rows_of(instance.ledger.store)["decisions"]


def text_of(length: int, number: int) -> str:
    """A text like no other, of which nothing is shorter when it is packed."""
    return "".join(content_hash([number, at]) for at in range(0, length, 64))[:length]


def stored_of(ledger: Ledger, record: dict[str, Any]) -> list[bytes]:
    """What is stored of a decision, as it lies there."""
    position = record["audit_chain"]["chain_position"]
    with ledger.store.read() as connection:
        row = connection.execute(select(entries.c.body, entries.c.request).where(entries.c.position == position)).one()
    return [bytes(value) for value in row]


def traces_in(stored: list[bytes], files: list[Path], ledger: Ledger) -> list[tuple[str, int]]:
    """Where files hold a piece of what was stored that no row of the ledger holds now."""
    rows = [value for table in rows_of(ledger.store).values() for row in table for value in row]
    kept = b"\n".join(bytes(value) for value in rows if isinstance(value, bytes | memoryview))
    # Short ones at every byte: packed, two records of the same kind may differ in a hundred bytes alone.
    pieces = {value[at : at + 16] for value in stored for at in range(0, len(value) - 16, 1 + len(value) // 1500)}
    pieces = {piece for piece in pieces if piece not in kept}
    assert len(pieces) > 10
    contents = [(file.name, file.read_bytes()) for file in files]
    return [(name, content.index(piece)) for name, content in contents for piece in pieces if piece in content]


# Takes the first of the locks that SQLite's readers share (WAL_READ_LOCK(1), in the 120 bytes' place and on).
LATE_READER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
for _ in sys.stdin:
    fcntl.lockf(file, fcntl.LOCK_SH, 1, 124)
    print("here", flush=True)
"""


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
class TestFiles:
    """SQLite's own files: the database and its write-ahead log."""

    @pytest.fixture
    def files(self, instance: Instance) -> list[Path]:
        """Every file of the instance."""
        return [file for file in instance.settings.home.rglob("*") if file.is_file()]

    @pytest.mark.parametrize("length", [1, 300, 5_000, 400_000])
    def test_none_of_them_holds_what_was_erased(
        self, instance: Instance, authority: Authority, files: list[Path], length: int
    ) -> None:
        made = [decide(instance, authority, f"order-{number}", text_of(length, number)) for number in range(5)]
        traces = stored_of(instance.ledger, made[2])
        erase(instance.ledger, made[2]["decision_id"], "asked for", utc_now())
        assert traces_in(traces, files, instance.ledger) == []
        log = sqlite_file(instance.ledger).with_name("ledger.db-wal")
        kept = log.read_bytes()
        header, frame = 32, 24 + int.from_bytes(kept[8:12])
        assert len(kept) > header + frame
        assert not any(kept[header + frame :])
        again = decide(instance, authority, "after")
        assert again["audit_chain"]["chain_position"] == 7
        with closing(sqlite3.connect(sqlite_file(instance.ledger))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    def test_without_overwriting_the_log_would_hold_it(
        self, instance: Instance, records: list[dict[str, Any]], files: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So the test above can fail; and a second run finishes what the first did not come to."""
        traces = stored_of(instance.ledger, records[0])
        with monkeypatch.context() as patched:
            patched.setattr(sqlite.SqliteLedgerStore, "overwrite", lambda _: True)
            erase(instance.ledger, records[0]["decision_id"], "asked for", utc_now())
        assert traces_in(traces, files, instance.ledger)
        assert refusal(instance.ledger, records[0]["decision_id"]) == "DECISION_ALREADY_ERASED"
        assert traces_in(traces, files, instance.ledger) == []

    def test_who_reads_an_older_state_is_waited_for_and_then_told_of(
        self, instance: Instance, records: list[dict[str, Any]], files: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        traces = stored_of(instance.ledger, records[0])
        monkeypatch.setattr(sqlite, "WRITE_TIMEOUT", 0.2)
        with closing(sqlite3.connect(sqlite_file(instance.ledger))) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM entries").fetchone()
            assert refusal(instance.ledger, records[0]["decision_id"]) == "ERASURE_UNFINISHED"
        assert refusal(instance.ledger, records[0]["decision_id"]) == "DECISION_ALREADY_ERASED"
        assert traces_in(traces, files, instance.ledger) == []

    def test_a_reader_that_comes_in_late_keeps_the_log_as_it_is(
        self, instance: Instance, authority: Authority, records: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Such a reader lets the next commits stand behind the old frames: zeros before them would take them away."""
        database = sqlite_file(instance.ledger)
        copied = sqlite._is_copied
        with subprocess.Popen(
            [sys.executable, "-c", LATE_READER, f"{database}-shm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None

            def then_a_reader_comes(cursor: Any) -> bool:
                answer = copied(cursor)
                assert reader.stdin is not None
                assert reader.stdout is not None
                if answer:
                    reader.stdin.write(b"come\n")
                    reader.stdin.flush()
                    assert reader.stdout.readline() == b"here\n"
                return answer

            monkeypatch.setattr(sqlite, "_is_copied", then_a_reader_comes)
            monkeypatch.setattr(sqlite, "WRITE_TIMEOUT", 0.2)
            assert refusal(instance.ledger, records[0]["decision_id"]) == "ERASURE_UNFINISHED"
            later = decide(instance, authority, "later")
            crashed = instance.settings.home / "crashed"
            crashed.mkdir()
            for name in ("ledger.db", "ledger.db-wal"):
                (crashed / name).write_bytes(database.with_name(name).read_bytes())
            reader.stdin.close()
        with closing(open_ledger(f"sqlite:///{crashed / 'ledger.db'}")) as opened:
            assert opened.entries.decision(authority.scope_id, later["decision_id"]) is not None
        monkeypatch.setattr(sqlite, "_is_copied", copied)
        assert refusal(instance.ledger, records[0]["decision_id"]) == "DECISION_ALREADY_ERASED"

    def test_the_log_of_a_ledger_that_is_not_open_elsewhere_is_left_sound(
        self, instance: Instance, scope: Scope, records: list[dict[str, Any]]
    ) -> None:
        """Zeros are no frames: who opens the ledger next finds everything that was committed."""
        erase(instance.ledger, records[0]["decision_id"], "asked for", utc_now())
        before = rows_of(instance.ledger.store)
        copy = instance.settings.home / "copy"
        copy.mkdir()
        for name in ("ledger.db", "ledger.db-wal"):
            (copy / name).write_bytes((instance.settings.home / name).read_bytes())
        with closing(open_ledger(f"sqlite:///{copy / 'ledger.db'}")) as opened:
            assert rows_of(opened.store) == before
            with suppress(OperatorError):
                erase(opened, records[1]["decision_id"], "asked for", utc_now())
            assert opened.entries.head(scope.scope_id).size == 5
