"""The page of the Python client's methods, from their signatures and the operations of the HTTP API."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from docs.tools.reference.http.operations import Operation
from docs.tools.reference.http.operations import operations as endpoints
from docs.tools.reference.markdown import anchor
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
    methods = _methods()
    called = [each for each in endpoints().values() if each.written.get("x-client", True)]
    rows = (_row(each, methods[each.written["operationId"]]) for each in called)
    return {"client-methods.md": _INTRODUCTION + "".join(rows)}


def _methods() -> Mapping[str, list[str]]:
    """The names of the methods that call an operation, by its id."""
    found: dict[str, list[str]] = {}
    for name in sorted(operations.__all__):
        arguments = ({} if each.name in _BODIES else each.name for each in _parameters(name) if _is_positional(each))
        call = _function(name)(*arguments)
        found.setdefault(call.operation, []).append(name)
    return found


def _row(endpoint: Operation, methods: list[str]) -> str:
    target = f"api/{endpoint.page}#{anchor(endpoint.key)}"
    called = ", ".join(f"`{each}({', '.join(_positional(each))})`" for each in methods)
    named = [each.name for each in _parameters(methods[0]) if not _is_positional(each)]
    further = ", ".join(f"`{each}`" for each in named if each != "request_id")
    return f"| [`{endpoint.key}`]({target}) | {called} | {further} |\n"


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
