"""The URLs that endpoints may have, and the addresses that connections go to."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import OperatorError
from gate.services.webhooks.addresses import MAX_URL, Rules, read_url, refused_address
from tests.support.samples import cases

ADDRESSES: Any = cases("webhook_addresses")
URLS: Any = cases("webhook_urls")
RULES = Rules()


@pytest.mark.parametrize("address", ADDRESSES["public"])
def test_connections_go_to_public_addresses(address: str) -> None:
    assert refused_address(address, RULES) is None


@pytest.mark.parametrize("case", ADDRESSES["refused"], ids=lambda case: case["what"])
def test_connections_go_to_no_other_address(case: dict[str, Any]) -> None:
    for address in case["addresses"]:
        assert refused_address(address, RULES) is not None, address


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_refused_in_ipv6_clothing_as_well(address: IPv4Address) -> None:
    plain = refused_address(str(address), RULES)
    assert (refused_address(f"::ffff:{address}", RULES) is None) == (plain is None)
    if not address.is_global:
        assert plain is not None


@given(st.ip_addresses())
def test_no_address_that_python_calls_private_is_public_here(address: Any) -> None:
    if address.is_private or address.is_multicast or address.is_link_local or address.is_loopback:
        assert refused_address(str(address), RULES) is not None


def test_a_setting_allows_a_network_and_nothing_beside_it() -> None:
    rules = Rules(networks=(ip_network("10.1.0.0/16"), ip_network("fd00::/8")))
    assert refused_address("10.1.2.3", rules) is None
    assert refused_address("::ffff:10.1.2.3", rules) is None
    assert refused_address("fd00::1", rules) is None
    assert refused_address("10.2.0.1", rules) is not None
    assert refused_address("127.0.0.1", rules) is not None


@pytest.mark.parametrize("case", URLS["accepted"], ids=lambda case: case["url"])
def test_a_url_says_where_to_connect(case: dict[str, Any]) -> None:
    target = read_url(case["url"], RULES)
    assert (target.host, target.port, target.authority, target.path) == (
        case["host"],
        case["port"],
        case["authority"],
        case["path"],
    )


@pytest.mark.parametrize("case", URLS["refused"], ids=lambda case: case["says"])
def test_an_unfit_url_is_refused_without_being_repeated(case: dict[str, Any]) -> None:
    with pytest.raises(OperatorError) as refusal:
        read_url(case["url"], RULES)
    assert case["says"] in refusal.value.message
    assert refusal.value.code in ("WEBHOOK_URL_INVALID", "WEBHOOK_ADDRESS_REFUSED")
    assert "password@" not in refusal.value.message


def test_a_url_of_any_length_has_no_place() -> None:
    with pytest.raises(OperatorError, match=f"longer than {MAX_URL}"):
        read_url("https://hooks.example.com/" + "x" * MAX_URL, RULES)


def test_http_is_accepted_where_the_setting_allows_it() -> None:
    target = read_url("http://hooks.example.com/", Rules(allow_http=True))
    assert (target.scheme, target.port) == ("http", 80)
