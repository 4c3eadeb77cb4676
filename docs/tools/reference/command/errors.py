"""docs/reference/command-errors, from the codes in docs/tools/command-error-codes.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypedDict

from api.cli.main import COMMANDS
from docs.tools.markdown import paragraph, table

SOURCE: Final = "docs/tools/command-error-codes.json"

_SHOWN: Final = 2
"""How many of the places that raise a code the index has."""
_CODES: Final = Path(__file__).parents[2] / "command-error-codes.json"


class _Told(TypedDict):
    """What the page says of a code."""

    where: list[str]
    meaning: str
    action: str


_INTRO: Final = """\
# Error codes of the command

This page lists each error code of the `gate` command and of the Python packages. Each code links to its meaning and to
what you can do.

A command that fails prints one line to stderr, `gate: <sentence> (<CODE>)`, and exits with 2 unless the page of the
command says otherwise. With `--json` it prints `{error, message, errors}`. The sentence states what is at fault.

The codes of the HTTP service are in [Errors](../errors/README.md). The results of a verification are in
[Verification codes](../verification-codes.md).

"""
_FAMILIES: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "instance": (
        "Errors of the instance and the service",
        frozenset({"serve", "status", "demo", "backup", "restore", "db", "erase", "chain", "log"}),
    ),
    "access": (
        "Errors of scopes, keys, users, and webhooks",
        frozenset({"scopes", "keys", "users", "pilot", "signing-keys", "webhooks", "review"}),
    ),
    "rulebooks": (
        "Errors of rulebooks, adapters, and policies",
        frozenset({"rulebook", "adapters", "policies"}),
    ),
    "migrations": ("Errors of migrations", frozenset({"migrate"})),
    "drafts": ("Errors of drafts and the dashboard", frozenset({"drafts", "workbench", "the"})),
    "lake": (
        "Errors of the lake, histories, and what if",
        frozenset({"lake", "history", "notebook", "whatif", "Python"}),
    ),
    "client": ("Errors of the Python client and its store", frozenset({"client"})),
    "verification": ("Errors of verification and conformance", frozenset({"verify", "verify-packet", "conformance"})),
}
"""The title of each page, by its name, and the commands of its codes. Other codes belong to the first page."""
_CLIENT: Final = "Python client"


def pages() -> dict[str, str]:
    """The index, and a page for each family of commands."""
    codes: dict[str, _Told] = json.loads(_CODES.read_text())
    families: dict[str, list[str]] = {name: [] for name in _FAMILIES}
    for code, told in codes.items():
        families[_family(told)].append(code)
    index = table(
        ("Code", "Raised by"),
        (
            (f"[`{code}`]({_family(told)}.md#{code.lower()})", ", ".join(map(_raiser, told["where"][:_SHOWN])))
            for code, told in codes.items()
        ),
    )
    return {"command-errors/README.md": f"{_INTRO}{index}"} | {
        f"command-errors/{name}.md": _page(_FAMILIES[name][0], {code: codes[code] for code in found})
        for name, found in families.items()
    }


def _family(told: _Told) -> str:
    """The page of a code: that of the command that raises it first."""
    where = told["where"][0]
    word = "client" if where == _CLIENT else where.split()[0]
    return next((name for name, (_, words) in _FAMILIES.items() if word in words), next(iter(_FAMILIES)))


def _page(title: str, codes: Mapping[str, _Told]) -> str:
    about = "What does each of these codes mean, and what do you do about it? [The index](README.md) lists all codes."
    return f"# {title}\n\n{paragraph(about)}\n" + "\n".join(_section(code, told) for code, told in codes.items())


def _section(code: str, told: _Told) -> str:
    raised = f"Raised by: {', '.join(map(_raiser, told['where']))}."
    meaning = paragraph(f"{told['meaning']} {told['action']}")
    return f"## `{code}`\n\n{meaning}\n{paragraph(raised)}"


def _raiser(name: str) -> str:
    return f"`gate {name}`" if name.split()[0] in COMMANDS else name
