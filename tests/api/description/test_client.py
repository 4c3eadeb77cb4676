"""gate/client/api is the OpenAPI document in Python: the two do not drift apart, and nothing is left out silently."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import pytest

from api.description.client import Names, Unsupported, sources
from api.description.client import __main__ as command
from api.description.client.names import NAMES
from gate.client.api import types
from gate.client.transport.calls import text
from gate.errors import RequestRefused
from tests.contract.frozen import current
from tests.end_to_end.support import ROOT
from tests.support.samples import CASES, cases

FOLDER: Final = ROOT / "gate" / "client" / "api"

Load = Callable[[str], ModuleType]


def small_document() -> Any:
    return json.loads((CASES / "client_document.json").read_text())


def small_names(**told: Any) -> Names:
    return Names(**{"types": {"Shelf.status": "Fill"}, "left_out": frozenset({"etag"}), **told})


def formatted(file: Path, source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(file), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a module that is generated from the small document."""

    def loaded(name: str) -> ModuleType:
        file = tmp_path / name
        file.write_text(sources(small_document(), small_names())[name])
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


def test_the_client_is_what_the_document_says() -> None:
    document: Any = current()
    generated = sources(document)
    assert {file.name for file in FOLDER.glob("*.py")} == generated.keys()
    for name, source in generated.items():
        file = FOLDER / name
        assert file.read_text("utf-8") == formatted(file, source), f"{name} has drifted: run `make client`."
        assert source.startswith("# Generated from the OpenAPI document by `make client`.")


def test_every_name_of_the_vocabulary_is_that_of_a_type() -> None:
    assert set(NAMES.types.values()) - vars(types).keys() == set()


def test_the_public_names_are_those_of_what_is_generated() -> None:
    from gate.client import operations, types
    from gate.client.api import operations as generated
    from gate.client.api import types as generated_types

    assert operations.__all__ == generated.__all__
    assert all(getattr(operations, name) is getattr(generated, name) for name in generated.__all__)
    public = {name: value for name, value in vars(generated_types).items() if not name.startswith("_")}
    assert public.items() <= vars(types).items()


def test_an_operation_becomes_a_function(load: Load) -> None:
    operations = load("operations.py")
    assert operations.__all__ == ["get_shelf", "sort_shelves"]
    assert str(inspect.signature(operations.get_shelf)) == (
        "(shelf_id: 'str', *, limit: 'int | None' = None, from_: 'str | datetime | None' = None) -> 'Call[Shelf]'"
    )
    call = operations.get_shelf("a b", limit=3, from_="now")
    assert (call.operation, call.method, call.path) == ("getShelf", "GET", "/shelves/a%20b")
    assert (call.query, call.body, call.credential) == ({"limit": "3", "from": "now"}, None, "key")
    call = operations.sort_shelves({"by": "title"})
    assert (call.method, call.path, call.body) == ("POST", "/shelves/sorted", b'{"by":"title"}')
    assert (call.credential, call.headers, call.read) == (None, {"accept": "text/plain"}, text)


def test_a_word_that_leads_to_another_endpoint_is_no_id(load: Load) -> None:
    with pytest.raises(RequestRefused, match="'sorted' is the name of another endpoint, not the id of a shelf"):
        load("operations.py").get_shelf("sorted")


def test_a_function_is_described_as_its_operation_is(load: Load) -> None:
    assert inspect.getdoc(load("operations.py").get_shelf) == (
        "Fetch a shelf.\n\nThe shelf.\n\nWith its books.\n\n"
        "Args:\n    shelf_id: Which.\n    limit: How many. None means 9.\n    from_: Since.\n\n"
        "Returns:\n    The shelf as it is.\n\n"
        "Raises:\n    RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent."
    )


def test_an_operation_becomes_a_method_for_threads_and_one_for_asyncio() -> None:
    written = sources(small_document(), small_names())["endpoints.py"]
    for name in ("get_shelf", "sort_shelves"):
        assert f"    {name} = Endpoint(operations.{name})\n" in written
        assert f"    {name} = AsyncEndpoint(operations.{name})\n" in written


def test_an_answer_of_one_entry_has_an_overload() -> None:
    document = small_document()
    media = document["paths"]["/shelves/{shelf_id}"]["get"]["responses"]["200"]["content"]["application/json"]
    media["schema"] = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Shelf", "Book")]}
    made = sources(document, small_names(alone={"getShelf": "limit"}))
    assert (
        "def get_shelf(shelf_id: str, *, limit: int, from_: str | datetime | None = None) -> Call[Book]: ..."
        in (made["operations.py"])
    )
    assert made["endpoints.py"].count("limit: None = None, from_: str | datetime | None = None) -> Shelf: ...") == 2


def test_an_answer_in_several_media_types_has_a_function_for_each() -> None:
    document = small_document()
    content = document["paths"]["/shelves/{shelf_id}"]["get"]["responses"]["200"]["content"]
    content["text/markdown"] = {"schema": {"type": "string", "description": "A page."}}
    forms = {"getShelf": {"text/markdown": "get_shelf_markdown"}}
    made = sources(document, small_names(forms=forms))
    asked = "(shelf_id: str, *, limit: int | None = None, from_: str | datetime | None = None)"
    assert f"def get_shelf{asked} -> Call[Shelf]:" in made["operations.py"]
    assert f"def get_shelf_markdown{asked} -> Call[str]:" in made["operations.py"]
    assert made["operations.py"].count("media_type='text/markdown'") == 1
    assert "Returns:\n        A page.\n" in made["operations.py"]
    assert made["endpoints.py"].count("operations.get_shelf_markdown") == 2


def test_an_object_becomes_a_type(load: Load) -> None:
    module = load("types.py")
    assert get_args(module.Fill) == ("full", "free")
    assert (module.Shelf.__doc__, module.Shelf.__required_keys__) == ("A shelf.", {"books", "status"})
    shelf = get_type_hints(module.Shelf, vars(module))
    assert (get_origin(shelf["books"]), get_args(shelf.pop("books"))) == (list, (module.Book,))
    assert shelf == {"status": Literal["full", "free"] | None, "labels": dict[str, str], "notes": dict[str, Any]}
    assert module.Book.__required_keys__ == {"title"}
    assert get_type_hints(module.Book, vars(module)) == {
        "title": str,
        "from": str | None,
        "sequel": module.Book,
        "format": str,
        "size": module.BookSize,
    }
    assert get_type_hints(module.Order, vars(module)) == {"by": Any, "options": Mapping[str, Any]}


def test_a_type_holds_what_the_vocabulary_means() -> None:
    meant = {"Shelf.notes": {"type": "array", "items": {"$ref": "#/components/schemas/Fault"}}, "Shelf.labels": "Book"}
    made = sources(small_document(), small_names(meant=meant, views={"Fault": ("Order",)}))["types.py"]
    assert "notes: NotRequired[list[Fault]]" in made
    assert "labels: NotRequired[Book]" in made
    assert "error: NotRequired[str]" in made
    assert "by: NotRequired[Json]" in made


@pytest.mark.parametrize("case", cases("client_refusals"), ids=lambda case: str(case["name"]))
def test_what_the_generator_does_not_know_is_refused(case: dict[str, Any]) -> None:
    document = small_document()
    node = document
    for step in case.get("at", "").split():
        node = node[step]
    if "move" in case:
        before, after = case["move"]
        node[after] = node.pop(before)
    node.update(case.get("set", {}))
    with pytest.raises(Unsupported) as refused:
        sources(document, small_names(**case.get("names", {})))
    assert case["says"] in str(refused.value)
    assert str(refused.value).endswith(".")


def test_nothing_is_written_where_the_document_is_not_understood(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    assert command.main() == 0
    written = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir()}
    document: Any = current()
    assert written == sources(document)
    monkeypatch.setattr(command, "openapi_document", lambda base_url: {**current(), "tags": []})
    assert command.main() == 1
    assert "decide does not have exactly one tag" in capsys.readouterr().err
    assert {file.name: file.read_text("utf-8") for file in tmp_path.iterdir()} == written
