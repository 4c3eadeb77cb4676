"""The address that a request is counted under: the real address of its client, not one that the client claims.

A trusted proxy appends the address of its client to `X-Forwarded-For`, so only the last address there is reliable. The
client itself may have sent the addresses before it and every other header. An IPv6 client can choose from a whole /64,
so the network counts as one client.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

LOOPBACK: Final = ("127.0.0.1", "::1")
"""The proxies that are trusted by default: those on this machine."""

_IPV6_PREFIX: Final = 64


class Origins:
    """Finds out the addresses of requests."""

    def __init__(self, proxies: Iterable[str]) -> None:
        """Takes the addresses of the proxies that are trusted; none where clients reach the server themselves.

        Raises:
            ValueError: One is no address.
        """
        self._proxies: Final = frozenset(_address(proxy) for proxy in proxies)

    def of(self, peer: str, forwarded_for: str) -> str:
        """The address or the IPv6 network that a request is counted under.

        Args:
            peer: The address of the other end of the connection.
            forwarded_for: The header `X-Forwarded-For`, or an empty text without it.
        """
        address = _known(peer)
        if address is None or address not in self._proxies:
            return _counted(address)
        last = forwarded_for.rpartition(",")[2].strip()
        return _counted(_known(last) or address)


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    return _known(text) is not None


def is_network(text: str) -> bool:
    """Whether a text is a network, such as 10.0.0.0/8. A single address is a network of one."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _known(text: str) -> Address | None:
    try:
        return _address(text)
    except ValueError:
        return None


def _address(text: str) -> Address:
    found = ip_address(text)
    # As which a server that listens on `::` sees IPv4.
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _counted(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), _IPV6_PREFIX), strict=False))
    return "unknown" if address is None else str(address)
