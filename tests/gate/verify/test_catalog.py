"""Every check and every code of a verification is in the catalogue."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from gate.encoding import resources
from gate.verify import Trust, verify_record
from gate.verify.catalog import CODES, PACKET, RECORD, Check, Group
from gate.verify.packets.packet import verify_packet
from tests.support.samples import RECEIPT_KEYS, make_packet, make_record

TRUST = Trust(receipt_keys=RECEIPT_KEYS, source="registry")


def names(groups: Sequence[Group]) -> set[str]:
    found: set[str] = set()
    for group in groups:
        for check in group.checks:
            first, *others = check.name.split(", ")
            prefix = first.rpartition(".")[0]
            found |= {first, *(f"{prefix}{other}" if other.startswith(".") else other for other in others)}
    return found


def test_every_check_of_a_record_is_described() -> None:
    assert verify_record(make_record(), TRUST).checks.keys() <= names(RECORD)


def test_every_check_of_a_packet_is_described() -> None:
    made = verify_packet(make_packet(), TRUST).checks.keys()
    described = names(PACKET)
    shown = {re.sub(r"\[[0-9]+\]", "[n]", name) for name in made if not name.startswith("record.")}
    assert shown <= described


def test_every_code_is_explained() -> None:
    sources = "".join(
        path.read_text() for path in resources.path("gate", "verify").rglob("*.py") if path.stem != "catalog"
    )
    raised = set(re.findall(r'"((?:RECORD|PACKET|RESOLUTION|REPORTS|CHECKPOINT|INPUT|MATERIAL)_[A-Z_]+)"', sources))
    raised |= set(re.findall(r'"(SIGNING_KEY_[A-Z_]+)"', sources))
    assert raised == set(CODES)


@pytest.mark.parametrize("check", [check for group in (*RECORD, *PACKET) for check in group.checks])
def test_descriptions_are_sentences(check: Check) -> None:
    assert check.holds or check.advice or check.skipped
    assert not any(text.endswith(".") for text in (check.holds, check.advice, check.skipped))
    assert check.more == "" or check.more.endswith(".")
