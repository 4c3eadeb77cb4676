"""Where a request comes from, as its client is counted: the address of the client, not one that it makes up.

A proxy that is trusted appends the address of its client to `X-Forwarded-For`, so that only the last one there is its
word; whatever stands before it, and every other header, comes from the client. An IPv6 client has a whole /64 to choose
addresses from, and counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

LOOPBACK: Final = ("127.0.0.1", "::1")
"""The proxies that are trusted where none are named: those on this machine."""

_IPV6_PREFIX: Final = 64


class Origins:
    """Tells where requests come from."""

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
            forwarded_for: The header X-Forwarded-For; empty where there is none.
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
    """Whether a text is a network, such as 10.0.0.0/8; an address alone is a network of one."""
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
