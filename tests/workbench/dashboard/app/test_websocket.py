"""The websocket under attack: whose token opens it, what its messages reach, and when it is over."""

from __future__ import annotations

import base64
import json
import logging
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from markupsafe import Markup

from gate.ledger.access.authority import Scope
from tests.workbench.dashboard.serving import PASSWORD, Browser, Channel, Site
from workbench.dashboard.app.sessions import IDLE
from workbench.dashboard.views.page import Form, Page

pytestmark = pytest.mark.heavy

# Why the sign-in page then says that the session is over.
OVER = {
    "the password": "changed",
    "disabled": "disabled",
    "revoked": "changed",
    "signed out elsewhere": "changed",
    "signed out here": "elsewhere",
    "idle": "idle",
    "expired": "expired",
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Bokeh logs what it refuses, at length."""
    caplog.set_level(logging.CRITICAL, "bokeh")
    caplog.set_level(logging.CRITICAL, "tornado")


def decoded(token: str) -> dict[str, Any]:
    """What a token holds."""
    part = token.split(".")[0]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def encoded(payload: dict[str, Any]) -> str:
    """A token without a signature."""
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


def test_a_page_is_shown_to_the_user_who_asks(site: Site) -> None:
    with site.browser("ana").open("/held") as page:
        seen = page.go("/?scope=acme")
        assert seen.url == "/?scope=acme"
        assert "Sign out ana" in seen.html
        assert "pricing_exception" in seen.html


def test_a_token_is_the_session_s_own_or_refused(site: Site) -> None:
    ana, again, ben, nobody = site.browser("ana"), site.browser("ana"), site.browser("ben"), site.browser()
    token = ana.token()
    assert ana.handshake(token).status_code == 101
    for browser in (again, ben, nobody):
        assert browser.handshake(token).status_code == 403
    base, signature = token.split(".")
    held = decoded(token)
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" * 30_000_000, 9)).decode().rstrip("=")
    forged = [
        "",
        base,
        f"{base}.",
        f"{base}.{signature[:-1]}",
        f"{base}.{'A' * len(signature)}",
        f"{encoded({**held, 'session_expiry': held['session_expiry'] + 1})}.{signature}",
        f"{encoded({'session_id': held['session_id'], '__bk__zlib_': bomb})}.{signature}",
        encoded({"session_id": "x"}),
        "e30",
        "!",
        "." * 50,
    ]
    for each in forged:
        assert ana.handshake(each).status_code == 403, each[:60]
    # Without a token, and with more than one.
    for protocols in ("bokeh", "bokeh, a, b", "", f"other, {token}x"):
        assert ana.handshake("", Sec_WebSocket_Protocol=protocols).status_code == 403


def test_the_token_holds_neither_cookie_nor_header(site: Site) -> None:
    ana = site.browser("ana")
    ana.http.headers["x-secret"] = "the secret"
    packed = decoded(ana.token())["__bk__zlib_"]
    payload = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))).decode()
    for secret in (ana.http.cookies[site.cookie], ana.http.cookies["_xsrf"], "the secret", "usr_"):
        assert secret not in payload


def test_a_cached_page_opens_nothing_after_the_sign_out(site: Site) -> None:
    ana = site.browser("ana")
    token, cookie = ana.token(), ana.http.cookies[site.cookie]
    ana.post("/sign-out")
    assert ana.handshake(token).status_code == 403
    ana.http.cookies.set(site.cookie, cookie)
    assert ana.handshake(token).status_code == 403
    ana.http.cookies.delete(site.cookie)
    ana.sign_in("ana")
    assert ana.handshake(token).status_code == 403


def test_an_expired_token_opens_nothing_and_nothing_is_logged(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import calendar

    caplog.set_level(logging.WARNING, "bokeh")
    caplog.set_level(logging.WARNING, "tornado")
    ana = site.browser("ana")
    with monkeypatch.context() as patched:
        patched.setattr(calendar, "timegm", lambda moment: 1_600_000_000)
        token = ana.token()
    assert ana.handshake(token).status_code == 403
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["bokeh-session-id", "bokeh-token"])
def test_nobody_chooses_the_session_of_a_document(site: Site, name: str) -> None:
    ana, ben = site.browser("ana"), site.browser("ben")
    token = ana.token()
    for value in (token, decoded(token)["session_id"], "x", ""):
        for browser in (ana, ben):
            assert browser.get("/", params={name: value}).status_code == 403
            assert browser.get("/held", headers={name: value}).status_code == 403
            assert browser.http.get(f"/?{name}={value}&{name}=y").status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost.evil:80"])
def test_a_page_of_another_host_opens_nothing(site: Site, origin: str) -> None:
    ana = site.browser("ana")
    refused = ana.handshake(ana.token(), Origin=origin)
    assert refused.status_code == 403
    assert refused.headers["x-frame-options"] == "DENY"


def test_a_foreign_scope_is_refused_as_an_unknown_one_is(site: Site) -> None:
    ana = site.browser("ana")
    with ana.open() as page:
        pages = []
        for scope in ("other", "nonexistent"):
            # What did not change since the page before is not sent again.
            page.go("/?scope=acme")
            pages.append(page.go(f"/?scope={scope}"))
        assert {seen.title for seen in pages} == {"This page cannot be shown"}
        texts = {re.sub("other|nonexistent", "SCOPE", seen.html.partition("<h1")[2]) for seen in pages}
        assert len(texts) == 1
        assert "That scope does not exist, or you have no access to it." in texts.pop()
        assert "pricing_exception" in page.go("/?scope=acme").html
        shown = str(page.pulled())
    assert "secret_policy" not in shown
    with site.browser("eve").open() as page:
        assert "secret_policy" in page.go("/").html


def test_files_of_a_foreign_scope_are_refused_as_unknown_ones_are(site: Site) -> None:
    directory, entries = site.instance.ledger.directory, site.instance.ledger.entries
    first = entries.at(directory.scope("other").scope_id, 1)
    assert first is not None
    secret = first.link["decision_id"]
    ana, eve = site.browser("ana"), site.browser("eve")
    for what in ("record", "packet"):
        assert eve.get(f"/download/{what}?scope=other&id={secret}").status_code == 200
        asked = [
            ("acme", secret),
            ("acme", "dec_x"),
            ("acme", ""),
            ("acme", "\0"),
            ("acme", "../x"),
            ("acme", "é" * 999),
        ]
        answers = {ana.get(f"/download/{what}", params={"scope": s, "id": i}).text for s, i in asked}
        assert len(answers) == 1, answers
        foreign = {ana.get(f"/download/{what}", params={"scope": s, "id": secret}).text for s in ("other", "none")}
        assert len(foreign) == 1
        assert ana.get(f"/download/{what}?scope=other&id={secret}").status_code == 404
        assert site.browser().get(f"/download/{what}?scope=other&id={secret}").status_code == 302
    for what in ("notebook", "dry-run"):
        assert ana.get(f"/download/{what}?scope=other&policy=secret_policy&anomaly=x").status_code == 404
        assert ana.get(f"/download/{what}?scope=acme&policy=pricing_exception&anomaly=x").status_code == 404


CHANGES: dict[str, Callable[[Site, Browser, str, Scope], object]] = {
    "the password": lambda site, _, name, scope: site.instance.ledger.users.set_password(
        name, f"{PASSWORD} 2", site.clock()
    ),
    "disabled": lambda site, _, name, scope: site.instance.ledger.users.disable(name, site.clock()),
    "revoked": lambda site, _, name, scope: site.instance.ledger.users.revoke(name, scope, site.clock()),
    "signed out elsewhere": lambda site, _, name, scope: site.browser(name).post("/sign-out", {"everywhere": "yes"}),
    "signed out here": lambda site, browser, name, scope: browser.post("/sign-out"),
    "idle": lambda site, *_: site.clock.forward(IDLE),
    "expired": lambda site, *_: site.clock.forward(timedelta(minutes=31)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_page_that_is_open_shows_nothing_more_once_the_session_is_over(site: Site, acme: Scope, change: str) -> None:
    name = "open-" + change.replace(" ", "-")
    site.add_user(name, [acme], expires_at=site.clock() + timedelta(minutes=30) if change == "expired" else None)
    browser = site.browser(name)
    with browser.open() as page:
        assert "pricing_exception" in page.go("/").html
        CHANGES[change](site, browser, name, acme)
        seen = page.go("/")
        sign_in = f"/sign-in?ended={OVER[change]}"
        assert (seen.url, seen.title) == (sign_in, "Signed out")
        # What was shown before is gone as well.
        assert "pricing_exception" not in str(page.pulled())
        assert (page.go("/held").url, page.go("/?scope=acme").url) == (sign_in, sign_in)


def test_one_role_less_is_one_scope_less_in_a_page_that_is_opened_anew(site: Site, acme: Scope) -> None:
    other = site.instance.ledger.directory.scope("other")
    site.add_user("both", [acme, other])
    with site.browser("both").open() as page:
        assert "secret_policy" in page.go("/?scope=other").html
        site.instance.ledger.users.revoke("both", other, site.clock())
        assert page.go("/?scope=other").url == "/sign-in?ended=changed"
    with site.browser("both").open() as page:
        assert "That scope does not exist, or you have no access to it." in page.go("/?scope=other").html


@contextmanager
def forms(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str, str]]]:
    """Every page has a form for those who may dismiss; what was done by it: user, subject and note."""
    from workbench.dashboard.pages import session
    from workbench.dashboard.pages.visit import Visit

    done: list[tuple[str, str, str]] = []

    def load(store: object, visit: Visit) -> Page:
        form = Form("dismiss", "Why", "Dismiss it", "ano_1")
        return Page(visit.location, "A page", Markup("<p>it</p>"), forms=(form,) if visit.access.may("dismiss") else ())

    def act(store: object, visit: Visit, form: Form, note: str) -> None:
        visit.access.require("dismiss")
        done.append((visit.access.user.name, form.subject, note))

    with monkeypatch.context() as patched:
        patched.setattr(session, "load", load)
        patched.setattr(session, "act", act)
        yield done


def press(page: Channel, note: str = "") -> None:
    """Fills in the form, and presses its button, or one that would be there."""
    models = page.pulled()
    names = {model["name"]: model["id"] for model in models}
    if field := names.get("panel.models.widgets.TextAreaInput") or names.get("TextAreaInput"):
        page.change(field, "value", note)
    button = next((id_ for name, id_ in names.items() if name.endswith("Button")), "p1")
    page.tell("button_click", model={"id": button})


def test_a_form_does_what_it_says_for_those_who_may(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with forms(monkeypatch) as done, site.browser("ben").open() as page:
        page.go("/")
        press(page, "seen")
        assert page.shown().title == "A page"
        assert done == [("ben", "ano_1", "seen")]


def test_a_forged_form_does_nothing(site: Site, acme: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    with forms(monkeypatch) as done:
        with site.browser("ana").open() as page:
            page.go("/")
            assert not [model for model in page.pulled() if model["name"].endswith("Button")]
            press(page, "forged")
            # A button of the viewer's own, in the viewer's own document.
            button = {"type": "object", "name": "Button", "id": "p9", "attributes": {"label": "Dismiss it"}}
            page.patch({"kind": "RootAdded", "model": button})
            page.tell("button_click", model={"id": "p9"})
        site.add_user("fallen", [acme], "author")
        with site.browser("fallen").open() as page:
            page.go("/")
            site.instance.ledger.users.grant("fallen", acme, "viewer", site.clock())
            press(page, "too late")
            assert (page.go("/").url, done) == ("/sign-in?ended=changed", [])


@pytest.mark.parametrize(
    "url",
    [
        "/nowhere",
        "//evil.example",
        "//[",
        "/?bogus=1",
        "/?scope=acme&scope=acme",
        "/held?policy=\ud800",
        "/held?policy=%ed%a0%80",
        "/held?policy=" + "x" * 201,
        "/?" + "x" * 5000,
        "/decisions?since=9999-99-99",
        "/decisions?before=-1",
        "/decisions?verdict=maybe",
        "\0",
        "/held?policy=\0",
    ],
)
def test_an_address_that_is_none_is_answered_and_the_session_goes_on(site: Site, url: str) -> None:
    with site.browser("ana").open() as page:
        seen = page.go(url)
        assert seen.title
        assert "evil" not in seen.url
        assert page.go("/?scope=acme").title.startswith("1 policy")


@pytest.mark.parametrize(
    "frames",
    [
        ("x" * (1024 * 1024 + 1),),
        ("not json", "{}", "{}"),
        ('{"msgid": "1", "msgtype": "UNHEARD-OF"}', "{}", "{}"),
        ('{"msgid": "1", "msgtype": "PATCH-DOC"}', "{}", '{"events": [{"kind": "ModelChanged"}]}'),
        ('{"msgid": "1", "msgtype": "PATCH-DOC"}', "{}", '{"events": 7}'),
        ("[" * 100_000, "{}", "{}"),
        (b"\x00\xff",),
    ],
    ids=["oversize", "no JSON", "unheard of", "half a change", "no list", "deep", "bytes"],
)
def test_a_message_that_is_none_ends_at_most_its_own_connection(site: Site, frames: tuple[str | bytes, ...]) -> None:
    ana = site.browser("ana")
    with ana.open() as other:
        assert other.go("/").title.startswith("1 policy")
        with ana.open() as page:
            page.write(*frames)
        # Neither for those who are there, nor for those who come.
        assert other.go("/?scope=acme").title.startswith("1 policy")
        with site.browser("ben").open() as new:
            assert new.go("/").title.startswith("1 policy")


def test_a_document_that_a_client_replaces_is_its_own(site: Site) -> None:
    ana = site.browser("ana")
    with ana.open() as other, ana.open() as page:
        page.send("PUSH-DOC", {"doc": {"version": "3.9.2", "title": "", "roots": []}})
        page.receive()
        assert "pricing_exception" in other.go("/?scope=acme").html
