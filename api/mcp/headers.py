"""Reads the headers of a request: the protocol version, the message's method, its name, and the origin."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_ENCODED: Final = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")


@dataclass(frozen=True, slots=True)
class Head:
    """The headers of the protocol; None for a header that was not sent.

    Attributes:
        version: `MCP-Protocol-Version`.
        method: `Mcp-Method`.
        name: `Mcp-Name`, as sent.
    """

    version: str | None = None
    method: str | None = None
    name: str | None = None


def decoded(value: str | None) -> str | None:
    """The text of a header that may be encoded as `=?base64?...?=`; None if it is missing or malformed."""
    if value is None or (encoded := _ENCODED.fullmatch(value)) is None:
        return value
    try:
        raw = base64.b64decode(encoded[1], validate=True)
        text = raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    # One text has one encoding, so that nothing before the service reads another.
    return text if base64.b64encode(raw).decode("ascii") == encoded[1] else None


def is_allowed_origin(origin: str, allowed: Collection[str]) -> bool:
    """Whether pages of an origin may send messages: pages of this machine, and origins that the operator allows.

    Without this check, any web page could reach a server on the machine of its reader.

    Args:
        origin: The header Origin.
        allowed: The origins that the operator allows.
    """
    if origin in allowed:
        return True
    try:
        parts = urlsplit(origin)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not host or origin != f"{parts.scheme}://{parts.netloc}":
        return False
    return "@" not in parts.netloc and (host == "localhost" or _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
