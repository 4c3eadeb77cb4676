"""Writes the operations of a document as a module of classes with methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from api.description.client.functions import parameters
from api.description.client.operations import Operation
from api.description.client.text import comment, imports

_HEAD: Final = '''\
"""Every endpoint as a method, which sends the operation of `gate.client.operations` and returns the answer.

Each operation is described once. Its signature, types, and description are the same for both clients.
"""

from __future__ import annotations

'''
_IMPORTED: Final = {
    "collections.abc": ("Mapping",),
    "datetime": ("datetime",),
    "typing": ("TYPE_CHECKING", "Literal", "overload"),
    "gate.client.api": ("operations",),
    "gate.client.transport.endpoint": ("AsyncEndpoint", "Endpoint"),
}


def methods(tags: Mapping[str, Iterable[Operation]], types: Iterable[str]) -> str:
    """The module of both classes, with the same arguments as `functions`."""
    body = ""
    for name, kind, define, who in (
        ("Endpoints", "Endpoint", "def", "threads"),
        ("AsyncEndpoints", "AsyncEndpoint", "async def", "asyncio"),
    ):
        body += f'\n\nclass {name}:\n    """Every endpoint, for {who}."""\n'
        for heading, group in tags.items():
            body += f"\n{comment(heading, indent=4)}"
            body += "".join(_method(operation, kind, define) for operation in group)
    return _HEAD + imports(body, _IMPORTED, types) + body


def _method(operation: Operation, kind: str, define: str) -> str:
    name, answer = operation.name, operation.answer
    made = f"{name} = {kind}(operations.{name})\n"
    if answer.only is None:
        return f"    {made}"
    # Where another callable is made of an operation, type checkers take its first overload for the whole.
    every, one, both = (
        f"        {define} {name}(self, {parameters(operation, left_out=left_out, given=given)}) -> {gives}: ...\n"
        for left_out, given, gives in (
            (answer.only, None, answer.annotation),
            (None, answer.only, answer.alone),
            (None, None, f"{answer.annotation} | {answer.alone}"),
        )
    )
    overloads = f"        @overload\n{every}\n        @overload\n{one}\n{both}"
    return f"\n    if TYPE_CHECKING:\n\n{overloads}\n    else:\n        {made}\n"
