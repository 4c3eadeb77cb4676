"""Where sign-ins are counted: a client cannot make its address up."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from workbench.dashboard.app.origin import LOOPBACK, Origins


def origin(peer: str, headers: list[tuple[str, str]] | None = None, proxies: tuple[str, ...] = LOOPBACK) -> str:
    """The origin of a request from a peer."""
    held = HTTPHeaders({"Host": "workbench.example"})
    for name, value in headers or []:
        held.add(name, value)
    request = HTTPServerRequest(start_line=RequestStartLine("POST", "/sign-in", "HTTP/1.1"), headers=held)
    request.remote_ip = peer
    return Origins(proxies).of(request)


@pytest.mark.parametrize("proxy", [*LOOPBACK, "::ffff:127.0.0.1"])
def test_the_last_hop_that_a_trusted_proxy_names_counts(proxy: str) -> None:
    assert origin(proxy, [("X-Forwarded-For", "203.0.113.9")]) == "203.0.113.9"
    assert origin(proxy, [("X-Forwarded-For", "1.2.3.4, 5.6.7.8 ,203.0.113.9")]) == "203.0.113.9"
    # A client's own header stands before that of the proxy.
    assert origin(proxy, [("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-For", "203.0.113.9")]) == "203.0.113.9"


def test_a_peer_that_is_no_trusted_proxy_counts_itself() -> None:
    made_up = [("X-Forwarded-For", "1.2.3.4")]
    assert origin("203.0.113.9", made_up) == "203.0.113.9"
    assert origin("127.0.0.1", made_up, ()) == "127.0.0.1"
    assert origin("127.0.0.1", made_up, ("10.0.0.5",)) == "127.0.0.1"
    assert origin("10.0.0.5", made_up, ("10.0.0.5",)) == "1.2.3.4"


@pytest.mark.parametrize("value", ["", "x", "1.2.3.4,", "1.2.3.4, unknown", "1.2.3.4:80"])
def test_what_is_no_address_is_not_believed(value: str) -> None:
    assert origin("127.0.0.1", [("X-Forwarded-For", value)]) == "127.0.0.1"


def test_no_other_header_is_believed() -> None:
    others = [("X-Real-Ip", "1.2.3.4"), ("Forwarded", "for=1.2.3.4"), ("X-Client-Ip", "1.2.3.4")]
    assert origin("127.0.0.1", others) == "127.0.0.1"
    assert origin("127.0.0.1", [*others, ("X-Forwarded-For", "203.0.113.9")]) == "203.0.113.9"


def test_the_addresses_of_an_ipv6_network_count_as_one() -> None:
    networks = {origin("127.0.0.1", [("X-Forwarded-For", f"2001:db8:1:2:{each:x}::1")]) for each in range(9)}
    assert networks == {"2001:db8:1:2::/64"}
    assert origin("127.0.0.1", [("X-Forwarded-For", "2001:db8:1:3::1")]) == "2001:db8:1:3::/64"
    assert origin("127.0.0.1", [("X-Forwarded-For", "::ffff:203.0.113.9")]) == "203.0.113.9"


def test_a_proxy_is_named_by_its_address() -> None:
    with pytest.raises(ValueError, match=r"proxy\.example"):
        Origins(["proxy.example"])
