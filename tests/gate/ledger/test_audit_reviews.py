"""The audit of what follows from resolutions: the flags of receipts, and the rows that tell where reviews stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import LargeBinary, insert, type_coerce, update

from gate.clock import utc_now
from gate.instance.audit import check_chain
from gate.ledger.chain.reviews import Terms
from gate.ledger.packing import pack, unpack
from gate.ledger.tables import entries, review_owners, reviews
from gate.records.reports.receipts import ACTION_TAKEN_MISMATCH, BINDING_MISMATCH, EXECUTIONS, NOT_APPROVED
from tests.gate.ledger.test_audit import changed, on_one_database, other, row_at, rows
from tests.gate.ledger.test_audit_attacks import requires
from tests.gate.ledger.test_audit_resolutions import (
    DESPITE,
    DONE,
    FAILED,
    GRANT_OF_KEY,
    GRANTED,
    NO,
    PLACES,
    QUEUED,
    REFUSED,
    SIZE,
    TOO_EARLY,
    UNASKED,
    WAITING,
    YES,
    Held,
    rearrange,
)
from tests.gate.ledger.test_audit_resolutions import held as held
from tests.support.samples import GRANT

CASES = json.loads((Path(__file__).parents[2] / "cases" / "review_rows.json").read_text())
EVIDENCE = "Keep this ledger as evidence"
NO_TEXT = type_coerce(b"\xff", LargeBinary)
SETTINGS = ("owner", "due_at", "grant_seconds")


def review_of(held: Held, position: int) -> Any:
    return next(row for row in rows(held.instance, reviews) if row.position == position)


def stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a row as a case writes them: the bytes of text that callers choose in hex."""
    return {
        name: type_coerce(bytes.fromhex(value["hex"]), LargeBinary) if isinstance(value, dict) else value
        for name, value in values.items()
    }


class TestFlags:
    @pytest.mark.parametrize("position", [TOO_EARLY, QUEUED, DONE, DESPITE, UNASKED, FAILED])
    def test_a_receipt_has_its_flag_exactly_where_no_grant_stands_before_it(self, held: Held, position: int) -> None:
        row = row_at(held.instance, position)
        receipt = orjson.loads(unpack(row.body))
        expected = [] if position in (QUEUED, DONE, FAILED) else [NOT_APPROVED]
        assert receipt["flags"] == expected
        for flags in ([], [NOT_APPROVED], [*expected, ACTION_TAKEN_MISMATCH], [NOT_APPROVED, NOT_APPROVED]):
            if flags != expected:
                with changed(held.instance, entries, row, {"body": pack(orjson.dumps({**receipt, "flags": flags}))}):
                    requires(held.found(), "entries", position, "flags")

    @on_one_database
    @pytest.mark.parametrize("position", [DESPITE, UNASKED], ids=["refused", "held"])
    def test_a_receipt_that_lost_its_flag_together_with_a_changed_row_is_found(self, held: Held, position: int) -> None:
        """A row of a granted review makes no grant."""
        receipt = orjson.loads(unpack(row_at(held.instance, position).body))
        review = review_of(held, held.ids.index(receipt["decision_id"]) + 1)
        cleared = {"body": pack(orjson.dumps({**receipt, "flags": []}))}
        for resolved in (review.resolved_position, GRANT_OF_KEY, WAITING, None):
            values = {"state": "executed", "resolved_position": resolved, "resolved_at": review.created_at}
            with (
                changed(held.instance, entries, row_at(held.instance, position), cleared),
                changed(held.instance, reviews, review, values),
            ):
                finding = held.found()
            assert finding is not None
            assert finding.table == "reviews"
            assert EVIDENCE in finding.reason


@on_one_database
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_changed_row_is_found_with_its_place(held: Held, case: dict[str, Any]) -> None:
    row = review_of(held, PLACES[case["of"]])
    with changed(held.instance, reviews, row, stored(case["set"])):
        finding = requires(held.found(), "reviews", case["at"], case["told"])
    assert finding.row == row.decision_id
    # What could open an action or hide one is more than a search that goes wrong.
    assert (EVIDENCE in finding.reason) is case["evidence"], finding.reason
    assert held.found() is None


def test_a_change_to_any_column_of_a_review_is_found_but_for_its_settings(held: Held) -> None:
    kept = rows(held.instance, reviews)
    assert len(kept) == 5
    missed = []
    for row in kept:
        for name, value in row._mapping.items():
            if name in ("scope_id", *SETTINGS):
                continue
            others = {"state": "expired" if value != "expired" else "refused", "resolved_position": WAITING}
            with changed(held.instance, reviews, row, {name: others.get(name) or other(value)}):
                finding = held.found()
            if finding is None or finding.table != "reviews":
                missed.append((row.position, name, finding))
    assert missed == []
    assert held.found() is None


def test_another_owner_or_time_limit_is_a_setting_and_no_damage(held: Held) -> None:
    held.instance.ledger.review_owners.set(held.scope, "", "", Terms("desk", 60, 90), utc_now())
    assert held.instance.ledger.review_owners.reassign(held.scope, "", "", utc_now()) == 1
    with held.instance.ledger.store.write() as connection:
        connection.execute(
            update(reviews).values(owner="somebody else", due_at="2030-01-01T00:00:00.000Z", grant_seconds=1)
        )
    assert held.found() is None


def test_a_review_without_its_row_is_found(held: Held) -> None:
    for row in rows(held.instance, reviews):
        with changed(held.instance, reviews, row, None):
            finding = requires(held.found(), "reviews", row.position, "lacks it", EVIDENCE)
        assert finding.row == row.decision_id
    assert held.found() is None


class TestStrays:
    def add(self, held: Held, **values: Any) -> None:
        row = dict(review_of(held, WAITING)._mapping)
        with held.instance.ledger.store.write() as connection:
            connection.execute(insert(reviews), row | values)

    @pytest.mark.parametrize("position", [YES, NO])
    def test_a_row_of_a_decision_that_was_never_held_is_found(self, held: Held, position: int) -> None:
        """With it, the service would take a grant of a no."""
        decision_id = held.ids[position - 1]
        self.add(held, decision_id=decision_id, position=position)
        finding = requires(held.found(), "reviews", position, "somebody could grant it", EVIDENCE)
        assert finding.row == decision_id

    def test_a_row_of_no_decision_is_found(self, held: Held) -> None:
        self.add(held, decision_id="dec_0")
        assert requires(held.found(), "reviews", WAITING, "no such decision").row == "dec_0"

    @on_one_database
    def test_one_of_many_is_found_on_its_page(self, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gate.instance.audit.reviews._PAGE", 2)
        self.add(held, decision_id="dec_z", position=GRANTED)
        assert requires(held.found(), "reviews", GRANTED, "no such decision").row == "dec_z"

    @on_one_database
    def test_a_row_of_a_decision_to_come_that_names_an_earlier_position_is_found(
        self, held: Held, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The decision itself is left to the next audit, and its row is one too many among those of this one."""
        head = held.instance.ledger.entries.head(held.scope.scope_id)
        decision_id = held.decide()
        with held.instance.ledger.store.write() as connection:
            connection.execute(update(reviews).where(reviews.c.position == SIZE + 1).values(position=YES))
        monkeypatch.setattr(held.instance.ledger.entries, "head", lambda _: head)
        assert requires(held.found(), "reviews", YES, "no such decision").row == decision_id

    @pytest.mark.parametrize("position", [0, -1, SIZE + 1, 99])
    def test_a_row_outside_the_chain_is_found(self, held: Held, position: int) -> None:
        self.add(held, decision_id="dec_0", position=position)
        assert requires(held.found(), "reviews", position, EVIDENCE).row == "dec_0"

    @on_one_database
    def test_a_row_that_a_cut_of_the_chain_left_is_found(self, held: Held) -> None:
        held.decide()
        row = review_of(held, SIZE + 1)
        rearrange(held, range(1, SIZE + 1))
        assert held.found() is None
        with held.instance.ledger.store.write() as connection:
            connection.execute(insert(reviews), dict(row._mapping))
        requires(held.found(), "reviews", SIZE + 1, f"ends at {SIZE}")

    @pytest.mark.parametrize("table", [reviews, review_owners], ids=lambda table: table.name)
    def test_a_row_of_a_scope_that_is_not_there_is_named(self, held: Held, table: Any) -> None:
        held.instance.ledger.review_owners.set(held.scope, "", "", Terms("desk"), utc_now())
        assert held.instance.ledger.audited.lost_scopes() == []
        with held.instance.ledger.store.write() as connection:
            connection.execute(insert(table), {**rows(held.instance, table)[0]._mapping, "scope_id": "f" * 16})
        assert held.instance.ledger.audited.lost_scopes() == [(table.name, "f" * 16)]


@on_one_database
@pytest.mark.parametrize("position", range(1, SIZE + 1))
def test_bytes_in_the_place_of_a_decision_s_id_are_found_and_end_nothing(held: Held, position: int) -> None:
    """SQLite keeps what it is given."""
    with changed(held.instance, entries, row_at(held.instance, position), {"decision_id": NO_TEXT}):
        finding = held.found()
    assert finding is not None
    # That of a resolution, and of a receipt that says executed, is missed by the row that follows from it.
    assert finding.table == "reviews" or (finding.table, finding.position) == ("entries", position)


@on_one_database
@pytest.mark.parametrize("name", [column.name for column in reviews.c if column.name != "scope_id"])
def test_bytes_in_the_place_of_any_column_of_a_review_are_found(held: Held, name: str) -> None:
    with changed(held.instance, reviews, review_of(held, REFUSED), {name: NO_TEXT}):
        finding = held.found()
    assert finding is not None
    assert finding.table == "reviews"


def test_a_receipt_about_another_target_leaves_a_granted_review_as_it_is(held: Held) -> None:
    said = {"execution_status": "executed", "target_object_id": "something-else"}
    receipt: Any = held.instance.lifecycle().report(held.caller, EXECUTIONS, held.ids[GRANTED - 1], said).report
    assert receipt["flags"] == [BINDING_MISMATCH]
    row = review_of(held, GRANTED)
    assert (row.state, held.found()) == ("granted", None)
    with changed(held.instance, reviews, row, {"state": "executed"}):
        requires(held.found(), "reviews", PLACES["grant of a user"], "no later receipt in the chain says so")
    held.report(GRANTED, "executed")
    assert (review_of(held, GRANTED).state, held.found()) == ("executed", None)


def test_a_resolution_and_a_receipt_that_come_while_the_chain_is_read_are_left_to_the_next_audit(held: Held) -> None:
    """Their rows are there already when the decision is judged."""
    held.decide()
    head = held.instance.ledger.entries.head(held.scope.scope_id)
    read = held.instance.ledger.entries.head

    def before(scope_id: str) -> Any:
        if read(scope_id) == head:
            held.instance.resolutions().resolve(held.owner, held.ids[-1], GRANT)
            held.instance.lifecycle().report(held.caller, EXECUTIONS, held.ids[-1], {"execution_status": "executed"})
        return head

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held.instance.ledger.entries, "head", before)
        assert check_chain(held.instance, held.scope.scope_id) == (SIZE + 1, None)
    assert check_chain(held.instance, held.scope.scope_id) == (SIZE + 3, None)
