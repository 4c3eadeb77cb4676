"""While the ledger cannot be read, every address says so in a page, and works again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from gate.errors import StorageUnavailable
from gate.ledger.access.users import Users
from tests.workbench.dashboard.serving import Site, served
from tests.workbench.support import Shared

pytestmark = pytest.mark.heavy

MESSAGE = "The ledger cannot be read now. Try again in a few seconds."


@contextmanager
def unavailable(*methods: str) -> Iterator[None]:
    """The users cannot be read."""

    def fail(*_: object, **__: object) -> None:
        raise StorageUnavailable("SVC_STORAGE_UNAVAILABLE", MESSAGE)

    with pytest.MonkeyPatch.context() as patched:
        for method in methods:
            patched.setattr(Users, method, fail)
        yield


def says_so(response: httpx.Response, link: str) -> None:
    assert response.status_code == 503, response.url
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert MESSAGE in response.text
    assert f'<a href="{link}">Try again</a>' in response.text
    assert response.headers["x-frame-options"] == "DENY"


def test_every_address_says_so(site: Site) -> None:
    ana = site.browser("ana")
    token = ana.token()
    pages = {"/": "/", "/held?scope=acme&age=week": "/held?scope=acme&amp;age=week", "/held?x=%3Cb%3E": "/"}
    outside = {"/sign-in": "/sign-in", "/sign-out": "/sign-out", "/download/packet?scope=acme&id=x": "/"}
    with unavailable("current"):
        for url, link in {**pages, **outside}.items():
            says_so(ana.get(url), link)
        says_so(ana.handshake(token), "/")
    with unavailable("sign_out"):
        says_so(ana.post("/sign-out", {"everywhere": "yes"}), "/sign-out")
    # Nobody was signed out by it.
    assert ana.get("/held?scope=acme").status_code == 200


def test_the_link_of_a_demo_works_after_a_sign_in_that_failed(decided: Shared, site: Site) -> None:
    with served(decided.instance, demo_user="cem") as demo:
        assert demo.link is not None
        browser = demo.browser()
        with unavailable("let_in"):
            says_so(browser.post(demo.link), demo.link)
        assert browser.get(demo.link).status_code == 200
        assert browser.post(demo.link).headers["location"] == "/"
        assert browser.post(demo.link).status_code == 410
