"""The security headers, on every kind of response; and addresses that lead to nothing."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator

import httpx
import pytest

from tests.workbench.dashboard.serving import HOST, Browser, Site

pytestmark = pytest.mark.heavy

_EXPECTED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def answers(site: Site, browser: Browser) -> Iterator[tuple[int, httpx.Response]]:
    """One response of each kind, with its status."""
    stranger = site.browser()
    yield 200, stranger.get("/sign-in")
    yield 302, stranger.get("/held")
    yield 302, stranger.get("/download/packet?scope=acme&id=x")
    yield 403, stranger.http.post("/sign-in", data={"name": "ana"})
    yield 401, stranger.sign_in("ana", "wrong")
    yield 410, stranger.get("/sign-in/once/none")
    yield 200, stranger.get("/health")
    yield 405, stranger.http.delete("/sign-in", headers={"X-XSRFToken": stranger.http.cookies["_xsrf"]})
    yield 404, stranger.get("/nowhere")
    yield 404, stranger.get("/assets/nothing.js")
    yield 403, stranger.handshake("x")
    yield 200, browser.get("/")
    yield 200, browser.get("/assets/workbench.js")
    yield 200, browser.get("/assets/charts.css")
    yield 200, browser.get("/static/js/bokeh.min.js")
    yield 404, browser.get("/static/js/nothing.js")
    yield 403, browser.get("/?bokeh-session-id=x")
    yield 404, browser.get("/download/packet?scope=acme&id=dec_x")
    yield 200, browser.get(f"/download/record?scope=acme&id={a_decision(site)}")


def a_decision(site: Site) -> str:
    scope = site.instance.ledger.directory.scope("acme")
    entry = site.instance.ledger.entries.at(scope.scope_id, 1)
    assert entry is not None
    return str(entry.link["decision_id"])


def test_every_response_carries_them_all(site: Site) -> None:
    for status, response in answers(site, site.browser("ana")):
        assert response.status_code == status, response.url
        assert {name: response.headers.get(name) for name in _EXPECTED} == _EXPECTED, response.url
        assert "camera=()" in response.headers["permissions-policy"]
        assert "server" not in response.headers
        policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
        assert (policy["frame-ancestors"], policy["base-uri"], policy["form-action"]) == ("'none'", "'none'", "'self'")
        kept = response.url.path.startswith(("/static/", "/assets/"))
        assert (response.headers.get("cache-control") == "no-store") is not kept, response.url


def test_no_page_runs_a_script_of_its_own_or_of_another_host(site: Site) -> None:
    browser = site.browser("ana")
    for page in (browser.get("/").text, browser.get("/sign-out").text, site.browser().get("/sign-in").text):
        scripts = re.findall(r"<script(.*?)>(.*?)</script>", page, re.DOTALL)
        assert scripts
        for attributes, text in scripts:
            assert ('src="/' in attributes and text == "") or 'type="application/json"' in attributes
        assert not re.search(r'\son\w+=|(?:src|href)="(?:https?:)?//|javascript:', page)


def test_no_page_holds_a_cookie_or_anybodys_session_but_its_own(site: Site) -> None:
    ana, ben = site.browser("ana"), site.browser("ben")
    others = ben.token()
    secrets = [ana.http.cookies[site.cookie], ben.http.cookies[site.cookie], ben.http.cookies["_xsrf"], others]
    bodies = [ana.get(url).text for url in ("/", "/held", "/sign-out", "/nowhere", "/assets/workbench.js")]
    assert [secret for secret in secrets for body in bodies if secret in body] == []
    with ana.open() as page:
        page.go("/")
        shown = str(page.pulled())
    assert [secret for secret in (*secrets, "usr_") if secret in shown] == []


@pytest.mark.parametrize(
    "path",
    [
        "/autoload.js",
        "/autoload.js?bokeh-autoload-element=x",
        "/held/autoload.js",
        "/metadata",
        "/components/panel.models.html/HTML/x.js",
        "/static/extensions/panel/x.js",
        "/static/../../server.py",
        "/static/%2e%2e/%2e%2e/server.py",
        "/assets/../server.py",
        "/assets/%2e%2e/server.py",
        "/assets/..%2fserver.py",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/assets/workbench.js%00.css",
        "/assets/panel/../../server.py",
        "/assets/",
        "/static/",
        "/login",
        "/logout",
        "/rest/session_info",
        "/admin",
        "/liveness",
        "/apps",
        "/overview",
        "//held",
    ],
)
def test_these_addresses_lead_to_nothing(site: Site, path: str) -> None:
    for browser in (site.browser("ana"), site.browser()):
        # As it stands: httpx would resolve the dots.
        connection = http.client.HTTPConnection(HOST, site.port)
        cookies = "; ".join(f"{name}={value}" for name, value in browser.http.cookies.items())
        connection.request("GET", path, headers={"Cookie": cookies})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        assert response.status in (403, 404), (response.status, response.headers["location"])
        assert b"import" not in body
        assert b"root:" not in body
        assert response.headers["x-frame-options"] == "DENY"
