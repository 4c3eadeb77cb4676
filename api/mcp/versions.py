"""The versions of the protocol, its error codes, and the HTTP status that carries each.

Up to 2025-11-25, a client starts with `initialize`, and the server answers with the version to use from then on. Since
2026-07-28, every request states its version, in `_meta` and in a header, and `server/discover` replaces `initialize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

HANDSHAKE_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions that `initialize` negotiates, the newest first."""

PER_REQUEST_VERSIONS: Final = ("2026-07-28",)
"""The versions that every request states itself, the newest first."""

VERSIONS: Final = PER_REQUEST_VERSIONS + HANDSHAKE_VERSIONS
"""All versions, the newest first."""

BATCH_VERSION: Final = "2025-03-26"
"""The only version with JSON-RPC batches. It has no version header, so it is the version of requests without one."""

MAX_BATCH: Final = 20
"""The maximum number of messages in a batch."""


class Code(IntEnum):
    """An error code of the protocol."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    UNKNOWN_METHOD = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    HEADER_MISMATCH = -32020
    UNSUPPORTED_VERSION = -32022


_ALWAYS: Final = {
    Code.PARSE: 400,
    Code.INVALID_REQUEST: 400,
    Code.HEADER_MISMATCH: 400,
    Code.UNSUPPORTED_VERSION: 400,
}

# Clients of the older versions take a status that is no success for a broken connection, and never read the answer.
STATUSES: Final[Mapping[bool, Mapping[Code, int]]] = MappingProxyType(
    {
        False: _ALWAYS,
        True: _ALWAYS | {Code.UNKNOWN_METHOD: 404, Code.INVALID_PARAMS: 400, Code.INTERNAL: 500},
    }
)
"""The status of an answer with an error, or else 200. It depends on whether the request states its version."""


def negotiated(asked: str) -> str:
    """The version that `initialize` selects: the client's version, or the newest supported one."""
    return asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
