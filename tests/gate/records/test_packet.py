"""Packets as they are built: their parts, and what their hash covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding.canonical import content_hash
from gate.records.packet import build_packet, hidden_reports, links_to_retain, packet_hash
from gate.records.reports.receipts import EXECUTIONS, OUTCOMES
from tests.independent import verifier
from tests.support.samples import RECEIPT_KEYS, make_packet, make_record, sample_request

AT = "2026-06-11T12:30:45.678Z"


def test_a_packet_has_the_parts_of_the_specification() -> None:
    packet = make_packet()
    record = packet["decision_record"]
    assert packet.keys() == {
        "decision_packet_version",
        "decision_id",
        "record_hash",
        "receipt_hash",
        "decision_record",
        "execution_receipts",
        "outcome_records",
        "policy_intelligence",
        "audit_chain",
        "input",
        "exported_at",
        "packet_hash",
    }
    assert packet["decision_packet_version"] == "decision_packet_v1"
    assert [packet[name] for name in ("decision_id", "record_hash", "receipt_hash")] == [
        record[name] for name in ("decision_id", "record_hash", "receipt_hash")
    ]
    assert packet["policy_intelligence"].keys() == {
        "effectiveness",
        "confidence",
        "anomalies",
        "benchmarks",
        "patterns",
    }
    assert packet["input"] == sample_request()


def test_the_hash_covers_everything_else() -> None:
    packet = make_packet()
    rest = {name: value for name, value in packet.items() if name != "packet_hash"}
    assert packet["packet_hash"] == packet_hash(packet) == content_hash(rest) == verifier.packet_hash(packet)
    for name in rest:
        assert packet_hash({**packet, name: None}) != packet["packet_hash"]


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_the_chain_is_that_of_the_last_retained_link(limit: int) -> None:
    part = make_packet(chain_limit=limit)["audit_chain"]
    first, last = part["retained_links"][0], part["retained_links"][-1]
    assert len(part["retained_links"]) == min(limit, 7)
    assert (first["entry_type"], first["chain_position"]) == ("decision", 2)
    assert (part["chain_id"], part["chain_size"], part["merkle_root"]) == (
        last["chain_id"],
        last["chain_position"],
        last["merkle_root"],
    )
    checkpoint = part["verification_hints"]["checkpoint"]
    assert (checkpoint["chain_size"], checkpoint["link_hash"]) == (last["chain_position"], last["link_hash"])
    assert verifier.checkpoint_failures(checkpoint, RECEIPT_KEYS.to_dict()) == []


def test_the_hints_name_every_formula_and_where_to_ask() -> None:
    hints = make_packet(signer=None)["audit_chain"]["verification_hints"]
    assert "checkpoint" not in hints
    assert {"packet_hash", "leaf_hash", "merkle_root", "link_hash"} <= hints.keys()
    assert (hints["verify_url"], hints["chain_url"]) == (
        "/api/decision/packet/verify",
        "/api/decision/chains/chain_test",
    )


def test_parts_that_are_not_wanted_are_left_out_and_an_erased_input_is_null() -> None:
    record = make_record()
    packet = build_packet(record, [], [], exported_at=AT)
    assert {"policy_intelligence", "audit_chain", "input"} & packet.keys() == set()
    assert (packet["execution_receipts"], packet["outcome_records"]) == ([], [])
    erased = build_packet(record, [], [], exported_at=AT, with_input=True)
    assert erased["input"] is None
    assert erased["packet_hash"] != packet["packet_hash"]


@given(
    st.lists(st.sampled_from([("execution", "d"), ("outcome", "d"), ("execution", "other"), ("decision", "other")])),
    *[st.integers(1, 12)] * 3,
)
def test_the_most_links_are_retained_that_hide_no_report_where_a_shown_one_lies_beyond_them(
    entries: list[tuple[str, str]], execution_limit: int, outcome_limit: int, chain_limit: int
) -> None:
    links: list[Any] = [
        {"chain_position": position, "entry_type": entry_type, "decision_id": decision_id}
        for position, (entry_type, decision_id) in enumerate([("decision", "d"), *entries], start=5)
    ]
    own = [link for link in reversed(links) if link["decision_id"] == "d"]
    made: list[Any] = [
        [{"audit_chain": link} for link in own if link["entry_type"] == name][:limit]
        for name, limit in (("execution", execution_limit), ("outcome", outcome_limit))
    ]
    executions, outcomes = made
    read = links[:chain_limit]
    retained = links_to_retain(read, executions, outcomes)
    assert retained == read[: max(1, len(retained))]

    def is_told_apart(kept: Sequence[Any]) -> bool:
        for kind, reports in ((EXECUTIONS, executions), (OUTCOMES, outcomes)):
            positions = [report["audit_chain"]["chain_position"] for report in reports]
            beyond = any(position > kept[-1]["chain_position"] for position in positions)
            if beyond and hidden_reports(kept, kind, "d", positions):
                return False
        return True

    assert is_told_apart(retained)
    assert not any(is_told_apart(read[:size]) for size in range(len(retained) + 1, len(read) + 1))


def test_links_are_all_retained_where_every_shown_report_is_among_them() -> None:
    packet = make_packet()
    links = packet["audit_chain"]["retained_links"]
    assert links_to_retain(links, packet["execution_receipts"][:1], packet["outcome_records"][:1]) == links
    cut = links_to_retain(links[:4], packet["execution_receipts"][:1], packet["outcome_records"])
    assert [link["chain_position"] for link in cut] == [2]
