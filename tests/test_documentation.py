"""The generated pages are current and complete, and every link leads to a heading."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from api.errors import codes
from docs.tools.prose import texts
from docs.tools.prose.style import HOUSE
from docs.tools.reference.__main__ import FOLDER, MARK, generated
from docs.tools.reference.http import fields
from docs.tools.reference.http.api import EVERYWHERE, who
from docs.tools.reference.http.families import target_of
from docs.tools.reference.http.operations import operations
from docs.tools.reference.markdown import shortened
from gate.encoding import resources
from gate.encoding.strict_json import parse
from tests.end_to_end.support import ROOT, anchors, bash_blocks
from tests.support.documentation import DOCUMENT, OPERATIONS, rows, section

ANSWERS: Final = (ROOT / "docs" / "guides" / "handle-every-answer.md").read_text()
REFERENCE: Final = generated()
PAGES: Final = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
WRITTEN: Final = [page for page in PAGES if page.removeprefix("docs/reference/") not in REFERENCE]
CATALOGUE: Final[dict[str, dict[str, Any]]] = parse(resources.path("schemas", "error-codes.json").read_bytes())


def entry(name: str) -> str:
    """What the page of an operation's tag says of it."""
    return section(REFERENCE[f"api/{operations()[name].page}"], f"### `{name}`")


def parameters(operation: dict[str, Any]) -> set[tuple[str, str]]:
    """The name and place of each parameter of an operation."""
    found = set()
    for parameter in operation.get("parameters", []):
        if "$ref" in parameter:
            parameter = DOCUMENT["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
        found.add((parameter["name"], parameter["in"]))
    return found


def failures(operation: dict[str, Any]) -> set[tuple[str, str]]:
    """Each status of an operation with each error code that it answers."""
    return {
        (status, code)
        for status, response in operation["responses"].items()
        for code in response.get("content", {}).get("application/json", {}).get("examples", {})
        if code in codes()
    }


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page."""
    return anchors(page.read_text())


def test_the_generated_pages_are_current() -> None:
    present = {
        str(page.relative_to(FOLDER)): page.read_text()
        for page in FOLDER.rglob("*.md")
        if page.read_text().startswith(MARK.partition("{")[0])
    }
    changed = sorted(path for path in present.keys() | REFERENCE.keys() if present.get(path) != REFERENCE.get(path))
    assert changed == [], "Run `make reference`, and commit these pages of docs/reference."


class TestApi:
    def test_the_overview_lists_every_operation_once_with_a_link_to_its_section(self) -> None:
        listed = {
            f"{method} {path}": (page, anchor, caller)
            for method, cell, caller, _ in rows(section(REFERENCE["api/README.md"], "## All endpoints"))
            for path, page, anchor in re.findall(r"\[`(.*?)`\]\((.*?)#(.*?)\)", cell)
        }
        assert listed.keys() == OPERATIONS.keys()
        for name, (page, anchor, caller) in listed.items():
            assert anchors(f"### `{name}`") == {anchor}
            assert f"### `{name}`\n" in REFERENCE[f"api/{page}"]
            assert caller == who(OPERATIONS[name])

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
        assert calls

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_it_names_every_parameter_status_and_code_of_an_operation(self, name: str) -> None:
        cells = rows(entry(name))
        listed = {(row[0].strip("`"), row[1].partition(",")[0]) for row in cells if len(row) == 4}
        assert listed | {("x-request-id", "header")} >= parameters(OPERATIONS[name])
        statuses = [row for row in cells if row[0].isdigit()]
        assert {row[0] for row in statuses} >= OPERATIONS[name]["responses"].keys() - {"500", "503"}
        told = {(row[0], code) for row in statuses for code in re.findall(r"\[`(\w+)`\]", row[2])}
        assert told | {(str(codes()[code][0]), code) for code in EVERYWHERE} == failures(OPERATIONS[name])


class TestFormats:
    def test_every_field_of_every_schema_has_a_meaning(self) -> None:
        silent = [
            f"{each.name} {field.path}"
            for each in fields.formats()
            for table in each.tables
            for field in table.fields
            if not field.meaning
        ]
        assert silent == []

    def test_a_long_example_is_cut_and_stays_true(self) -> None:
        value = {"a": "x" * 60, "b": [1, 2], "c": {"d": {"e": {"f": 1}}}, "g": {}}
        assert shortened(value) == {"a": "x" * 40 + "...", "b": [1], "g": {}}


class TestErrors:
    def test_the_catalogue_has_every_code_of_the_service(self) -> None:
        assert CATALOGUE.keys() == codes().keys()

    @pytest.mark.parametrize("code", CATALOGUE)
    def test_the_page_says_what_a_code_means_and_what_to_do(self, code: str) -> None:
        page = REFERENCE[f"errors/{target_of(code).partition('#')[0]}"]
        assert f"]({target_of(code)})" in REFERENCE["errors/README.md"]
        told = section(page, f"### `{code}`")
        status, word = codes()[code]
        assert re.search(rf"Status {status}\b.*`{word}`", told)
        same = re.search(r"The same as \[`(\w+)`\]", told)
        told += section(page, f"### `{same[1]}`") if same else ""
        plain = re.sub(r"\[(`[^`]+`)\]\([^)]+\)", r"\1", told)
        variants = [CATALOGUE[code], *(CATALOGUE[code][kind] for kind in ("forbidden",) if kind in CATALOGUE[code])]
        for variant in variants:
            assert variant["meaning"] in plain
            assert variant["action"] in plain
        extra = CATALOGUE[code]["example"].keys() - {"v", "error", "message", "request_id"}
        assert all(f"`{member}`" in told for member in extra)

    def test_every_status_of_an_error_has_a_row_in_what_the_caller_does(self) -> None:
        told = " ".join(cells[0] for cells in rows(section(ANSWERS, "## Act on each answer")))
        statuses = {status for status, _ in codes().values()} | {403}
        assert statuses <= {int(status) for status in re.findall(r"\b\d{3}\b", told)}

    def test_only_a_yes_lets_the_action_proceed(self) -> None:
        proceeding = [cells[0] for cells in rows(section(ANSWERS, "## Act on each answer")) if "proceeds" in cells[1]]
        assert proceeding == ["200 with `verdict` `yes`"]


@pytest.mark.parametrize("text", texts.pages(), ids=lambda text: str(text.path))
def test_a_page_is_short(text: texts.Text) -> None:
    limits = HOUSE["limits"]
    assert text.words < limits["page"] or text.path in limits["long_pages"]


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_to_headings(page: str) -> None:
    here = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", here.read_text()):
        if not target.startswith("http"):
            linked = (here.parent / target).resolve() if target else here
            assert anchor in anchors_of(linked), f"{target}#{anchor}"


@pytest.mark.parametrize("page", [page for page in WRITTEN if not page.endswith("README.md")])
def test_the_map_leads_to_a_page(page: str) -> None:
    """The map is docs/README.md; a folder may have a list of its own, which the map leads to."""
    folder = (ROOT / page).parent
    lists = [ROOT / "docs" / "README.md", folder / "README.md"]
    assert any(f"]({os.path.relpath(ROOT / page, each.parent)})" in each.read_text() for each in lists if each.exists())
