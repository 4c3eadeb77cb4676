"""/docs and /docs.json: all of the interface, from nowhere else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flask.testing import FlaskClient

from api.app import create_app
from api.description.docs import inline, pretty, prose
from api.errors import codes
from gate.contract.published import published
from gate.encoding import resources
from gate.instance.instance import open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import PLANS
from gate.rulebooks.patterns import patterns
from tests.contract.frozen import current
from tests.support.samples import sample_request

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Page(HTMLParser):
    """A page, read strictly: every element that opens closes where it should."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._shown: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.shown = "".join(self._shown)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not (tag in ("p", "h1", "h2", "h3", "h4") and "p" in self.open), f"<{tag}> in a paragraph"
        assert not (tag in ("details", "div", "table", "pre", "ul") and "p" in self.open), f"<{tag}> in a paragraph"
        given = dict(attrs)
        assert len(given) == len(attrs)
        self.tags.add(tag)
        self.attributes += attrs
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "poster", "srcset")]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self._shown.append(data)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, laid_out: Path) -> Iterator[FlaskClient]:
    """A client of one service, which makes its documents once."""
    home = shutil.copytree(laid_out, tmp_path_factory.mktemp("served") / "home")
    with closing(open_instance(load_settings(home))) as instance:
        yield create_app(instance).test_client()


@pytest.fixture(scope="module")
def page(served: FlaskClient) -> Page:
    return Page(served.get("/docs").get_data(as_text=True))


@pytest.fixture(scope="module")
def summary(served: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = served.get("/docs.json").get_json()
    return found


def test_the_page_shows_every_operation_parameter_and_error_code(page: Page) -> None:
    document = current()
    for path, item in document["paths"].items():
        for operation in item.values():
            assert path in page.shown
            assert operation["operationId"] in page.ids
            assert operation["summary"] in page.shown
    for parameter in document["components"]["parameters"].values():
        assert parameter["name"] in page.shown
    assert "application/json, text/markdown, text/html" in page.shown
    assert not [code for code in codes() if code not in page.shown]
    assert not [name for name in document["components"]["schemas"] if f"schema-{name.lower()}" not in page.ids]


def test_the_page_shows_every_pattern_with_its_examples(page: Page) -> None:
    for pattern in patterns():
        assert pattern["title"] in page.shown
        for example in pattern["sdk_examples"].values():
            assert example.strip() in page.shown


def test_the_first_decision_of_the_page_runs_as_it_stands(client: FlaskClient, page: Page, key: str) -> None:
    command, _, rest = page.shown.partition("<<'JSON'\n")
    assert command.rstrip().endswith("--data-binary @-")
    body = rest.partition("\nJSON")[0]
    answer = client.post(
        "/api/decide", data=body, headers={"x-api-key": key, "content-type": "application/json"}
    ).get_json()
    assert answer["verdict"] == "yes"
    assert client.get(answer["verify_url"], headers={"x-api-key": key}).get_json()["verified"] is True


def test_a_lookup_of_the_page_asks_for_something_that_is_there(client: FlaskClient, page: Page, key: str) -> None:
    assert client.post("/api/decide", json=sample_request(), headers={"x-api-key": key}).status_code == 200
    (path,) = set(re.findall(r"curl -sS 'http://gate.example(/[^']+\?[^']+)'", page.shown))
    assert client.get(path, headers={"x-api-key": key}).get_json()["ok"] is True


def test_the_page_is_well_formed_and_its_links_lead_somewhere(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    steps = [after - before for before, after in zip(page.headings, page.headings[1:], strict=False)]
    # The contents stand before the title.
    assert page.headings.count(1) == 1
    assert max(steps) <= 1


def test_the_page_loads_nothing_and_runs_nothing(page: Page) -> None:
    outside = [link for link in page.links if not link.startswith("#")]
    assert set(outside) == {"openapi.json", "docs.json"}
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form", "input", "button"}
    assert not [name for name, _ in page.attributes if name == "style" or name.startswith("on")]


def test_the_page_may_load_nothing_but_its_own_style(served: FlaskClient) -> None:
    response = served.get("/docs")
    style = response.get_data(as_text=True).partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.content_type == "text/html; charset=utf-8"
    assert "@import" not in style
    assert "url(" not in style


def test_text_is_escaped_wherever_it_comes_from() -> None:
    hostile = "<script>`<b>`</script>\n\n\"'&"
    assert prose(hostile) == ("<p>&lt;script&gt;<code>&lt;b&gt;</code>&lt;/script&gt;</p><p>&#34;&#39;&amp;</p>")
    assert inline("`<i>`") == "<code>&lt;i&gt;</code>"
    assert "<script" not in pretty({"</script><script>": ["<script>", 1, None]})
    value = {'a"b': [1.5, True, {"": "\\"}], "ü": "<&>", "-": "-1 true"}
    assert Page(f"<pre>{pretty(value)}</pre>").shown == json.dumps(value, indent=2, ensure_ascii=False)


def test_the_metadata_fit_their_schema(summary: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(resources.schema("docs")).validate(summary)


def test_the_metadata_name_every_endpoint_of_the_document(summary: dict[str, Any]) -> None:
    named = {(endpoint["method"].lower(), endpoint["path"]) for endpoint in summary["endpoints"]}
    assert named == {(method, path) for path, item in current()["paths"].items() for method in item}
    by_path = {(endpoint["method"], endpoint["path"]): endpoint for endpoint in summary["endpoints"]}
    decide = by_path["POST", "/api/decide"]
    assert (decide["auth"], decide["access"], decide["rate_limited"]) == ("key", "decide", True)
    assert {200, 401, 403, 409, 422, 429, 503} <= set(decide["statuses"])
    assert by_path["GET", "/metrics"]["auth"] == "metrics token"
    assert by_path["POST", "/api/decision/verify"]["auth"] == "public"
    assert [endpoint["path"] for endpoint in summary["endpoints"] if endpoint["rate_limited"]] == [
        "/api/decide",
        "/api/decide/batch",
        "/api/v1/workflows/{ticketing_system}/refund",
    ]


def test_the_metadata_name_every_published_schema(served: FlaskClient, summary: dict[str, Any]) -> None:
    named = {schema["url"] for schema in summary["schemas"]}
    assert named == {url for url in published() if url.endswith(".schema.json")}
    assert all(served.get(url).status_code == 200 for url in named)


def test_the_metadata_tell_the_plans_and_sizes(client: FlaskClient, summary: dict[str, Any]) -> None:
    told = {plan["plan"]: plan for plan in summary["rate_limits"]["plans"]}
    assert told == {
        name: {
            "plan": name,
            "requests_per_minute": plan.requests_per_minute,
            "records_per_month": plan.records_per_month,
        }
        for name, plan in PLANS.items()
    }
    limit = summary["limits"]["request_body_bytes"]
    headers = {"content-type": "application/json"}
    assert client.post("/api/decide", data=b" " * (limit + 1), headers=headers).status_code == 413
    assert client.post("/api/decide", data=b" " * limit, headers=headers).status_code != 413


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs.json"])
def test_the_documents_need_no_key_and_answer_head(served: FlaskClient, path: str) -> None:
    got, head = served.get(path), served.head(path)
    assert (got.status_code, head.status_code, head.data) == (200, 200, b"")
    assert head.headers["content-length"] == str(len(got.data))
