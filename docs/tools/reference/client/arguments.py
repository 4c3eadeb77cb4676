"""The page of the arguments and errors of a client and of its guard, from the docstrings in `gate.client`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from docs.tools.reference.markdown import code, page, table
from gate.client import ApiError, Client

SOURCE: Final = "gate/client"

_INTRODUCTION: Final = """\
Which arguments do a Python client and its [guard](../glossary.md#guard) take, and which errors does a call raise?"""
_CLIENT: Final = (
    "`Client` and `AsyncClient` take these. Pass all but `url` by name. An argument overrides its environment "
    "variable. An empty variable counts as unset."
)
_GUARD: Final = (
    "`client.guard` takes these. Pass all but `rulebook` and `facts` by name. "
    "[The decorator](../guides/guard-a-function.md#guard-a-function-with-the-decorator) `client.guarded` takes all but "
    "`session`."
)
_ERRORS: Final = (
    "A call raises one of these. All are `ApiError` and `GateError`, with `code`, `message`, `errors`, `details`, "
    "`status`, `retry_after`, `request_id`, and `tries`. Guards have [their own errors](guard-errors.md)."
)


def pages() -> dict[str, str]:
    """The one page."""
    return {
        "client-arguments.md": page(
            "# Arguments and errors of the client",
            _INTRODUCTION,
            "## Clients",
            _CLIENT,
            table(("argument", "value"), _arguments(Client.__init__)),
            "## Guards",
            _GUARD,
            table(("argument", "value"), _arguments(Client.guard)),
            "## Errors",
            _ERRORS,
            table(("class", "meaning"), _errors(ApiError)),
        )
    }


def _arguments(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The arguments that a docstring describes, in its order."""
    section = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    for described in re.split(r"\n    (?=\w)", f"\n{section}")[1:]:
        name, _, value = described.partition(": ")
        yield code(name), " ".join(value.split())


def _errors(base: type[Exception]) -> Iterator[tuple[str, str]]:
    """The classes below a class, each before those below it."""
    for each in base.__subclasses__():
        yield code(each.__name__), inspect.cleandoc(each.__doc__ or "").partition("\n\n")[0]
        yield from _errors(each)
