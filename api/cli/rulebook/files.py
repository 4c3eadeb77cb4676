"""Rulebooks in files: reading their authoring form, and naming the lines of what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from api.cli.options import read_file
from api.cli.output import print_json, say
from gate.encoding.positions import line_of_refusal, lines_of
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES, parse
from gate.errors import FieldError, MaterialRefused
from gate.rulebooks.authoring import Authored, read_authored
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import Rulebook, load

File = Annotated[
    Path, typer.Argument(help="A rulebook file in JSON, which may contain $schema and description; - for stdin.")
]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or a warning about a file.

    Attributes:
        line: The line it is about, from 1.
        fault: The rest.
    """

    line: int
    fault: FieldError

    def to_dict(self) -> dict[str, object]:
        """The finding as a JSON object {line, field, code, message}."""
        return {"line": self.line, **self.fault.to_dict()}


@dataclass(frozen=True, slots=True)
class RulebookFile:
    """A rulebook file that was read.

    Attributes:
        name: How messages name it.
        text: Its text.
        authored: Its rulebook and annotations.
    """

    name: str
    text: str
    authored: Authored

    @property
    def annotations(self) -> Annotations:
        """Its annotations."""
        return self.authored.annotations

    def lines(self, paths: Sequence[str]) -> dict[str, int]:
        """The line of each place in the rulebook, from 1."""
        return lines_of(self.text, paths)

    def findings(self, faults: Sequence[FieldError]) -> list[Finding]:
        """Errors or warnings with their lines, in the order of these."""
        lines = self.lines([fault.field for fault in faults])
        return sorted((Finding(lines[fault.field], fault) for fault in faults), key=lambda finding: finding.line)

    def tell(self, errors: Sequence[FieldError], warnings: Sequence[FieldError]) -> None:
        """Prints errors and warnings for people, with file and line."""
        for kind, style, faults in (("error", "red", errors), ("warning", "yellow", warnings)):
            for finding in self.findings(faults):
                fault = finding.fault
                say(
                    f"{self.name}:{finding.line}: {kind}: {fault.field or 'the rulebook'}: {fault.message}", style=style
                )

    def valid(self, *, as_json: bool) -> Rulebook:
        """Its rulebook; where that is not valid, prints the errors and exits with 1."""
        errors = self.authored.errors
        if not errors:
            return load(self.authored.body)
        if as_json:
            print_json({"valid": False, "errors": [finding.to_dict() for finding in self.findings(errors)]})
        else:
            self.tell(errors, [])
        raise typer.Exit(1)


def read_rulebook(path: Path) -> RulebookFile:
    """Reads a rulebook file, or stdin for `-`.

    Raises:
        OperatorError: FILE_UNREADABLE.
        MaterialRefused: SVC_API_JSON_INVALID: it is no JSON that a request could hold.
    """
    content = read_file(path)
    name = "stdin" if str(path) == "-" else str(path)
    try:
        # A request holds the rulebook one level deep.
        document = parse(content, max_depth=MAX_REQUEST_DEPTH - 1, max_values=MAX_REQUEST_VALUES)
    except MaterialRefused as error:
        message = error.message.replace("The body", "It", 1)
        line = None if " at line " in message else line_of_refusal(content.decode(errors="replace"))
        at = name if line is None else f"{name}:{line}"
        raise MaterialRefused(error.code, f"{at} is no usable JSON. {message}") from error
    return RulebookFile(name, content.decode(), read_authored(document))
