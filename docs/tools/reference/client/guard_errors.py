"""docs/reference/guard-errors.md, from the codes in docs/tools/guard-error-codes.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypedDict

from api.errors import codes
from docs.tools.reference.http.families import target_of
from docs.tools.reference.markdown import code, link, page, table

SOURCE: Final = "docs/tools/guard-error-codes.json"

_CODES: Final = Path(__file__).parents[4] / SOURCE
_INTRODUCTION: Final = (
    "What does each error of a [guard](../glossary.md#guard) mean, and what do you do about it?",
    "All are `GateError` from `gate.client`, with `code`, `message`, `details` and `errors` (a list of `FieldError`). "
    "`Blocked` to `Undecidable` are `NotPermitted`, with `intent_id`, `record` and `decision_id`: **the block did not "
    "run.**",
)
_NOTE: Final = (
    "`RequestRefused`, `MaterialRefused` and most `OperatorError` come when you create the guard or decorate the "
    "function."
)


class _Told(TypedDict):
    """A row of the page."""

    error: str
    codes: list[str]
    meaning: str
    action: str


def pages() -> dict[str, str]:
    """The one page."""
    told: list[_Told] = json.loads(_CODES.read_text())
    rows = (
        (code(each["error"]), ", ".join(map(_code, each["codes"])), each["meaning"], each["action"]) for each in told
    )
    return {
        "guard-errors.md": page(
            "# Guard errors", *_INTRODUCTION, table(("error", "code", "meaning", "do"), rows), _NOTE
        )
    }


def _code(name: str) -> str:
    """A code, with a link if the service defines it."""
    return link(code(name), f"errors/{target_of(name)}") if name in codes() else code(name)
