"""Writes the operations of a document as a module of functions. Each function returns a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from api.description.client.operations import JSON, Argument, Operation
from api.description.client.text import comment, docstring, imports, sentence

_HEAD: Final = '''\
"""Every operation of the service as a function that returns its `Call`, with the names of the OpenAPI document. Pure.

    call = decide(request, idempotency_key="order-77")
    call.body       # the canonical JSON of the request

Required arguments are positional, and optional ones are keywords. An argument of None is not sent, and the service uses
its default. A function raises `RequestRefused` (`SVC_API_REQUEST_INVALID`) for an argument that cannot be sent, or that
would lead to another endpoint. It raises `MaterialRefused` (`SVC_API_JSON_INVALID`) for a body that is not I-JSON. The
service checks everything else.
"""

from __future__ import annotations

'''
_IMPORTED: Final = {
    "collections.abc": ("Mapping",),
    "datetime": ("datetime",),
    "typing": ("TYPE_CHECKING", "Final", "Literal", "overload"),
    "gate.client.transport.building": ("call", "member", "readiness", "retry_handle"),
    "gate.client.transport.calls": ("Call", "text"),
}
_BODY_REFUSED: Final = "MaterialRefused: `SVC_API_JSON_INVALID`: the body is not a JSON object."
_REFUSED: Final = "RequestRefused: `SVC_API_REQUEST_INVALID`: an argument cannot be sent."


def functions(tags: Mapping[str, Iterable[Operation]], types: Iterable[str]) -> str:
    """The module of functions.

    Args:
        tags: The operations by their headings.
        types: The names in the module of types.
    """
    made = [operation for group in tags.values() for operation in group]
    words = {each.name: each.elsewhere for operation in made for each in operation.arguments if each.elsewhere}
    body = f"__all__ = [{', '.join(sorted(repr(operation.name) for operation in made))}]\n\n"
    for name, elsewhere in words.items():
        body += comment(f"In the place of a {name} in a path, these words lead to other endpoints.")
        body += f"{_constant(name)}: Final = frozenset({{{', '.join(map(repr, elsewhere))}}})\n"
    for heading, group in tags.items():
        body += f"\n\n{comment(heading)}"
        for operation in group:
            body += f"\n\n{_function(operation)}"
    return _HEAD + imports(body, _IMPORTED, types) + body


def parameters(operation: Operation, *, given: str | None = None, left_out: str | None = None) -> str:
    """The parameters of an operation's function.

    Args:
        operation: The operation.
        given: A keyword argument that this overload requires.
        left_out: An argument that this overload does not have.
    """
    told = []
    for each in operation.arguments:
        if each.is_by_name and "*" not in told:
            told.append("*")
        if each.name == left_out:
            told.append(f"{each.name}: None = None")
        elif each.is_required or each.name == given:
            told.append(f"{each.name}: {each.annotation}")
        else:
            told.append(f"{each.name}: {each.annotation} | None = None")
    return ", ".join(told)


def _function(operation: Operation) -> str:
    name, answer = operation.name, operation.answer
    head, gives = "", f"Call[{answer.annotation}]"
    if answer.only is not None:
        head = (
            f"@overload\ndef {name}({parameters(operation, left_out=answer.only)}) -> {gives}: ...\n\n\n"
            f"@overload\ndef {name}({parameters(operation, given=answer.only)}) -> Call[{answer.alone}]: ...\n\n\n"
        )
        gives += f" | Call[{answer.alone}]"
    return f"{head}def {name}({parameters(operation)}) -> {gives}:\n{_described(operation)}{_body(operation)}"


def _described(operation: Operation) -> str:
    refused = [_BODY_REFUSED, _REFUSED] if operation.sent_in("body") else [_REFUSED]
    return docstring(
        f"{sentence(operation.summary)}\n\n{operation.description}",
        {
            "Args": [f"{each.name}: {each.description}" for each in operation.arguments],
            "Returns": [operation.answer.description],
            "Raises": refused,
        },
    )


def _body(operation: Operation) -> str:
    path, lines = repr(operation.path), ""
    if members := operation.sent_in("path"):
        for each in members:
            path = path.replace(f"{{{each.sent_as}}}", f"{{{_member(each)}}}")
        path, lines = "path", f'    path = f"{path[1:-1]}"\n'
    told = ", ".join([repr(operation.operation_id), repr(operation.method), path, *_said(operation)])
    return f"{lines}    return call({told})\n"


def _member(argument: Argument) -> str:
    elsewhere = f", {_constant(argument.name)}" if argument.elsewhere else ""
    return f"member({argument.sent_as!r}, {argument.name}{elsewhere})"


def _constant(name: str) -> str:
    return f"_NO_{name.upper()}"


def _said(operation: Operation) -> Iterator[str]:
    """What a call says by name: what it sends, and what is not as usual."""
    answer = operation.answer
    if query := operation.sent_in("query"):
        yield f"query={{{', '.join(f'{each.sent_as!r}: {each.name}' for each in query)}}}"
    for each in operation.sent_in("body"):
        yield f"body={each.name}"
    for each in operation.sent_in("header"):
        yield f"{each.name}={each.name if each.name != 'idempotency_key' else 'retry_handle(idempotency_key)'}"
    if operation.credential != "key":
        yield f"credential={operation.credential!r}"
    if answer.statuses != (200,):
        yield f"accepts={answer.statuses!r}"
    if answer.may_be_an_error:
        yield "read=readiness"
    if answer.media_type != JSON:
        yield f"read=text, media_type={answer.media_type!r}"
