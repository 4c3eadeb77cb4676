"""Signing in and out: what is refused looks alike, nothing leads elsewhere, and forged forms do nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urljoin

import httpx
import pytest

from gate.ledger.access.authority import Scope
from tests.workbench.dashboard.serving import PASSWORD, Browser, Site, served
from tests.workbench.support import Shared
from workbench.dashboard.app.sessions import IDLE, LIFETIME
from workbench.dashboard.app.throttle import BY_BOTH, WITHIN

pytestmark = pytest.mark.heavy


def logged(site: Site, action: str, name: str) -> list[str]:
    """By whom the operator log has an action done, or undone, to a user."""
    entries = site.instance.ledger.operator_log.latest(10_000)
    return [entry.operator for entry in entries if (entry.action, entry.subject) == (action, name)]


def shown_to(browser: Browser, url: str = "/") -> bool:
    """Whether a page is shown, as to somebody who is signed in; else it leads to the sign-in."""
    page = browser.get(url)
    assert page.status_code in (200, 302)
    if page.status_code == 302:
        assert urljoin(url, page.headers["location"]).startswith("/sign-in")
    return page.status_code == 200


def looks(response: httpx.Response, name: str) -> tuple[object, ...]:
    """All by which one could tell an answer from another, but for the name that was sent and what belongs to a form."""
    text = re.sub(r'name="_xsrf" value="[^"]+"', "", response.text.replace(f'value="{name}"', ""))
    return response.status_code, tuple(sorted(response.headers)), len(response.cookies), text


def test_a_user_who_signs_in_goes_on_to_the_page_asked_for_and_is_logged(site: Site) -> None:
    browser = site.browser()
    assert not shown_to(browser, "/held/")
    refused = browser.get("/held?scope=acme&age=week")
    assert refused.status_code == 302
    assert 'value="/held?scope=acme&amp;age=week"' in browser.get(refused.headers["location"]).text
    done = browser.sign_in("ana", next="/held?scope=acme&age=week")
    assert (done.status_code, done.headers["location"]) == (302, "/held?scope=acme&age=week")
    assert shown_to(browser, "/held?scope=acme&age=week")
    assert logged(site, "user.signed_in", "ana")[-1] == "ana (workbench)"
    # Nobody signs in twice in one browser.
    assert browser.get("/sign-in?next=/policy").headers["location"] == "/policy"


def test_every_refusal_looks_alike_and_is_logged(site: Site, acme: Scope) -> None:
    users, now = site.instance.ledger.users, site.clock()
    for name in ("dis", "exp", "wro"):
        site.add_user(name, [acme], expires_at=now + timedelta(minutes=1) if name == "exp" else None)
    users.disable("dis", now)
    site.clock.forward(timedelta(minutes=2))
    browser = site.browser()
    browser.get("/sign-in")
    tried = {"dis": PASSWORD, "exp": PASSWORD, "wro": f"{PASSWORD}x", "unk": PASSWORD, "un\u202ek": PASSWORD}
    answers = {looks(browser.sign_in(name, password), name) for name, password in tried.items()}
    assert len(answers) == 1
    ((status, _, _, text),) = answers
    assert status == 401
    assert "The name or the password is wrong, or the user is disabled or expired." in str(text)
    assert site.cookie not in browser.http.cookies
    assert not shown_to(browser)
    for name in ("dis", "exp", "wro", "unknown"):
        assert logged(site, "user.sign_in_refused", name), name
    assert looks(browser.sign_in("wro"), "wro")[0] == 302


def test_too_many_failures_of_a_name_are_refused_untried_for_some_minutes(site: Site, acme: Scope) -> None:
    site.add_user("thr", [acme])
    browser = site.browser()
    for _ in range(BY_BOTH):
        assert browser.sign_in("thr", "wrong").status_code == 401
    entries = site.instance.ledger.operator_log.latest(2)
    assert [(entry.action, entry.subject) for entry in entries] == [
        ("user.sign_in_refused", "thr"),
        ("user.sign_in_locked", "thr"),
    ]
    assert entries[1].details == {"address": "127.0.0.1", "counted_by": ["both"], "refusals_not_logged": BY_BOTH - 1}
    refused = browser.sign_in("thr")
    assert (refused.status_code, site.cookie in browser.http.cookies) == (429, False)
    seconds = int(refused.headers["retry-after"])
    assert 0 < seconds <= WITHIN.total_seconds()
    # In any case of letters, but no other name.
    assert browser.sign_in("THR").status_code == 429
    assert site.browser().sign_in("ben").status_code == 302
    site.clock.forward(timedelta(seconds=seconds + 1))
    assert browser.sign_in("thr").status_code == 302


def test_of_many_that_come_at_once_no_more_are_tried(site: Site, acme: Scope) -> None:
    site.add_user("bur", [acme])
    browsers = [site.browser() for _ in range(4 * BY_BOTH)]
    for browser in browsers:
        browser.get("/sign-in")
    with ThreadPoolExecutor(len(browsers)) as threads:
        statuses = list(threads.map(lambda each: each.sign_in("bur", "wrong").status_code, browsers))
    # Two are tried at a time.
    assert statuses.count(401) <= BY_BOTH + 1
    assert set(statuses) == {401, 429}


def test_a_form_without_this_browsers_token_does_nothing(site: Site) -> None:
    browser, other = site.browser("ana"), site.browser()
    forms = {"/sign-in": {"name": "ben", "password": PASSWORD}, "/sign-out": {"everywhere": "yes"}}
    others = re.search(r'name="_xsrf" value="([^"]+)"', other.get("/sign-in").text)
    assert others is not None
    for url, form in forms.items():
        for token in ({}, {"_xsrf": ""}, {"_xsrf": "2|x|y|1"}, {"_xsrf": others[1]}):
            refused = browser.http.post(url, data={**form, **token})
            assert refused.status_code == 403
            assert "The form was open for too long or came from another page." in refused.text
            assert site.cookie not in refused.cookies
    assert shown_to(browser)


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example/held",
        "/\\evil.example",
        "\\\\evil.example",
        "///evil.example",
        "//[",
        "javascript:alert(1)",
        "/nowhere",
        "/held?bogus=1",
        "/sign-out",
        "/held\r\nSet-Cookie: a=b",
        "/" + "x" * 5000,
        "/policy?policy=" + "%F0%9F%98%80" * 300,
    ],
)
def test_nothing_but_a_page_of_the_dashboard_is_gone_on_to(site: Site, target: str) -> None:
    browser = site.browser()
    form = browser.get("/sign-in", params={"next": target})
    assert form.status_code == 200
    assert "evil" not in form.text
    done = browser.sign_in("ana", next=target)
    assert done.status_code == 302
    # Of an address elsewhere at most the path is left, and that is a page here.
    assert done.headers["location"] in ("/", "/held")
    assert "a" not in done.cookies


def test_the_link_of_a_demo_signs_in_once_and_looking_at_it_uses_nothing_up(decided: Shared, site: Site) -> None:
    with served(decided.instance, demo_user="cem") as demo:
        assert demo.link is not None
        browser = demo.browser()
        assert browser.get("/sign-in/once/other").status_code == 410
        for _ in range(2):
            assert "Open the dashboard" in browser.get(demo.link).text
        assert demo.browser().http.post(demo.link).status_code == 403
        assert not shown_to(browser)
        before = len(logged(demo, "user.signed_in", "cem"))
        assert browser.post(demo.link).headers["location"] == "/"
        assert shown_to(browser)
        assert len(logged(demo, "user.signed_in", "cem")) == before + 1
        for again in (browser, demo.browser()):
            assert again.post(demo.link).status_code == 410
            assert again.get(demo.link).status_code == 410


def test_the_cookie_is_for_this_server_alone_and_for_no_script(site: Site) -> None:
    flags = cookie_flags(site.browser().sign_in("ana"))
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= flags
    # Gone with the browser; sent over what the operator chose.
    assert not {flag for flag in flags if flag.startswith(("expires", "Domain", "Secure"))}


def test_behind_https_no_cookie_is_sent_without_it(decided: Shared, site: Site) -> None:
    with served(decided.instance, public_url="https://workbench.example") as behind:
        browser = behind.browser()
        form = browser.get("/sign-in")
        token = re.search(r'name="_xsrf" value="([^"]+)"', form.text)
        assert token is not None
        assert {"Secure", "HttpOnly", "SameSite=Strict"} <= cookie_flags(form)
        cookie = form.headers["set-cookie"].partition(";")[0]
        data = {"name": "ana", "password": PASSWORD, "_xsrf": token[1]}
        done = browser.http.post("/sign-in", data=data, headers={"cookie": cookie})
        assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= cookie_flags(done)


def cookie_flags(response: httpx.Response) -> set[str]:
    """The attributes of the cookie that an answer sets."""
    (cookie,) = response.headers.get_list("set-cookie")
    return {part.strip() for part in cookie.split(";")[1:]}


def test_a_changed_cookie_is_nobodys(site: Site) -> None:
    browser = site.browser("ana")
    cookie = browser.http.cookies[site.cookie]
    for at in {0, 2, len(cookie) // 2, len(cookie) - 2}:
        changed = cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :]
        for value in (changed, cookie[:at], ""):
            browser.http.cookies.clear()
            assert not shown_to(browser_with(browser, value))
    assert shown_to(browser_with(browser, cookie))


def browser_with(browser: Browser, cookie: str) -> Browser:
    browser.http.cookies.clear()
    browser.http.cookies.set(browser.site.cookie, cookie)
    return browser


def test_a_session_ends_when_it_is_idle_and_at_last_in_any_case(site: Site) -> None:
    # The clock goes on while the test runs.
    browser, meanwhile = site.browser("ana"), timedelta(minutes=5)
    site.clock.forward(IDLE - meanwhile)
    assert shown_to(browser)
    site.clock.forward(IDLE)
    assert not shown_to(browser)
    browser = site.browser("ana")
    for _ in range(LIFETIME // (IDLE / 2) - 1):
        site.clock.forward(IDLE / 2)
        assert shown_to(browser)
    site.clock.forward(IDLE / 2)
    assert not shown_to(browser)


def test_signing_out_ends_this_session_or_all_of_the_user(site: Site) -> None:
    here, there, other = site.browser("ana"), site.browser("ana"), site.browser("ben")
    cookie = here.http.cookies[site.cookie]
    assert "You are signed in as <strong>ana</strong>" in here.get("/sign-out").text
    assert here.post("/sign-out").headers["location"] == "/sign-in"
    assert site.cookie not in here.http.cookies
    # The cookie opens nothing more, though the browser kept it.
    assert not shown_to(browser_with(here, cookie))
    assert shown_to(there)
    before = len(logged(site, "user.signed_out", "ana"))
    third = site.browser("ana")
    third.post("/sign-out", {"everywhere": "yes"})
    assert [shown_to(browser) for browser in (there, third, other)] == [False, False, True]
    assert logged(site, "user.signed_out", "ana")[before:] == ["ana (workbench)"]
    assert site.browser().post("/sign-out").headers["location"] == "/sign-in"


def test_a_new_sign_in_ends_the_browsers_session_before_it(site: Site) -> None:
    browser = site.browser("ana")
    cookie = browser.http.cookies[site.cookie]
    assert browser.sign_in("ben").status_code == 302
    assert browser.http.cookies[site.cookie] != cookie
    assert not shown_to(browser_with(browser, cookie))


@pytest.mark.parametrize("change", ["password", "disable", "revoke", "grant", "sign_out"])
def test_what_the_operator_changes_ends_every_session_of_the_user(site: Site, acme: Scope, change: str) -> None:
    users, now, name = site.instance.ledger.users, site.clock(), f"chg-{change.replace('_', '-')}"
    site.add_user(name, [acme])
    browser = site.browser(name)
    assert shown_to(browser)
    {
        "password": lambda: users.set_password(name, f"{PASSWORD} 2", now),
        "disable": lambda: users.disable(name, now),
        "revoke": lambda: users.revoke(name, acme, now),
        "grant": lambda: users.grant(name, acme, "author", now),
        "sign_out": lambda: users.sign_out(name, now),
    }[change]()
    assert not shown_to(browser)


def test_a_user_who_expires_is_signed_out(site: Site, acme: Scope) -> None:
    site.add_user("expiring", [acme], expires_at=site.clock() + timedelta(minutes=5))
    browser = site.browser("expiring")
    assert shown_to(browser)
    site.clock.forward(timedelta(minutes=5))
    assert not shown_to(browser)


def test_a_client_behind_a_proxy_does_not_choose_the_address_that_is_counted(decided: Shared, site: Site) -> None:
    made_up = [
        {"X-Real-Ip": f"198.51.100.{number}", "X-Forwarded-For": f"198.51.100.{number}, 203.0.113.9"}
        for number in range(BY_BOTH + 1)
    ]
    with served(decided.instance, public_url="http://workbench.example") as behind:
        statuses = [
            behind.browser().post("/sign-in", {"name": "fay", "password": "wrong"}, headers=headers).status_code
            for headers in made_up
        ]
        assert statuses == [401] * BY_BOTH + [429]
        other = {"X-Forwarded-For": "203.0.113.10"}
        assert behind.browser().post("/sign-in", {"name": "fay"}, headers=other).status_code == 401


OVER = {
    "idle": "You were signed out: a session ends after an hour without activity.",
    "changed": "You were signed out: an operator changed your user, or all your sessions were ended at once.",
    "disabled": "You were signed out: an operator disabled your user.",
    "expired": "You were signed out: your user has expired.",
    "restarted": "You were signed out: the dashboard was restarted.",
}


@pytest.mark.parametrize("over", OVER)
def test_somebody_who_was_signed_out_reads_why_and_goes_on_where_they_were(site: Site, acme: Scope, over: str) -> None:
    name, now, users = f"over-{over}", site.clock(), site.instance.ledger.users
    site.add_user(name, [acme], expires_at=now + timedelta(minutes=30) if over == "expired" else None)
    browser = site.browser(name)
    end: dict[str, Callable[[], object]] = {
        "idle": lambda: site.clock.forward(IDLE),
        "changed": lambda: users.sign_out(name, now),
        "disabled": lambda: users.disable(name, now),
        "expired": lambda: site.clock.forward(timedelta(minutes=31)),
        "restarted": lambda: browser_with(browser, "2|1:0|10:1|1:a|4:eA==|of-another-process"),
    }
    end[over]()
    # The ledger is asked once; afterwards the server remembers.
    for _ in range(2):
        sent = browser.get("/held?scope=acme")
        page = browser.get(sent.headers["location"]).text
        assert OVER[over] in page
        assert 'name="next" value="/held?scope=acme"' in page
    if over not in ("disabled", "expired"):
        assert browser.sign_in(name, next="/held?scope=acme").headers["location"] == "/held?scope=acme"
        assert shown_to(browser, "/held?scope=acme")


def test_the_sign_in_page_says_nothing_that_an_address_makes_up(site: Site) -> None:
    stranger = site.browser()
    for ended in ("", "yes", "<b>", "Call the support line"):
        assert "signed out" not in stranger.get("/sign-in", params={"ended": ended}).text
        assert "support line" not in stranger.get("/sign-in", params={"ended": ended}).text
    # Nobody was signed out who was not signed in.
    assert "ended" not in stranger.get("/held?scope=acme").headers["location"]
