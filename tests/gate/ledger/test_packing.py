"""Bodies in the ledger: what goes in comes out, and damage is handed on to whoever reads it."""

from __future__ import annotations

import zlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import ServiceUnavailable
from gate.ledger import packing
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.store import read_object
from tests.support.samples import make_record


@given(st.dictionaries(st.text(), st.text(max_size=2000)))
def test_what_is_packed_is_unpacked_byte_for_byte(members: dict[str, str]) -> None:
    body = orjson.dumps(members)
    assert unpack(pack(body)) == body


def test_a_record_is_stored_in_less_than_half_and_a_short_body_as_it_is() -> None:
    record = orjson.dumps(make_record())
    assert len(pack(record)) < len(record) / 2
    assert pack(b'{"n":1}') == b'{"n":1}'


def test_json_that_an_older_release_stored_is_read_as_it_is() -> None:
    record = orjson.dumps(make_record())
    assert unpack(record) == record


@pytest.mark.parametrize("damage", ["cut", "flipped", "extended", "swollen"])
def test_a_damaged_body_is_unreadable_and_never_another_body(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(orjson.dumps(make_record()))
    if damage == "swollen":
        monkeypatch.setattr(packing, "_MAX_UNPACKED", 1000)
    stored = {
        "cut": packed[:-3],
        "flipped": packed[:50] + bytes([packed[50] ^ 1]) + packed[51:],
        "extended": packed + b"x",
        "swollen": zlib.compress(b'{"a":"' + b"x" * 5000 + b'"}'),
    }[damage]
    with pytest.raises(ServiceUnavailable, match="not readable"):
        read_object(unpack(stored), "dec_1")
