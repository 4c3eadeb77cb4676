"""How bodies lie in the ledger: JSON, compressed with a dictionary of what records have in common.

A record of 7 KB takes 1.3, so two decisions with their requests and links share a page of the database. This halves the
bytes that are written under the ledger's lock, and the disk use of a year. Compression happens before the lock, and
lets other threads run meanwhile. The first bytes show the form. JSON objects begin with `{`, and `zstd` frames with
their own number. `zlib` streams, which releases before 0018 (`docs/adr`) stored, begin with neither.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from functools import cache
from typing import Final

import zstandard

from gate.encoding import resources

_DICTIONARY: Final = 1 << 15
"""The dictionary that new bodies are compressed with. One that bodies were stored with is never changed or removed."""

_LEVEL: Final = 1
# A frame has a head and a checksum, which a short body would not make up for.
_WORTHWHILE: Final = 128
_FRAME: Final = b"\x28\xb5\x2f\xfd"
# No body that was stored comes near it; what unpacks to more is damage.
_MAX_UNPACKED: Final = 64 * 1024 * 1024

# One at a time may use each; as many are here as threads worked at once.
_compressors: Final[list[zstandard.ZstdCompressor]] = []
_decompressors: Final[defaultdict[int, list[zstandard.ZstdDecompressor]]] = defaultdict(list)


def pack(body: bytes) -> bytes:
    """The bytes to store for a JSON object."""
    if len(body) < _WORTHWHILE:
        return body
    try:
        compressor = _compressors.pop()
    except IndexError:
        compressor = zstandard.ZstdCompressor(_LEVEL, _dictionary(_DICTIONARY), write_checksum=True)
    packed = compressor.compress(body)
    _compressors.append(compressor)
    return packed if len(packed) < len(body) else body


def unpack(stored: bytes) -> bytes:
    """The stored JSON. If it is damaged, the stored bytes, so that the reader of the JSON finds the damage."""
    if not isinstance(stored, bytes) or stored[:1] == b"{":
        return stored
    return _decompressed(stored) if stored[:4] == _FRAME else _inflated(stored)


def _decompressed(stored: bytes) -> bytes:
    try:
        frame = zstandard.get_frame_parameters(stored)
        if frame.content_size > _MAX_UNPACKED:
            return stored
        idle = _decompressors[frame.dict_id]
        try:
            decompressor = idle.pop()
        except IndexError:
            decompressor = zstandard.ZstdDecompressor(_dictionary(frame.dict_id))
        # By position, as names cost a tenth of a short body: one frame, and nothing after it.
        body = decompressor.decompress(stored, _MAX_UNPACKED, False, False)
        idle.append(decompressor)
    except (zstandard.ZstdError, OSError):
        return stored
    return body


def _inflated(stored: bytes) -> bytes:
    try:
        inflating = zlib.decompressobj()
        body = inflating.decompress(stored, _MAX_UNPACKED)
        return body if inflating.eof and not inflating.unused_data else stored
    except zlib.error:
        return stored


@cache
def _dictionary(number: int) -> zstandard.ZstdCompressionDict:
    """A dictionary of bodies; raises OSError where this release has none of that number."""
    found = zstandard.ZstdCompressionDict(resources.path("data", "ledger", f"bodies-{number}.zdict").read_bytes())
    found.precompute_compress(level=_LEVEL)
    return found
