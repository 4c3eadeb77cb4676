"""docs/api.md is the OpenAPI document's, docs/errors.md the catalogue's, and every link leads to a heading."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, Final

import pytest

from api.errors import codes
from gate.encoding import resources
from gate.encoding.strict_json import parse
from tests.end_to_end.support import ROOT, anchors, bash_blocks
from tests.support.documentation import API, DOCUMENT, OPERATIONS, rows, section

ERRORS: Final = (ROOT / "docs" / "errors.md").read_text()
ANSWERS: Final = (ROOT / "docs" / "guides" / "handle-every-answer.md").read_text()
PAGES: Final = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
CATALOGUE: Final[dict[str, dict[str, Any]]] = parse(resources.path("schemas", "error-codes.json").read_bytes())
WHO: Final = {
    "public": "anyone",
    "read": "a key of the scope with `read`",
    "decide": "a key with `decide`",
    "report": "a key of the scope with `report`",
    "resolve": "a key of the scope with `resolve`",
    "any": "any key of the scope",
    "metrics": "the metrics token",
}
# What the page says once, for every operation.
EVERYWHERE: Final = {(500, "SVC_INTERNAL_ERROR"), (503, "SVC_STORAGE_UNAVAILABLE")}


def entry(name: str) -> str:
    """What docs/api.md says of an operation."""
    return section(API, f"### `{name}`")


def parameters(operation: dict[str, Any]) -> set[tuple[str, str]]:
    """The name and place of each parameter of an operation."""
    found = set()
    for parameter in operation.get("parameters", []):
        if "$ref" in parameter:
            parameter = DOCUMENT["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
        found.add((parameter["name"], parameter["in"]))
    return found


def answers(operation: dict[str, Any]) -> set[tuple[int, str | None]]:
    """Each status of an operation with each error code that it answers, None for an answer that is no error."""
    found: set[tuple[int, str | None]] = set()
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json", {})
        named = [name for name in content.get("examples", {}) if name in codes()]
        schemas = content.get("schema", {}).get("anyOf", [content.get("schema", {})])
        if not named or any(schema.get("$ref") != "#/components/schemas/Error" for schema in schemas):
            found.add((int(status), None))
        found.update((int(status), name) for name in named)
    return found


class TestApi:
    def test_it_names_every_operation_and_no_other_under_its_tag(self) -> None:
        tags = [tag["name"] for tag in DOCUMENT["tags"]]
        headings = re.findall(r"^(##|###) `?(.*?)`?$", API, flags=re.MULTILINE)
        grouped: dict[str, list[str]] = {}
        for level, heading in headings:
            if level == "##":
                grouped[heading] = []
            else:
                grouped[next(reversed(grouped))].append(heading)
        assert {name: sorted(names) for name, names in grouped.items() if names} == {
            tag: sorted(name for name, operation in OPERATIONS.items() if operation["tags"] == [tag]) for tag in tags
        }

    def test_the_overview_lists_every_operation_once_with_a_link_to_its_section(self) -> None:
        listed = [
            (f"{method} {path}", anchor)
            for method, cell, *_ in rows(section(API, "## All endpoints"))
            for path, anchor in re.findall(r"\[`(.*?)`\]\(#(.*?)\)", cell)
        ]
        assert sorted(name for name, _ in listed) == sorted(OPERATIONS)
        assert [{anchor} for _, anchor in listed] == [anchors(f"### `{name}`") for name, _ in listed]

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_it_says_who_may_call(self, name: str) -> None:
        who = WHO[OPERATIONS[name]["x-access"]]
        assert f"- Who may call: {who}" in entry(name)
        method, path = name.split(" ")
        (listed,) = [
            row for row in rows(section(API, "## All endpoints")) if row[0] == method and f"`{path}`" in row[1]
        ]
        assert listed[2].startswith(who)

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_it_has_a_curl_that_calls_the_operation(self, name: str) -> None:
        method, path = name.split(" ")
        address = re.sub(r"\\{\w+\\}", r"[^/\\s\"'?]+", re.escape(f"http://127.0.0.1:8080{path}"))
        calls = [
            block
            for block in bash_blocks(entry(name))
            if "curl " in block
            and re.search(rf"{address}(?=[\s\"'?])", block)
            and (" -d @" in block) is (method == "POST")
        ]
        assert len(calls) == 1

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_it_names_every_parameter_and_where_it_goes(self, name: str) -> None:
        listed = {
            (cells[0].strip("`"), cells[1])
            for cells in rows(entry(name))
            if len(cells) == 3 and cells[1] in ("path", "query", "header")
        }
        assert listed | {("x-request-id", "header")} == parameters(OPERATIONS[name])

    def test_it_names_the_headers_that_every_operation_or_every_key_takes(self) -> None:
        schemes = DOCUMENT["components"]["securitySchemes"].values()
        general = section(API, "## What holds everywhere")
        for header in ["x-request-id", *(scheme["name"] for scheme in schemes)]:
            assert f"`{header}`" in general

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_it_names_every_status_and_every_code_of_an_operation(self, name: str) -> None:
        told = re.search(r"^- Statuses: (.*?)\.$", entry(name), flags=re.MULTILINE | re.DOTALL)
        assert told
        listed: set[tuple[int, str | None]] = set()
        for part in told[1].split(";"):
            statuses = [int(status) for status in re.findall(r"\b\d{3}\b", part)]
            listed.update(product(statuses, re.findall(r"`(\w+)`", part) or [None]))
        assert listed == answers(OPERATIONS[name]) - EVERYWHERE
        assert answers(OPERATIONS[name]) >= EVERYWHERE


class TestErrors:
    def table(self) -> dict[tuple[str, int], list[str]]:
        listed = rows(section(ERRORS, "## Every code"))
        found = {(code.strip("`"), int(status)): cells for code, status, *cells in listed}
        assert len(found) == len(listed)
        return found

    def test_the_table_has_every_code_of_the_service_with_its_status_and_word(self) -> None:
        assert CATALOGUE.keys() == codes().keys()
        expected = {(code, status): word for code, (status, word) in codes().items()}
        expected |= {(code, 403): codes()[code][1] for code, told in CATALOGUE.items() if "forbidden" in told}
        assert {row: cells[0].strip("`") for row, cells in self.table().items()} == expected

    def test_every_row_says_what_the_code_means_and_what_to_do(self) -> None:
        assert all(len(cells) == 3 and all(cells) for cells in self.table().values())

    def test_a_row_names_the_members_that_its_error_brings_besides(self) -> None:
        usual = {"v", "error", "message", "request_id"}
        for (code, status), (_, meaning, _) in self.table().items():
            told = CATALOGUE[code].get("forbidden", CATALOGUE[code]) if status == 403 else CATALOGUE[code]
            for member in told["example"].keys() - usual:
                assert f"`{member}`" in meaning, (code, member)

    def test_every_status_of_an_error_has_a_row_in_what_the_caller_does(self) -> None:
        told = " ".join(cells[0] for cells in rows(section(ANSWERS, "## Act on each answer")))
        statuses = {status for status, _ in codes().values()} | {403}
        assert statuses <= {int(status) for status in re.findall(r"\b\d{3}\b", told)}

    def test_only_a_yes_lets_the_action_proceed(self) -> None:
        proceeding = [cells[0] for cells in rows(section(ANSWERS, "## Act on each answer")) if "proceeds" in cells[1]]
        assert proceeding == ["200 with `verdict` `yes`"]


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_to_headings(page: str) -> None:
    here = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", here.read_text()):
        if not target.startswith("http"):
            linked = here.parent / target if target else here
            assert anchor in anchors(linked.read_text()), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_docs_is_listed_in_their_index(page: str) -> None:
    name = page.removeprefix("docs/")
    assert name in ("README.md", page) or f"]({name})" in (ROOT / "docs" / "README.md").read_text()
