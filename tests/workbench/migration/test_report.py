"""The report of a migration as a page: it states what the evidence states, and no name in it becomes markup."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gate.decisions.migrations.documents import migration_document
from gate.migration.standing import STATES
from tests.support.migrations import Example
from tests.workbench.hostile import NAMES
from workbench.engines.rendering import on_one_line
from workbench.migration.report import as_html, as_markdown

MARKS: Final = "a|b `c` *d* _e_ ~~f~~ [g](javascript:alert(1)) ![h](//evil.example/x) <i> &lt;j&gt; \\| # k\n\n# l\n- m"
BLOCKS: Final = ["- a", "+ a", "1. a", "12) a", "---", "===", "    a", "> a", "~~~", "| - |"]
HOSTILE: Final = [*NAMES, MARKS, *BLOCKS, "</style><style>body{}</style>", "|", "\\", "", "<!--", "]]>"]
PLAIN: Final = Example().stored[0]
FINDING: Final = {"kind": "rule_never_matches", "severity": "warning", "path": "", "witness": None, "accepted": False}


class Page(HTMLParser):
    """A page's elements and attributes, and what it shows, without its style."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.texts.append(data)


def named(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A migration in which everything that an author or operator names has one name, and its evidence."""
    document = copy.deepcopy(migration_document(PLAIN, [name]))
    evidence = copy.deepcopy(dict(PLAIN.evidence))
    document |= {"state": "proposed", "migration_id": name}
    document["manifest"]["summary"] = name
    for entry in (*document["entries"], *document["routes"]):
        entry |= {"actor": {"type": "user", "id": name}, "note": name}
    (of,) = evidence["rulebooks"]
    of["rulebook_id"] = of["base"]["version"] = of["candidate"]["version"] = name
    of["tests"] |= {"failed": 1, "failures": [{"case": name, "message": name, "rules": [name]}], "holes": [name]}
    of["analysis"]["findings"] = [{**FINDING, "rule_ids": [name], "message": name}]
    region, history = of["difference"]["regions"][0], of["history"]
    region |= {"condition": name, "witness": {name: name}}
    for result in (region["from"], region["to"]):
        result |= dict.fromkeys(("verdict", "action", "reason_code", "rule_id"), name)
    for row in history["transitions"]:
        row |= {"rule": f"rule:{name}", "then_rule": f"rule:{name}", "action": name, "then_action": name}
        row["decision_ids"] = [name]
    history["facts"] = [{"field": name, "classes": [{**of, "class": name} for of in history["facts"][0]["classes"]]}]
    history["missing_facts"] = [{"field": name, "required": True, "decisions": 1, "share": 0.1, "decision_ids": [name]}]
    history |= {"metric": name, "undecided": [name]}
    evidence["corpus"]["unexpected"] = [{"fixture": name, "fields": [name]}]
    evidence["corpus"]["errors"] = [name]
    return document, evidence


def inline(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in token.children or ()]


def test_a_page_states_the_headline_facts() -> None:
    document = migration_document(PLAIN, [])
    facts = [
        "pricing_2026_12",
        "applied",
        "ada at 2026-12-02T09:00:00.000Z",
        "ben at 2026-12-02T09:30:00.000Z",
        document["manifest_hash"],
        document["evidence_hash"],
        "pricing_exception",
        "2026-06-11",
        "2026-12-01",
        document["candidates"][0]["hash"],
        "7 decisions that are blocked would be approved.",
        "No fixture of the corpus rulebook_v1_golden_replay_v1 concerns the candidate.",
        "The seven new approvals are of the winter sale.",
    ]
    shown = " ".join(Page(as_html(document, PLAIN.evidence)).texts)
    tokens = MarkdownIt("commonmark").enable("table").parse(as_markdown(document, PLAIN.evidence))
    written = " ".join(token.content for token in inline(tokens) if token.type == "text")
    for fact in facts:
        assert fact in shown, fact
        assert fact in written, fact


@pytest.mark.parametrize("state", STATES)
def test_a_page_of_an_open_migration_says_whether_its_evidence_is_stale(state: str) -> None:
    document = {**migration_document(PLAIN, ["The corpus changed."]), "state": state}
    for page in (as_html(document, PLAIN.evidence), as_markdown(document, PLAIN.evidence)):
        assert ("The corpus changed." in page) is (state in ("proposed", "approved"))


def test_a_page_says_what_keeps_a_migration_from_being_approved() -> None:
    document, evidence = named("name")
    for page in (as_html(document, evidence), as_markdown(document, evidence)):
        assert "The fixture name drifts in name, which the manifest does not expect." in page.replace("\\", "")


def test_a_page_counts_apart_what_earlier_versions_decided_otherwise() -> None:
    evidence = copy.deepcopy(dict(PLAIN.evidence))
    history = evidence["rulebooks"][0]["history"]
    history["earlier"] = [{"policy_version": "2025-01-01", "decisions": 1200, "of": 4000, "decision_ids": []}]
    history["left_out"]["earlier"] = 34
    document = migration_document(PLAIN, [])
    for page in (as_html(document, evidence), as_markdown(document, evidence)):
        assert "1,234 decisions of earlier versions were decided differently" in page
        assert "2025-01-01 (1,200)" in page.replace("\\", "")


def test_a_first_route_has_no_version_in_force_and_a_release_names_no_rulebook() -> None:
    first = Example().stored[1]
    assert "<code>none</code>" in as_html(migration_document(first, []), first.evidence)
    release = {**PLAIN.evidence, "rulebooks": []}
    assert "The migration has no rulebook." in as_markdown(migration_document(PLAIN, []), release)


def names(test: Any) -> Any:
    """Tries a test on names that break pages, and on any other."""
    for name in HOSTILE:
        test = example(name)(test)
    return given(st.text(max_size=60))(test)


@names
def test_no_name_becomes_an_element_of_the_page(name: str) -> None:
    # Its plots hold no name, and to draw them for each would take all the time.
    with patch("workbench.migration.report._figures", lambda history: ()):
        page = Page(as_html(*named(name)))
        plain = Page(as_html(*named("name")))
    assert page.tags <= plain.tags
    assert page.attributes == plain.attributes
    assert not page.tags & {"script", "img", "a", "iframe", "svg", "link", "form"}
    assert on_one_line(name) in "".join(page.texts)


@names
def test_no_name_becomes_markup_of_the_markdown(name: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = reader.parse(as_markdown(*named(name)))
    plain = reader.parse(as_markdown(*named("name")))
    # The words danger and warning are strong, and nothing else is anything but text.
    marked = [token.type for token in inline(tokens) if token.type != "text"]
    assert marked == [token.type for token in inline(plain) if token.type != "text"]
    assert set(marked) <= {"strong_open", "strong_close"}
    shown = ["".join(child.content for child in token.children or ()) for token in tokens]
    assert on_one_line(name).strip() in shown
    # The same blocks, down to the cells of each table; a name of white space alone may leave a paragraph out.
    if on_one_line(name).strip():
        assert [(token.type, token.level) for token in tokens] == [(token.type, token.level) for token in plain]
