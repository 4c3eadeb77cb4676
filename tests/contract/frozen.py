"""The frozen OpenAPI document, one line for each operation and component, and how it is refreshed.

Each line of openapi.jsonl is a JSON list: the names that lead to an entry of the document, then the entry itself. The
lines stand in the order of those names, and an entry's members are sorted, without white space:

    ["components","schemas","Probe",{"properties":{...},"type":"object"}]
    ["info",{"title":"Decision Gate",...}]
    ["paths","/api/decide","post",{"operationId":"decide",...}]

A diff of the file therefore names the operations and components that changed. Nothing of the document is left out,
descriptions and examples included, and 15.0 stays 15.0, which RFC 8785 would write as 15.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from api.description.documents import openapi_document

FILE: Final = Path(__file__).parent / "openapi.jsonl"
BASE_URL: Final = "https://gate.example"

# How many names lead to an entry; one, where a part of the document is an entry itself.
_NAMES: Final = {"paths": 3, "components": 3, "x-error-codes": 2}


def frozen() -> dict[str, Any]:
    """The document that callers were promised."""
    return thaw(FILE.read_text("utf-8"))


def current() -> dict[str, Any]:
    """The document that the service serves now, for a neutral base address."""
    # A copy each time: what is checked against it may change it on the way.
    document: dict[str, Any] = json.loads(_current())
    return document


@cache
def _current() -> str:
    return json.dumps(openapi_document(BASE_URL))


def freeze(document: dict[str, Any]) -> str:
    """A document as openapi.jsonl has it."""
    return "".join(f"{_line(*names, entry)}\n" for names, entry in entries(document))


def thaw(text: str) -> dict[str, Any]:
    """The document that was frozen as `text`."""
    found: dict[str, Any] = {}
    for line in filter(None, text.split("\n")):
        *outer, last, entry = json.loads(line)
        node = found
        for name in outer:
            node = node.setdefault(name, {})
        node[last] = entry
    return found


def entries(document: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each entry of a document, after the names that lead to it."""
    for part in sorted(document):
        yield from _entries((part,), document[part], _NAMES.get(part, 1))


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The names of the entries in which two documents differ, those included that only one of them has."""
    before, after = ({names: _line(entry) for names, entry in entries(document)} for document in (old, new))
    return [" ".join(names) for names in sorted({*before, *after}) if before.get(names) != after.get(names)]


def _entries(names: tuple[str, ...], value: Any, depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    # An empty object leads on to nothing, and would be lost.
    if len(names) == depth or not isinstance(value, dict) or not value:
        yield names, value
        return
    for name in sorted(value):
        yield from _entries((*names, name), value[name], depth)


def _line(*values: Any) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
