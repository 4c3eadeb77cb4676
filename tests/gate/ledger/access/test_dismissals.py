"""Anomalies that users dismiss and reopen: each act with its note, none taken out, none done twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from gate.errors import RequestRefused, ServiceUnavailable
from gate.ids import timestamp
from gate.ledger import Ledger, open_ledger
from gate.ledger.access.authority import Scope
from gate.ledger.access.dismissals import Dismissal, FlaggedAnomaly
from tests.support.samples import NOW, in_threads, ledger_url, rows_of

LATER: Final = NOW + timedelta(minutes=1)
FLAGGED: Final = FlaggedAnomaly("ano_0123456789abcdef", "refund_policy", "high", 0.912345)
OTHER: Final = replace(FLAGGED, anomaly_id="ano_fedcba9876543210", severity="low", score=0.3)


def refusal_of(ledger: Ledger, scope: Scope, note: str = "seen", *, reopened: bool = False) -> str:
    attempts: dict[bool, Callable[[], object]] = {
        True: lambda: ledger.dismissals.reopen(scope, FLAGGED.anomaly_id, note, "ben", LATER),
        False: lambda: ledger.dismissals.dismiss(scope, FLAGGED, note, "ben", LATER),
    }
    with pytest.raises(RequestRefused) as refusal:
        attempts[reopened]()
    return str(refusal.value)


def test_nothing_is_dismissed_at_first(ledger: Ledger, scope: Scope) -> None:
    assert ledger.dismissals.latest(scope.scope_id) == {}
    assert ledger.dismissals.history(scope.scope_id, FLAGGED.anomaly_id) == []


def test_an_anomaly_is_dismissed_and_reopened_and_every_act_is_kept_and_logged(ledger: Ledger, scope: Scope) -> None:
    logged = len(ledger.operator_log.latest(1000))
    first = ledger.dismissals.dismiss(scope, FLAGGED, " Known: a test of the \0 shop é.\n", "ada", NOW)
    second = ledger.dismissals.reopen(scope, FLAGGED.anomaly_id, "It was none.", "ben", LATER)
    worse = replace(FLAGGED, score=0.99)
    third = ledger.dismissals.dismiss(scope, worse, "It was.", "ada", LATER)
    assert (first, second, third) == (
        Dismissal(FLAGGED, 1, True, "Known: a test of the \0 shop é.", "ada", timestamp(NOW)),
        Dismissal(FLAGGED, 2, False, "It was none.", "ben", timestamp(LATER)),
        Dismissal(worse, 3, True, "It was.", "ada", timestamp(LATER)),
    )
    assert ledger.dismissals.history(scope.scope_id, FLAGGED.anomaly_id) == [first, second, third]
    assert ledger.dismissals.latest(scope.scope_id) == {FLAGGED.anomaly_id: third}
    about = {"scope": "acme", "policy_id": "refund_policy", "severity": "high"}
    entries = ledger.operator_log.latest(1000)[logged:]
    assert [(entry.action, entry.subject, entry.operator, entry.details) for entry in entries] == [
        ("anomaly.dismissed", FLAGGED.anomaly_id, "ada (workbench)", {**about, "number": 1}),
        ("anomaly.reopened", FLAGGED.anomaly_id, "ben (workbench)", {**about, "number": 2}),
        ("anomaly.dismissed", FLAGGED.anomaly_id, "ada (workbench)", {**about, "number": 3}),
    ]
    assert ledger.operator_log.find_break() is None


def test_what_is_done_already_is_refused_with_who_did_it(ledger: Ledger, scope: Scope) -> None:
    assert refusal_of(ledger, scope, reopened=True).startswith("ANOMALY_OPEN: ")
    ledger.dismissals.dismiss(scope, FLAGGED, "Known.", "ada", NOW)
    before = rows_of(ledger.store)
    told = refusal_of(ledger, scope)
    assert told.startswith(f"ANOMALY_DISMISSED: ada dismissed this anomaly at {timestamp(NOW)}")
    assert rows_of(ledger.store) == before
    ledger.dismissals.reopen(scope, FLAGGED.anomaly_id, "No.", "ben", LATER)
    assert refusal_of(ledger, scope, reopened=True).startswith("ANOMALY_OPEN: ")


@pytest.mark.parametrize("note", ["", " \n\t", "x" * 1001, "\ud800"])
def test_an_act_needs_a_note(ledger: Ledger, scope: Scope, note: str) -> None:
    for reopened in (False, True):
        assert refusal_of(ledger, scope, note, reopened=reopened).startswith("ANOMALY_NOTE_INVALID: ")
    assert ledger.dismissals.dismiss(scope, FLAGGED, "\u00e9" * 1000, "ada", NOW).number == 1


def test_users_who_act_at_once_come_one_after_the_other(ledger: Ledger, scope: Scope) -> None:
    ledgers = [open_ledger(ledger_url(ledger)) for _ in range(6)]

    def dismiss(number: int) -> str:
        try:
            ledgers[number].dismissals.dismiss(scope, FLAGGED, "Known.", f"user-{number}", NOW)
        except RequestRefused as error:
            return error.code
        return "dismissed"

    assert sorted(in_threads(6, dismiss)) == ["ANOMALY_DISMISSED"] * 5 + ["dismissed"]
    assert len(ledger.dismissals.history(scope.scope_id, FLAGGED.anomaly_id)) == 1
    for opened in ledgers:
        opened.close()


def test_scopes_and_anomalies_have_acts_of_their_own(ledger: Ledger, scope: Scope) -> None:
    elsewhere = ledger.directory.create_scope("elsewhere", "team", NOW)
    first = ledger.dismissals.dismiss(scope, FLAGGED, "Known.", "ada", NOW)
    there = ledger.dismissals.dismiss(elsewhere, FLAGGED, "Known, too.", "ben", NOW)
    second = ledger.dismissals.dismiss(scope, OTHER, "Known.", "ada", NOW)
    ids = (FLAGGED.anomaly_id, OTHER.anomaly_id)
    assert ledger.dismissals.latest(scope.scope_id) == dict(zip(ids, (first, second), strict=True))
    assert ledger.dismissals.latest(elsewhere.scope_id, ids) == {ids[0]: there}
    assert ledger.dismissals.latest(scope.scope_id, [ids[1], "ano_unknown", "\0"]) == {ids[1]: second}
    assert ledger.dismissals.latest(scope.scope_id, []) == {}


@pytest.mark.parametrize("anomaly_id", ["", "\0", "\udcff", "x" * 1000])
def test_an_id_that_names_nothing_is_open(ledger: Ledger, scope: Scope, anomaly_id: str) -> None:
    assert ledger.dismissals.history(scope.scope_id, anomaly_id) == []
    with pytest.raises(RequestRefused, match="ANOMALY_OPEN"):
        ledger.dismissals.reopen(scope, anomaly_id, "No.", "ada", NOW)


def test_where_the_log_cannot_be_written_nothing_is_dismissed(ledger: Ledger, scope: Scope) -> None:
    with ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE operator_log RENAME TO gone")
    with pytest.raises(ServiceUnavailable):
        ledger.dismissals.dismiss(scope, FLAGGED, "Known.", "ada", NOW)
    assert ledger.dismissals.latest(scope.scope_id) == {}
    with ledger.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE gone RENAME TO operator_log")
