"""The URLs that endpoints may have, and the addresses that connections may go to. Pure: nothing is resolved here.

    target = read_url("https://hooks.example.com/gate", rules)      # where to, or a sentence that says why not
    refused_address("10.0.0.7", rules)                              # why no connection goes there; None where one may

A URL's name says nothing about its address. So the gate checks an address when it connects, and the connection goes to
exactly that address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from gate.errors import OperatorError

Network: TypeAlias = IPv4Network | IPv6Network

MAX_URL: Final = 2000
"""How many characters a URL may have."""

_PORTS: Final = {"http": 80, "https": 443}
# What HTTP can carry in a request line: no space, no control character, no fragment.
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?\.?|[0-9A-Fa-f:.]+")


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings allow.

    Attributes:
        allow_http: Whether endpoints may omit TLS.
        networks: Networks that endpoints may be in though they are not public.
    """

    allow_http: bool = False
    networks: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where a delivery goes.

    Attributes:
        scheme: `https` or `http`.
        host: The name or the address, without brackets.
        port: The port.
        authority: Host and port as the header Host has them.
        path: The path with the query.
    """

    scheme: str
    host: str
    port: int
    authority: str
    path: str


def read_url(url: str, rules: Rules) -> Target:
    """Where a URL leads.

    Raises:
        OperatorError: `WEBHOOK_URL_INVALID`. The message repeats no part of the URL: it may have a token in it.
    """
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise _invalid("its host or port cannot be read") from error
    faults = {
        f"it is longer than {MAX_URL} characters": len(url) > MAX_URL,
        "it has white space or a character that is not ASCII": not _VISIBLE.fullmatch(url),
        "it does not begin with https://": parts.scheme not in _PORTS,
        "it begins with http://, which the setting webhook_http refuses": parts.scheme == "http"
        and not rules.allow_http,
        "it has a user or a password before its host": "@" in parts.netloc,
        "its host is not a name or an address": not _HOST.fullmatch(host),
        "its port is 0": port == 0,
        "it has a fragment, which begins with #": "#" in url,
    }
    for fault, is_so in faults.items():
        if is_so:
            raise _invalid(fault)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = Target(parts.scheme, host, port or _PORTS[parts.scheme], parts.netloc.lower(), path)
    if _is_literal(host) and (why := refused_address(host, rules)) is not None:
        raise OperatorError("WEBHOOK_ADDRESS_REFUSED", f"The URL leads to {why}.")
    return target


def refused_address(text: str, rules: Rules) -> str | None:
    """Why no connection goes to an address, as the end of a sentence; None where one may.

    Args:
        text: The address, as the name service gave it; an IPv6 address may have a zone.
        rules: What the settings allow.
    """
    try:
        address = _unwrapped(ip_address(text.partition("%")[0]))
    except ValueError:
        return f"{text[:80]!r}, which is not an IP address"
    if any(address in network for network in rules.networks):
        return None
    if _is_public(address):
        return None
    return f"{text}, which is not a public address; the setting webhook_networks can allow its network"


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return not any(address in network for network in _SPECIAL[address.version])


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address in an IPv4-mapped one: the system connects to that."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _invalid(fault: str) -> OperatorError:
    return OperatorError(
        "WEBHOOK_URL_INVALID",
        f"The URL of the endpoint cannot be used: {fault}. Write one such as https://hooks.example.com/gate.",
    )


_UNICAST: Final = IPv6Network("2000::/3")
"""All IPv6 addresses of the public internet. NAT64 (64:ff9b::/96), unique local, link-local and multicast addresses are
outside of it.
"""

# The IANA registries of special-purpose addresses, and 168.63.129.16, by which Azure's machines reach their host.
# Listed here, because Python's own list differs between its versions.
_SPECIAL: Final = {
    4: tuple(
        map(
            ip_network,
            (
                "0.0.0.0/8",
                "10.0.0.0/8",
                "100.64.0.0/10",
                "127.0.0.0/8",
                "168.63.129.16/32",
                "169.254.0.0/16",
                "172.16.0.0/12",
                "192.0.0.0/24",
                "192.0.2.0/24",
                "192.88.99.0/24",
                "192.168.0.0/16",
                "198.18.0.0/15",
                "198.51.100.0/24",
                "203.0.113.0/24",
                "224.0.0.0/4",
                "240.0.0.0/4",
            ),
        )
    ),
    # Protocol assignments with Teredo, documentation, 6to4 and segment routing: some carry an IPv4 address.
    6: tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))),
}
