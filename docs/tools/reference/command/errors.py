"""docs/reference/command-errors.md, from the codes in docs/tools/command-error-codes.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypedDict

from api.cli.main import COMMANDS
from docs.tools.markdown import paragraph

SOURCE: Final = "docs/tools/command-error-codes.json"

_CODES: Final = Path(__file__).parents[2] / "command-error-codes.json"


class _Told(TypedDict):
    """What the page says of a code."""

    where: list[str]
    meaning: str
    action: str


_INTRO: Final = """\
# Error codes of the command

This page explains each error code of the `gate` command and of the Python packages.

A command that fails prints one line to stderr, `gate: <sentence> (<CODE>)`, and exits with 2 unless the page of the
command says otherwise. With `--json` it prints `{error, message, errors}`. The sentence states what is at fault.

The codes of the HTTP service are in [Errors](errors.md). The results of a verification are in
[Verification codes](verification-codes.md).

"""


def pages() -> dict[str, str]:
    """The one page."""
    codes: dict[str, _Told] = json.loads(_CODES.read_text())
    return {"command-errors.md": _INTRO + "\n".join(_section(code, told) for code, told in codes.items())}


def _section(code: str, told: _Told) -> str:
    raised = f"Raised by: {', '.join(map(_raiser, told['where']))}."
    meaning = paragraph(f"{told['meaning']} {told['action']}")
    return f"## `{code}`\n\n{meaning}\n{paragraph(raised)}"


def _raiser(name: str) -> str:
    return f"`gate {name}`" if name.split()[0] in COMMANDS else name
