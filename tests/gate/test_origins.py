"""Where a client is counted: it cannot make its address up."""

from __future__ import annotations

import pytest

from gate.origins import LOOPBACK, Origins


def origin(peer: str, forwarded_for: str = "", proxies: tuple[str, ...] = LOOPBACK) -> str:
    """The origin of a request from a peer."""
    return Origins(proxies).of(peer, forwarded_for)


@pytest.mark.parametrize("proxy", [*LOOPBACK, "::ffff:127.0.0.1"])
def test_the_last_hop_that_a_trusted_proxy_names_counts(proxy: str) -> None:
    assert origin(proxy, "203.0.113.9") == "203.0.113.9"
    assert origin(proxy, "1.2.3.4, 5.6.7.8 ,203.0.113.9") == "203.0.113.9"
    # A client's own header stands before that of the proxy.
    assert origin(proxy, "1.2.3.4,203.0.113.9") == "203.0.113.9"


def test_a_peer_that_is_no_trusted_proxy_counts_itself() -> None:
    made_up = "1.2.3.4"
    assert origin("203.0.113.9", made_up) == "203.0.113.9"
    assert origin("127.0.0.1", made_up, ()) == "127.0.0.1"
    assert origin("127.0.0.1", made_up, ("10.0.0.5",)) == "127.0.0.1"
    assert origin("10.0.0.5", made_up, ("10.0.0.5",)) == "1.2.3.4"


@pytest.mark.parametrize("value", ["", "x", "1.2.3.4,", "1.2.3.4, unknown", "1.2.3.4:80"])
def test_what_is_no_address_is_not_believed(value: str) -> None:
    assert origin("127.0.0.1", value) == "127.0.0.1"


def test_the_addresses_of_an_ipv6_network_count_as_one() -> None:
    networks = {origin("127.0.0.1", f"2001:db8:1:2:{each:x}::1") for each in range(9)}
    assert networks == {"2001:db8:1:2::/64"}
    assert origin("127.0.0.1", "2001:db8:1:3::1") == "2001:db8:1:3::/64"
    assert origin("127.0.0.1", "::ffff:203.0.113.9") == "203.0.113.9"


def test_a_proxy_is_named_by_its_address() -> None:
    with pytest.raises(ValueError, match=r"proxy\.example"):
        Origins(["proxy.example"])
