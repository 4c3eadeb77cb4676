"""The page of the Python client's methods, from their signatures and the operations of the HTTP API."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gate.client import operations

SOURCE: Final = "gate/client/api/operations.py"

_INTRODUCTION: Final = """\
# Client methods

Which method of the [Python client](../guides/use-the-python-client.md) calls which endpoint?

Pass required arguments by position, and the others by name. Every method also takes `request_id`, your own trace id.

- `from_` is the query parameter `from`. Dates may be `datetime` objects with a time zone.
- For the next page, pass `cursor=page["next_cursor"]` until it is None.
- `get_metrics`, `export_pilots`, `get_policy_alerts_feed`, `get_docs`, `get_migration_report_markdown`, and
  `get_migration_report_html` return text.
- `get_status` and `get_readyz` also return their report if the status is 503.
- The client has no methods for [batches](../guides/decide-in-batches.md) and MCP.

## Every endpoint

| endpoint | method | arguments by name |
|---|---|---|
"""

_BODIES: Final = frozenset({"request", "report", "material"})
"""Arguments that are JSON objects; the others here are text."""


def pages() -> dict[str, str]:
    """The one page."""
    document = json.loads((Path(__file__).parents[4] / "schemas" / "openapi.json").read_text())
    tags = [tag["name"] for tag in document["tags"]]
    found = [
        (f"{method.upper()} {path}", operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if operation.get("x-client", True)
    ]
    found.sort(key=lambda each: tags.index(each[1]["tags"][0]))
    methods = _methods()
    rows = (_row(name, operation["tags"][0], methods[operation["operationId"]]) for name, operation in found)
    return {"client-methods.md": _INTRODUCTION + "".join(rows)}


def _methods() -> Mapping[str, list[str]]:
    """The names of the methods that call an operation, by its id."""
    found: dict[str, list[str]] = {}
    for name in sorted(operations.__all__):
        arguments = ({} if each.name in _BODIES else each.name for each in _parameters(name) if _is_positional(each))
        call = _function(name)(*arguments)
        found.setdefault(call.operation, []).append(name)
    return found


def _row(name: str, tag: str, methods: list[str]) -> str:
    target = f"api/{_anchor(tag)}.md#{_anchor(name)}"
    called = ", ".join(f"`{each}({', '.join(_positional(each))})`" for each in methods)
    named = [each.name for each in _parameters(methods[0]) if not _is_positional(each)]
    further = ", ".join(f"`{each}`" for each in named if each != "request_id")
    return f"| [`{name}`]({target}) | {called} | {further} |\n"


def _positional(name: str) -> Iterator[str]:
    for each in _parameters(name):
        if _is_positional(each):
            yield each.name if each.default is each.empty else f"{each.name}={each.default}"


def _parameters(name: str) -> list[inspect.Parameter]:
    return list(inspect.signature(_function(name)).parameters.values())


def _is_positional(parameter: inspect.Parameter) -> bool:
    return parameter.kind is not parameter.KEYWORD_ONLY


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(operations, name)
    return function


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
