"""The served interface is the frozen one, and a frozen one takes nothing away from its callers."""

from __future__ import annotations

import ast
import copy
import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType
from typing import Any, Final

import pytest
from flask.testing import FlaskClient
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.contract import __main__ as contract
from tests.contract import compatibility
from tests.contract.compatibility import breaks
from tests.contract.frozen import BASE_URL, FILE, current, differences, freeze, frozen, thaw
from tests.support.samples import cases
from tests.support.torture import size

PROMISED: Final = frozen()


def edited(edit: dict[str, Any]) -> dict[str, Any]:
    """The frozen document with one edit: {op: remove | set | append | rename, path, value?}."""
    document: dict[str, Any] = _edited(PROMISED, edit["path"], edit)
    assert document != PROMISED
    return document


def _edited(node: Any, path: list[Any], edit: dict[str, Any]) -> Any:
    """A copy of `node` with the edit at `path`; it shares the rest, for a document is long and the edits are many."""
    step, *inner = path
    node = copy.copy(node)
    if inner:
        node[step] = _edited(node[step], inner, edit)
    elif edit["op"] == "remove":
        del node[step]
    elif edit["op"] == "append":
        node[step] = [*node[step], edit["value"]]
    elif edit["op"] == "rename":
        node[edit["value"]] = node.pop(step)
    else:
        node[step] = edit["value"]
    return node


class Numbered(SourceFileLoader):
    """Loads compatibility.py with its line ahead of each sentence: `yield "..."` becomes `yield 49, "..."`."""

    def __init__(self) -> None:
        """Begins with the lines of no sentence."""
        super().__init__("numbered", compatibility.__file__)
        self.lines: set[int] = set()

    def get_code(self, fullname: str) -> CodeType:
        """The module's code, with its sentences numbered."""
        tree = ast.parse(self.get_data(self.path))
        for node in ast.walk(tree):
            if isinstance(node, ast.Yield) and isinstance(node.value, ast.JoinedStr | ast.Constant):
                node.value = self._numbered(node.value)
            elif isinstance(node, ast.GeneratorExp) and isinstance(node.elt, ast.JoinedStr):
                node.elt = self._numbered(node.elt)
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def _numbered(self, sentence: ast.expr) -> ast.Tuple:
        self.lines.add(sentence.lineno)
        return ast.Tuple([ast.Constant(sentence.lineno), sentence], ast.Load())


class Sentences:
    """The messages for each row of a table, computed once for all tests, and the lines that can produce one."""

    def __init__(self) -> None:
        loader = Numbered()
        spec = spec_from_loader("numbered", loader)
        assert spec
        self._numbered = module_from_spec(spec)
        loader.exec_module(self._numbered)
        self.lines = loader.lines
        self._found: dict[str, list[tuple[int, str]]] = {}

    def of(self, case: dict[str, Any]) -> list[tuple[int, str]]:
        """The sentences about a row's edit, each with its line."""
        if case["name"] not in self._found:
            self._found[case["name"]] = list(self._numbered.breaks(PROMISED, edited(case)))
        return self._found[case["name"]]


@pytest.fixture(scope="module")
def sentences() -> Sentences:
    """The sentences that are said."""
    return Sentences()


def test_the_served_document_is_the_frozen_one(client: FlaskClient) -> None:
    served = client.get("/openapi.json").get_json()
    served["servers"][0]["url"] = BASE_URL
    served = json.loads(json.dumps(served).replace("http://gate.example", BASE_URL))
    found = breaks(PROMISED, served)
    assert found == [], "Callers would break; give back what they were promised."
    grown = differences(PROMISED, served)
    assert grown == [], "The interface has grown: look at what changed, and freeze it with `make contract`."


def test_the_frozen_file_has_one_canonical_line_for_each_entry() -> None:
    lines = FILE.read_text("utf-8")
    assert lines == freeze(PROMISED)
    assert lines.count('\n["paths",') == sum(len(item) for item in PROMISED["paths"].values())


@settings(max_examples=size(20, 50))
@given(
    st.dictionaries(
        st.sampled_from(["paths", "components", "info", "x-error-codes"]),
        st.recursive(
            st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    )
)
@example({"paths": {}, "components": {"schemas": {}}, "info": {"a": ["\u2028\n", 1.0, 1]}})
def test_a_document_that_is_frozen_and_thawed_is_the_same(document: dict[str, Any]) -> None:
    assert json.dumps(thaw(freeze(document)), sort_keys=True) == json.dumps(document, sort_keys=True)


def test_the_entries_in_which_two_documents_differ_are_named() -> None:
    assert differences(PROMISED, PROMISED) == []
    removed = edited({"op": "remove", "path": ["paths", "/api/decide", "post", "operationId"]})
    assert differences(PROMISED, removed) == ["paths /api/decide post"]
    added = edited({"op": "set", "path": ["components", "schemas", "New"], "value": {}})
    assert differences(added, PROMISED) == ["components schemas New"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases("contract_breaks")])
def test_what_breaks_a_caller_is_told_in_a_sentence(case: dict[str, Any], sentences: Sentences) -> None:
    assert case["says"] in {sentence for _, sentence in sentences.of(case)}


@pytest.mark.heavy
def test_each_sentence_is_provoked_by_a_row_of_the_table(sentences: Sentences) -> None:
    provoked = {
        line for case in cases("contract_breaks") for line, sentence in sentences.of(case) if sentence == case["says"]
    }
    assert sentences.lines
    assert sentences.lines - provoked == set(), "These lines of compatibility.py yield sentences that no row expects."


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases("contract_additions")])
def test_what_breaks_no_caller_is_allowed(case: dict[str, Any]) -> None:
    assert breaks(PROMISED, edited(case)) == []


def test_a_document_that_breaks_callers_is_not_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / FILE.name
    promised = freeze(edited({"op": "set", "path": ["paths", "/api/promised"], "value": {"get": {}}}))
    file.write_text(promised, "utf-8")
    monkeypatch.setattr(contract, "FILE", file)
    assert contract.main() == 1
    assert "The path /api/promised is gone." in capsys.readouterr().err
    assert file.read_text("utf-8") == promised


def test_a_document_that_only_grew_is_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / FILE.name
    file.write_text(freeze(edited({"op": "remove", "path": ["paths", "/docs.json"]})), "utf-8")
    monkeypatch.setattr(contract, "FILE", file)
    assert contract.main() == 0
    assert "Changed: 1\n  paths /docs.json get\n" in capsys.readouterr().out
    assert file.read_text("utf-8") == freeze(current())
