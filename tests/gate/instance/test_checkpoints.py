"""Kept checkpoints: what is kept, what a history that was cut or rewritten meets, and what a restore begins."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import delete, select, update

from gate.clock import utc_now
from gate.errors import GateError, OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.instance import checkpoint_log
from gate.instance.audit import Comparison, compare
from gate.instance.backup import make_backup, restore_backup
from gate.instance.checkpoint_log import CheckpointLog
from gate.instance.checkpoints import Checkpoints, Round
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import Authority, Scope
from gate.ledger.tables import chain_heads, decisions, entries
from gate.proof import chain
from gate.records.reports.receipts import OUTCOMES
from gate.verify.checkpoint import is_checkpoint
from tests.independent import verifier
from tests.support.samples import sample_request

NOW = utc_now()


@pytest.fixture
def instances() -> Iterator[ExitStack]:
    """Closes what a test opens."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def deciding(instance: Instance, authority: Authority) -> Instance:
    """An instance with three entries in its chain."""
    grow(instance, authority, 3)
    return instance


def grow(instance: Instance, authority: Authority, count: int) -> list[str]:
    gate = instance.gate()
    return [gate.decide(authority, sample_request(), request_id="req_1").record["decision_id"] for _ in range(count)]


def keep(instance: Instance) -> Round:
    found = instance.checkpoints.keep(utc_now())
    assert found is not None
    return found


def kept_lines(instance: Instance) -> list[Any]:
    return [orjson.loads(line) for line in instance.checkpoints.log.file.read_bytes().splitlines()]


def anew(instance: Instance) -> Checkpoints:
    """Its checkpoints as a process sees them that was started just now."""
    file = instance.settings.checkpoint_log_file
    return Checkpoints(instance.ledger, file, lambda: instance.signers().receipt, instance.trust)


def compared(instance: Instance) -> Comparison:
    return compare(instance, CheckpointLog(instance.settings.checkpoint_log_file))


def rewrite(instance: Instance, scope: Scope, first: int) -> None:
    """Dates an entry otherwise, and recomputes every hash of the chain; none of them is signed."""
    with instance.ledger.store.write() as connection:
        rows = connection.execute(
            select(entries).where(entries.c.scope_id == scope.scope_id).order_by(entries.c.position)
        ).all()
        head = chain.Head(scope.chain_id)
        for row in rows:
            created_at = timestamp(NOW - timedelta(days=1)) if row.position == first else row.created_at
            made = chain.append(
                head,
                chain.Entry(
                    row.entry_type,
                    row.decision_id,
                    row.record_hash,
                    row.receipt_hash,
                    row.policy_id,
                    row.policy_version,
                    created_at,
                ),
            )
            head = chain.head_of(made)
            connection.execute(
                update(entries)
                .where(entries.c.scope_id == scope.scope_id, entries.c.position == row.position)
                .values(created_at=created_at, **{n: made[n] for n in ("leaf_hash", "merkle_root", "link_hash")})
            )
        set_head(connection, scope, head)


def cut(instance: Instance, scope: Scope, size: int) -> None:
    """Drops the end of a chain, and moves its head back."""
    at = instance.ledger.entries.heads_at(scope.scope_id, [size]).get(size, chain.Head(scope.chain_id))
    with instance.ledger.store.write() as connection:
        for table in (entries, decisions):
            connection.execute(delete(table).where(table.c.scope_id == scope.scope_id, table.c.position > size))
        set_head(connection, scope, at)


def set_head(connection: Any, scope: Scope, head: chain.Head) -> None:
    connection.execute(
        update(chain_heads)
        .where(chain_heads.c.scope_id == scope.scope_id)
        .values(chain_size=head.size, merkle_root=head.merkle_root, link_hash=head.link_hash)
    )


def test_a_checkpoint_of_each_chain_that_grew_is_kept(deciding: Instance, authority: Authority, scope: Scope) -> None:
    empty = deciding.ledger.directory.create_scope("empty", "unlimited", utc_now())
    assert keep(deciding).signed == 1
    assert keep(deciding).signed == 0
    grow(deciding, authority, 2)
    assert keep(deciding).signed == 1
    first, second = kept_lines(deciding)
    assert (first["chain_id"], first["chain_size"], second["chain_size"]) == (scope.chain_id, 3, 5)
    for document in (first, second):
        assert verifier.checkpoint_failures(document, deciding.receipt_keys.registry().to_dict()) == []
    assert empty.chain_id not in deciding.checkpoints.log.chain_ids()
    file = deciding.settings.checkpoint_log_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    comparison = compared(deciding)
    assert (comparison.holds, comparison.compared, comparison.cuts) == (True, 2, [])


@pytest.mark.parametrize("grown", [0, 2])
@pytest.mark.parametrize("size", [0, 2])
def test_no_checkpoint_is_signed_of_a_chain_that_was_cut(
    deciding: Instance, authority: Authority, scope: Scope, size: int, grown: int
) -> None:
    keep(deciding)
    cut(deciding, scope, size)
    grow(deciding, authority, grown)
    refuses(deciding, scope)


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("grown", [0, 2])
def test_no_checkpoint_is_signed_of_a_chain_that_was_rewritten(
    deciding: Instance, authority: Authority, scope: Scope, first: int, grown: int
) -> None:
    keep(deciding)
    rewrite(deciding, scope, first)
    grow(deciding, authority, grown)
    refuses(deciding, scope)


def refuses(instance: Instance, scope: Scope) -> None:
    before = kept_lines(instance)
    for checkpoints in (instance.checkpoints, anew(instance)):
        found = checkpoints.keep(utc_now())
        assert found is not None
        assert (found.signed, [refusal.scope for refusal in found.refused]) == (0, [scope.name])
        head = instance.ledger.entries.head(scope.scope_id)
        with pytest.raises(ServiceUnavailable, match="no longer contains") as refused:
            checkpoints.sign(scope.scope_id, head, timestamp(utc_now()))
        assert refused.value.code == "SVC_CHECKPOINT_UNAVAILABLE"
    assert kept_lines(instance) == before
    comparison = compared(instance)
    assert not comparison.holds
    assert [found.scope for found in comparison.contradictions] == [scope.name]


def test_a_history_that_was_rewritten_after_its_last_checkpoint_is_beyond_it(deciding: Instance, scope: Scope) -> None:
    cut_at = 2
    cut(deciding, scope, cut_at)
    keep(deciding)
    assert compared(deciding).holds


def test_other_chains_are_signed_while_one_is_refused(deciding: Instance, authority: Authority, scope: Scope) -> None:
    directory = deciding.ledger.directory
    other = directory.create_scope("other", "unlimited", utc_now())
    key, _ = directory.create_key(other, {"decide", "register", "read", "report"}, None, utc_now())
    keep(deciding)
    cut(deciding, scope, 1)
    grow(deciding, directory.authenticate(key, utc_now()), 1)
    found = keep(deciding)
    assert (found.signed, [refusal.chain_id for refusal in found.refused]) == (1, [scope.chain_id])


def test_a_chain_that_is_gone_with_its_scope_is_refused(deciding: Instance, scope: Scope) -> None:
    keep(deciding)
    with deciding.ledger.store.write() as connection:
        connection.execute(delete(chain_heads).where(chain_heads.c.scope_id == scope.scope_id))
    found = keep(deciding)
    assert [(refusal.scope, refusal.chain_id) for refusal in found.refused] == [(None, scope.chain_id)]
    assert [found.reason for found in compared(deciding).contradictions] == [
        f"The ledger has no chain {scope.chain_id}."
    ]


def test_a_head_that_names_no_entry_is_not_signed(deciding: Instance, scope: Scope) -> None:
    with deciding.ledger.store.write() as connection:
        set_head(connection, scope, chain.Head(scope.chain_id, 9, "a" * 64, "b" * 64))
    assert [refusal.scope for refusal in keep(deciding).refused] == [scope.name]
    assert not deciding.checkpoints.log.file.exists()


@pytest.mark.parametrize(
    "name", ["chain_size", "merkle_root", "link_hash", "issued_at", "key_id", "signature", "chain_id", "more"]
)
def test_a_line_that_was_changed_is_found(deciding: Instance, scope: Scope, name: str) -> None:
    keep(deciding)
    (line,) = kept_lines(deciding)
    line[name] = 2 if name == "chain_size" else f"{line.get(name, '')}x"
    deciding.checkpoints.log.file.write_bytes(orjson.dumps(line) + b"\n")
    comparison = compared(deciding)
    assert not comparison.holds or comparison.unverified == 1
    # A key that nobody knows proves nothing; what the line says must still agree.
    assert comparison.holds == (name == "key_id")


def test_a_line_that_is_no_checkpoint_stops_the_signing(deciding: Instance, scope: Scope) -> None:
    keep(deciding)
    with deciding.checkpoints.log.file.open("ab") as file:
        file.write(b'{"checkpoint_version":"decision_checkpoint_v1"}\n')
    with pytest.raises(ServiceUnavailable, match=r"checkpoints.jsonl:2 is neither"):
        anew(deciding).keep(utc_now())
    assert [found.place for found in compared(deciding).contradictions] == ["checkpoints.jsonl:2"]


def test_a_line_that_a_crash_cut_short_was_never_kept(deciding: Instance, authority: Authority) -> None:
    keep(deciding)
    file = deciding.checkpoints.log.file
    line = file.read_bytes()
    for number, length in enumerate((1, 40, len(line) - 1), start=1):
        with file.open("ab") as torn:
            torn.write(line[:length])
        assert compared(deciding).compared == number
        grow(deciding, authority, 1)
        found = anew(deciding).keep(utc_now())
        assert found is not None
        assert found.signed == 1
        assert [kept["chain_size"] for kept in kept_lines(deciding)] == [3, *range(4, 4 + number)]
        assert compared(deciding).holds


@pytest.mark.parametrize("loss", ["emptied", "shortened", "removed", "replaced"])
def test_a_running_service_misses_checkpoints_that_the_log_lost(
    deciding: Instance, authority: Authority, loss: str
) -> None:
    keep(deciding)
    grow(deciding, authority, 1)
    keep(deciding)
    file = deciding.checkpoints.log.file
    whole = file.read_bytes()
    first_line = whole[: whole.index(b"\n") + 1]
    if loss == "removed":
        file.unlink()
    elif loss == "replaced":
        other = file.with_name("other")
        other.write_bytes(first_line)
        other.replace(file)
    else:
        file.write_bytes(b"" if loss == "emptied" else first_line)
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="no longer has checkpoints"):
            keep(deciding)
    file.write_bytes(whole)
    assert keep(deciding).refused == ()


def test_a_large_log_is_set_aside_and_its_last_checkpoints_are_carried_over(
    deciding: Instance, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_log, "LARGE", 1500)
    checkpoints = deciding.checkpoints
    checkpoints.begin_epoch("Restored by hand.", utc_now())
    # A second process follows the log all the while.
    follower = anew(deciding)
    for number in range(12):
        grow(deciding, authority, 1)
        found = checkpoints.keep(utc_now() + timedelta(seconds=number))
        assert found is not None
        assert found.refused == ()
        head = deciding.ledger.entries.head(authority.scope_id)
        assert follower.sign(authority.scope_id, head, timestamp(utc_now())) is not None
    names = sorted(path.name for path in checkpoints.log.file.parent.glob("checkpoints.jsonl.2*"))
    assert len(names) >= 2
    first, *_ = kept_lines(deciding)
    assert first["reason"] == "Restored by hand."
    comparison = compared(deciding)
    assert (comparison.holds, comparison.cuts) == (True, [])
    assert comparison.compared >= 13
    documents = [line.document for line in checkpoints.log.lines()]
    sizes = {document["chain_size"] for document in documents if is_checkpoint(document)}
    assert sizes == set(range(3, 16))


def test_a_restored_instance_signs_on_and_the_check_names_what_was_cut(
    deciding: Instance, authority: Authority, tmp_path: Path, instances: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "elsewhere" / "checkpoints.jsonl"
    monkeypatch.setenv("GATE_CHECKPOINT_LOG", str(log))
    lost = instances.enter_context(_opened(deciding.settings.home))
    keep(lost)
    make_backup(lost, tmp_path / "tuesday.backup", utc_now())
    grow(lost, authority, 2)
    keep(lost)
    later = lost.ledger.directory.create_scope("later", "unlimited", utc_now())
    key, _ = lost.ledger.directory.create_key(later, {"decide", "register"}, None, utc_now())
    grow(lost, lost.ledger.directory.authenticate(key, utc_now()), 1)
    keep(lost)

    restore_backup(tmp_path / "tuesday.backup", tmp_path / "restored", None, utc_now())
    restored = instances.enter_context(_opened(tmp_path / "restored"))
    assert keep(restored).refused == ()
    grow(restored, authority, 1)
    assert (keep(restored).signed, keep(restored).refused) == (1, ())
    comparison = compare(restored, CheckpointLog(log))
    assert (comparison.holds, comparison.contradictions) == (True, [])
    assert sorted((found.scope, found.first, found.last) for found in comparison.cuts if found.scope) == [
        (deciding.ledger.directory.scopes()[0].name, 4, 5)
    ]
    assert [(found.chain_id, found.first, found.last) for found in comparison.cuts if not found.scope] == [
        (later.chain_id, 1, 1)
    ]
    assert all("tuesday.backup" in found.reason for found in comparison.cuts)
    # What is cut from here on is another matter.
    cut(restored, deciding.ledger.directory.scopes()[0], 3)
    assert not compare(restored, CheckpointLog(log)).holds
    assert len(keep(restored).refused) == 1


def test_a_backup_carries_the_log_and_a_restore_keeps_one_that_is_there(
    deciding: Instance, authority: Authority, tmp_path: Path, instances: ExitStack
) -> None:
    keep(deciding)
    make_backup(deciding, tmp_path / "tuesday.backup", utc_now())
    grow(deciding, authority, 2)
    keep(deciding)
    for home, cuts in (("empty", []), ("with the lost log", [(4, 5)])):
        if cuts:
            (tmp_path / home).mkdir()
            (tmp_path / home / "checkpoints.jsonl").write_bytes(deciding.checkpoints.log.file.read_bytes())
        restore_backup(tmp_path / "tuesday.backup", tmp_path / home, None, utc_now())
        restored = instances.enter_context(_opened(tmp_path / home))
        assert keep(restored).refused == ()
        comparison = compared(restored)
        assert comparison.holds
        assert [(found.first, found.last) for found in comparison.cuts] == cuts
        assert comparison.compared == 2


def test_a_backup_of_a_cut_ledger_does_not_hide_the_cut(
    deciding: Instance, scope: Scope, tmp_path: Path, instances: ExitStack
) -> None:
    keep(deciding)
    cut(deciding, scope, 2)
    make_backup(deciding, tmp_path / "cut.backup", utc_now())
    restore_backup(tmp_path / "cut.backup", tmp_path / "again", None, utc_now())
    comparison = compared(instances.enter_context(_opened(tmp_path / "again")))
    assert [(found.scope, found.first, found.last) for found in comparison.cuts] == [(scope.name, 3, 3)]


def test_a_ledger_that_was_put_back_without_a_restore_is_refused_until_an_epoch_begins(
    deciding: Instance, scope: Scope
) -> None:
    keep(deciding)
    cut(deciding, scope, 2)
    assert len(keep(deciding).refused) == 1
    assert deciding.checkpoints.begin_epoch("The disk image of Tuesday was put back.", utc_now()) == 1
    assert keep(deciding).refused == ()
    assert anew(deciding).keep(utc_now()).refused == ()  # type: ignore[union-attr]
    comparison = compared(deciding)
    assert comparison.holds
    assert [(found.first, found.last, found.reason) for found in comparison.cuts] == [
        (3, 3, "The disk image of Tuesday was put back.")
    ]


@pytest.mark.parametrize("name", ["reason", "begun_at", "signature"])
def test_an_epoch_that_the_key_did_not_sign_accounts_for_nothing(deciding: Instance, scope: Scope, name: str) -> None:
    keep(deciding)
    cut(deciding, scope, 2)
    deciding.checkpoints.begin_epoch("Put back.", utc_now())
    lines = kept_lines(deciding)
    lines[1][name] += "x"
    deciding.checkpoints.log.file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    comparison = compared(deciding)
    assert {found.reason.split(" (")[0].partition(" of ")[0] for found in comparison.contradictions} == {
        "The epoch was changed after it was signed, so it does not explain the rollback.",
        "The chain no longer contains the checkpoint",
    }


FORGED_EPOCH = {
    "checkpoint_epoch_version": "decision_checkpoint_epoch_v1",
    "reason": "Restored.",
    "begun_at": "2099-01-01T00:00:00.000Z",
    "chains": 0,
    "heads_hash": "0" * 64,
    "key_id": "receipt_unknown",
}


@pytest.mark.parametrize("signature", ["ed25519:AAAA", "hmac-sha256:00", "none"])
def test_an_epoch_of_an_unknown_key_hides_no_rewrite(deciding: Instance, scope: Scope, signature: str) -> None:
    keep(deciding)
    rewrite(deciding, scope, 2)
    with deciding.checkpoints.log.file.open("ab") as file:
        file.write(orjson.dumps(FORGED_EPOCH | {"signature": signature}) + b"\n")
    comparison = compared(deciding)
    assert (comparison.holds, comparison.compared) == (False, 1)
    head = deciding.ledger.entries.head(scope.scope_id)
    for checkpoints in (deciding.checkpoints, anew(deciding)):
        with pytest.raises(ServiceUnavailable):
            checkpoints.sign(scope.scope_id, head, timestamp(utc_now()))


@pytest.mark.parametrize("change", ["alone", "moved to the end", "repeated at the end", "another chain behind it"])
def test_a_true_epoch_accounts_for_nothing_without_its_own_checkpoints(
    deciding: Instance, authority: Authority, scope: Scope, change: str
) -> None:
    keep(deciding)
    deciding.checkpoints.begin_epoch("A drill.", utc_now())
    grow(deciding, authority, 1)
    keep(deciding)
    kept, epoch, opened, later = deciding.checkpoints.log.file.read_bytes().splitlines(keepends=True)
    lines = {
        "alone": [kept, epoch],
        "moved to the end": [kept, opened, later, epoch],
        "repeated at the end": [kept, epoch, opened, later, epoch],
        "another chain behind it": [kept, epoch, later],
    }[change]
    rewrite(deciding, scope, 1)
    deciding.checkpoints.log.file.write_bytes(b"".join(lines))
    comparison = compared(deciding)
    assert not comparison.holds
    assert comparison.cuts == []
    with pytest.raises(ServiceUnavailable):
        anew(deciding).sign(scope.scope_id, deciding.ledger.entries.head(scope.scope_id), timestamp(utc_now()))


@pytest.mark.parametrize("line", ["an older one again", "a copy of another key"])
def test_one_line_more_does_not_make_the_service_sign_a_rewritten_chain(
    deciding: Instance, authority: Authority, scope: Scope, line: str
) -> None:
    keep(deciding)
    grow(deciding, authority, 2)
    keep(deciding)
    rewrite(deciding, scope, 5)
    older, newer = kept_lines(deciding)
    head = deciding.ledger.entries.head(scope.scope_id)
    copy = newer | {"merkle_root": head.merkle_root, "link_hash": head.link_hash, "key_id": "receipt_unknown"}
    with deciding.checkpoints.log.file.open("ab") as file:
        file.write(orjson.dumps(older if line == "an older one again" else copy) + b"\n")
    for checkpoints in (deciding.checkpoints, anew(deciding)):
        with pytest.raises(ServiceUnavailable, match="no longer contains"):
            checkpoints.sign(scope.scope_id, head, timestamp(utc_now()))
    assert not compared(deciding).holds


def test_an_epoch_that_a_crash_cut_short_never_began(deciding: Instance, authority: Authority, scope: Scope) -> None:
    directory = deciding.ledger.directory
    other = directory.create_scope("other", "unlimited", utc_now())
    key, _ = directory.create_key(other, {"decide", "register"}, None, utc_now())
    grow(deciding, directory.authenticate(key, utc_now()), 1)
    keep(deciding)
    deciding.checkpoints.begin_epoch("A drill.", utc_now())
    lines = deciding.checkpoints.log.file.read_bytes().splitlines(keepends=True)
    deciding.checkpoints.log.file.write_bytes(b"".join(lines[:4]))
    grow(deciding, authority, 1)
    checkpoints = anew(deciding)
    assert checkpoints.keep(utc_now()).signed == 1  # type: ignore[union-attr]
    assert len(kept_lines(deciding)) == 3
    assert compared(deciding).holds


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_an_epoch_needs_a_reason(deciding: Instance, reason: str) -> None:
    with pytest.raises(OperatorError) as refused:
        deciding.checkpoints.begin_epoch(reason, utc_now())
    assert refused.value.code == "EPOCH_REASON_INVALID"


def test_with_signing_off_nothing_is_kept(
    deciding: Instance, scope: Scope, instances: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_RECEIPT_SIGNING", "off")
    unsigned = instances.enter_context(_opened(deciding.settings.home))
    assert unsigned.checkpoints.keep(utc_now()) is None
    assert unsigned.checkpoints.look(utc_now()) is None
    head = unsigned.ledger.entries.head(scope.scope_id)
    assert unsigned.checkpoints.sign(scope.scope_id, head, timestamp(utc_now())) is None
    assert not unsigned.settings.checkpoint_log_file.exists()
    with pytest.raises(OperatorError):
        unsigned.checkpoints.begin_epoch("Put back.", utc_now())


def test_checkpoints_of_a_key_that_was_rotated_still_count(deciding: Instance, scope: Scope) -> None:
    keep(deciding)
    deciding.receipt_keys.rotate(utc_now())
    comparison = compared(deciding)
    assert (comparison.holds, comparison.unverified) == (True, 0)
    cut(deciding, scope, 2)
    assert not compared(deciding).holds


def test_what_a_check_of_one_scope_reads_leaves_the_others_out(deciding: Instance, scope: Scope) -> None:
    other = deciding.ledger.directory.create_scope("other", "unlimited", utc_now())
    keep(deciding)
    cut(deciding, scope, 1)
    log = CheckpointLog(deciding.settings.checkpoint_log_file)
    assert compare(deciding, log, {other.scope_id}).compared == 0
    assert not compare(deciding, log, {scope.scope_id}).holds


def test_a_log_that_cannot_be_written_is_a_reason(deciding: Instance, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    file = blocked / "checkpoints.jsonl"
    checkpoints = Checkpoints(deciding.ledger, file, lambda: deciding.signers().receipt, deciding.trust)
    with pytest.raises(GateError, match="cannot be"):
        checkpoints.keep(utc_now())


def test_a_rewritten_outcome_shows_although_every_hash_was_recomputed(
    deciding: Instance, authority: Authority, scope: Scope
) -> None:
    (decision_id,) = grow(deciding, authority, 1)
    deciding.lifecycle().report(authority, OUTCOMES, decision_id, {"outcome_status": "failed"})
    keep(deciding)
    rewrite(deciding, scope, 5)
    assert not compared(deciding).holds


def _opened(home: Path) -> AbstractContextManager[Instance]:
    return closing(open_instance(load_settings(home)))
