"""docs/reference/rulebook-codes.md, from the codes in gate/rulebooks/codes.py."""

from __future__ import annotations

from typing import Final

from docs.tools.markdown import paragraph, table
from gate.encoding.shapes import MAX_ERRORS
from gate.rulebooks.codes import CASE_WARNINGS, ERRORS, FINDINGS, WARNINGS, Code

SOURCE: Final = "gate/rulebooks/codes.py"

_INTRO: Final = f"""\
# Rulebook codes

This page explains the errors, warnings, and analysis findings about a [rulebook](../glossary.md#rulebook), with what
to do about each.

## Errors

An error makes a rulebook invalid. `gate rulebook check` exits with 1, and the service answers 422 `RULEBOOK_INVALID`
with up to {MAX_ERRORS} entries `{{field, code, message}}` in `errors`. `field` is the path of the field, such as
`rulebook.rules[0].outcome.action`. Files state it without `rulebook.`

`gate rulebook` prints the line too. A missing field is reported on the line of its object. Duplicate ids, the number of
nodes and the depth are checked only if there is no other error. [Limits](rulebook-language.md#limits) states every
limit and pattern.

"""
_WARNINGS: Final = f"""
## Warnings

A warning points at a probable mistake in a valid rulebook. It changes no decision. `gate rulebook check` prints up to
{MAX_ERRORS} warnings, and exits with 1 with `--strict`.

The service gives the same warnings. The answer to the request that registers a rulebook has up to eight of them in the
header `x-rulebook-warnings`, as code and path. `GET /api/decision/rulebooks` returns all of them in `warnings`. No hash
covers warnings, and records do not contain them.

"""
_CASES: Final = """
## Warnings about cases

`gate rulebook test` prints these, and exits with 1 with `--strict`.

"""
_FINDINGS: Final = """
## Findings

`gate rulebook analyse` examines all valid facts. Facts that the input schema refuses get `NEEDS_INPUT`, and no rule
sees them. Accept a danger that you know with `--accept NAME`, the name that is printed with it.

"""


def pages() -> dict[str, str]:
    """The one page."""
    errors = table(
        ("Code", "Meaning"), ((f"`{name}`", f"{code.meaning} {code.action}") for name, code in ERRORS.items())
    )
    warnings = "\n".join(_section(name, code) for name, code in WARNINGS.items())
    findings = "\n".join(_section(name, code) for name, code in FINDINGS.items())
    cases = "\n".join(_section(name, code) for name, code in CASE_WARNINGS.items())
    parts = (_INTRO, errors, _WARNINGS, warnings, _CASES, cases, _FINDINGS, findings)
    return {"rulebook-codes.md": "".join(parts)}


def _section(name: str, code: Code) -> str:
    severity = f"\n{paragraph(f'Severity: {code.severity}')}" if code.severity else ""
    return f"### `{name}`\n\n{paragraph(f'{code.meaning} {code.action}')}{severity}"
