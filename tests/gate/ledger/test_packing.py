"""Bodies in the ledger: what goes in comes out, and damage is handed on to whoever reads it."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gate.encoding import resources
from gate.errors import ServiceUnavailable
from gate.ledger import packing
from gate.ledger.packing import pack, unpack
from gate.ledger.stores.store import read_object
from tests.support.samples import make_record


@given(st.dictionaries(st.text(), st.text(max_size=2000)))
def test_what_is_packed_is_unpacked_byte_for_byte(members: dict[str, str]) -> None:
    body = orjson.dumps(members)
    assert unpack(pack(body)) == body


def test_a_record_is_stored_in_a_fourth_and_a_short_body_as_it_is() -> None:
    record = orjson.dumps(make_record())
    assert len(pack(record)) < len(record) / 4
    assert pack(b'{"n":1}') == b'{"n":1}'


def test_what_deflated_an_older_release_is_read_as_it_was() -> None:
    record = orjson.dumps(make_record())
    assert unpack(zlib.compress(record)) == record


def test_the_dictionary_of_stored_bodies_never_changes() -> None:
    found = {file.name: sha256(file.read_bytes()).hexdigest() for file in resources.path("data", "ledger").iterdir()}
    assert found == {"bodies-32768.zdict": "7a8545fa8ff2702ac313856060c2e30d7c98bd332b0e9036326e107329852f30"}


def test_a_body_that_names_a_dictionary_of_a_later_release_is_unreadable() -> None:
    samples: list[bytes | bytearray | memoryview[int]] = [
        orjson.dumps({**make_record(), "number": number}) for number in range(200)
    ]
    later = zstandard.train_dictionary(1024, samples, dict_id=(1 << 15) + 1)
    stored = zstandard.ZstdCompressor(dict_data=later).compress(samples[0])
    with pytest.raises(ServiceUnavailable, match="not readable"):
        read_object(unpack(stored), "dec_1")


def test_threads_pack_side_by_side() -> None:
    bodies = [orjson.dumps({**make_record(), "number": number}) for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda body: unpack(pack(body)), bodies * 4)) == bodies * 4


def test_json_that_an_older_release_stored_is_read_as_it_is() -> None:
    record = orjson.dumps(make_record())
    assert unpack(record) == record


@pytest.mark.parametrize("damage", ["cut", "flipped", "extended", "swollen", "swollen stream"])
def test_a_damaged_body_is_unreadable_and_never_another_body(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(orjson.dumps(make_record()))
    if damage.startswith("swollen"):
        monkeypatch.setattr(packing, "_MAX_UNPACKED", 1000)
    stored = {
        "cut": packed[:-3],
        "flipped": packed[:50] + bytes([packed[50] ^ 1]) + packed[51:],
        "extended": packed + b"x",
        "swollen": pack(b'{"a":"' + b"x" * 5000 + b'"}'),
        "swollen stream": zlib.compress(b'{"a":"' + b"x" * 5000 + b'"}'),
    }[damage]
    with pytest.raises(ServiceUnavailable, match="not readable"):
        read_object(unpack(stored), "dec_1")
