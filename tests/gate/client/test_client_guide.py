"""The pages about the client and the guard have every endpoint, argument and error of theirs."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import gate.client
from api.errors import codes
from docs.tools.reference.http.operations import operations as described
from gate.client import AsyncClient, Client, Recovery, connection, errors, operations
from gate.client.client import TIMEOUT, TRIES
from gate.client.guard.permit import BasePermit
from gate.client.guard.saying import EXECUTION_STATUSES, Outcome
from gate.client.guard.terms import MAX_AGE, REVIEW_SECONDS
from gate.client.transport import calls
from gate.errors import GateError
from tests.end_to_end.support import ROOT, anchors
from tests.support.documentation import OPERATIONS, rows, section

METHODS_PAGE: Final = (ROOT / "docs" / "reference" / "client-methods.md").read_text()
ARGUMENTS: Final = (ROOT / "docs" / "reference" / "client-arguments.md").read_text()
REPORTING: Final = (ROOT / "docs" / "guides" / "report-from-a-guard.md").read_text()
RECOVERY: Final = (ROOT / "docs" / "guides" / "recover-a-started-action.md").read_text()
GUARD_ERRORS: Final = (ROOT / "docs" / "reference" / "guard-errors.md").read_text()
LISTED: Final = rows(section(METHODS_PAGE, "## Every endpoint"))
BODIES: Final = frozenset({"request", "report", "material"})

METHODS: Final[Mapping[str, Callable[..., Any]]] = {name: getattr(operations, name) for name in operations.__all__}


def defined(kind: type[GateError]) -> set[str]:
    """The names of the errors of the client that are of a kind."""
    return {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, kind) and value.__module__ == errors.__name__
    }


def words(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def test_every_endpoint_has_one_row_and_every_method_too() -> None:
    endpoints = [re.findall(r"\[`(.*?)`\]\(api/([\w-]+)\.md#(.*?)\)", cell)[0] for cell, *_ in LISTED]
    called = [name for name, operation in OPERATIONS.items() if operation.get("x-client", True)]
    assert sorted(name for name, *_ in endpoints) == sorted(called)
    assert [{anchor} for *_, anchor in endpoints] == [anchors(f"### `{name}`") for name, *_ in endpoints]
    assert all(f"{page}.md" == described()[name].page for name, page, _ in endpoints)
    assert sorted(method.partition("(")[0] for _, cell, _ in LISTED for method in words(cell)) == sorted(METHODS)


@pytest.mark.parametrize(("endpoint", "method", "named"), LISTED, ids=[words(row[1])[0] for row in LISTED])
def test_a_method_calls_the_endpoint_of_its_row_with_the_arguments_that_the_row_names(
    endpoint: str, method: str, named: str
) -> None:
    http, path = words(endpoint)[0].split(" ")
    # An endpoint that answers in several forms has a method for each.
    for written in words(method):
        name, _, told = written.rstrip(")").partition("(")
        parameters = inspect.signature(METHODS[name]).parameters.values()
        needed = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
        assert told == ", ".join(each.name if each.default is each.empty else f"{each.name}=None" for each in needed)
        further = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
        assert [*words(named), "request_id"] == further
        call = METHODS[name](*({} if each.name in BODIES else each.name for each in needed))
        assert (call.method, call.path) == (http, re.sub(r"{(\w+)}", r"\1", path))
        assert call.operation == OPERATIONS[f"{http} {path}"]["operationId"]
        assert all(callable(getattr(client, name)) for client in (Client, AsyncClient))


def test_every_argument_of_a_client_has_a_row_with_its_variable_and_default() -> None:
    listed = {words(name)[0]: told for name, told in rows(section(ARGUMENTS, "## Clients"))}
    assert list(listed) == list(inspect.signature(Client).parameters)
    assert {name: words(told)[-1] for name, told in listed.items() if "`GATE_" in told} == {
        "url": connection.URL,
        "key": connection.KEY,
        "key_file": connection.KEY_FILE,
        "registry": connection.REGISTRY,
        "scope_hash": connection.SCOPE_HASH,
        "store": connection.INTENTS,
    }
    assert listed["timeout"].endswith(f" Default: {TIMEOUT:g}.")
    assert listed["tries"].endswith(f" Default: {TRIES}.")


def test_every_error_of_a_call_has_a_row_with_its_status_and_every_field_is_told() -> None:
    told = section(ARGUMENTS, "## Errors")
    meanings = {words(name)[0]: meaning for name, meaning in rows(told)}
    assert {"ApiError", *meanings} == defined(errors.ApiError)
    assert all(meanings.values())
    raised = {str(status): kind.__name__ for status, kind in calls._BY_STATUS.items()}
    stated = {meaning[:3]: name for name, meaning in meanings.items() if re.match(r"\d{3}: ", meaning)}
    assert stated == raised
    assert set(inspect.signature(errors.ApiError).parameters) <= set(words(told.partition("\n|")[0]))


def test_every_argument_of_a_guard_has_a_row_with_its_default() -> None:
    listed = {words(name)[0]: told for name, told in rows(section(ARGUMENTS, "## Guards"))}
    assert list(listed) == [name for name in inspect.signature(Client.guard).parameters if name != "self"]
    assert f" Default: {MAX_AGE:g} for a verdict;" in listed["max_age"]
    assert listed["review_seconds"].endswith(f" Default: {REVIEW_SECONDS:g}.")


def test_the_guide_of_the_guard_names_what_a_permit_takes() -> None:
    told = " ".join(cell for row in rows(section(REPORTING, "## Use the permit")) for cell in row)
    assert set(inspect.signature(BasePermit.describe).parameters) - {"self"} <= set(words(told))
    assert Outcome.__optional_keys__ <= set(words(told))
    assert {"queued", "skipped"} <= set(EXECUTION_STATUSES)


def test_the_guide_of_the_guard_has_every_error_and_every_answer_of_a_hook() -> None:
    listed = {name for row in rows(section(GUARD_ERRORS, "# Guard errors")) for name in words(row[0])}
    own = defined(errors.NotPermitted) | {"StoreUnavailable"}
    assert listed == own - {"NotPermitted"} | {"RequestRefused", "MaterialRefused", "OperatorError", "GateError"}
    answers = {name for row in rows(section(RECOVERY, "## Write a recovery hook")) for name in words(row[0])}
    assert answers == set(Recovery.__members__)
    assert listed | {"FieldError", "GateError"} <= set(gate.client.__all__)


def test_the_catalogue_of_the_guard_has_every_code_that_the_client_raises_and_no_other() -> None:
    told = {code for row in rows(section(GUARD_ERRORS, "# Guard errors")) for code in words(row[1])}
    raised = set(raised_codes(ROOT / "gate" / "client"))
    # The service's codes are passed on. A family of them ends in dots.
    passed_on = codes().keys()
    assert raised <= told
    assert {code for code in told - raised if not code.endswith("...")} <= passed_on


def raised_codes(folder: Path) -> Iterator[str]:
    """The codes with which the sources in a folder construct errors."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                kind, code = getattr(gate.client, node.func.id, None), node.args[0]
                if isinstance(kind, type) and issubclass(kind, GateError) and isinstance(code, ast.Constant):
                    yield str(code.value)


PROGRAMS: Final = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "examples").glob("*.py")]


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.name)
def test_who_copies_a_program_of_the_guides_imports_from_the_client_alone(file: Path) -> None:
    text = file.read_text()
    if "gate.client" in text:
        imported = set(re.findall(r"^(?:from|import) (gate[\w.]*)", text, re.MULTILINE))
        assert imported <= {"gate.client", "gate.client.store.sqlalchemy"}
        assert "gate.errors" not in text
