"""Rulebooks in files: reads their authoring form, and finds the line of each error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from api.cli.output import print_json, say
from api.cli.rulebook.documents import DocumentFile, read_document
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES
from gate.errors import FieldError
from gate.rulebooks.authoring import Authored, read_authored
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import Rulebook, load

File = Annotated[
    Path,
    typer.Argument(help="A rulebook file in JSON or YAML, with or without descriptions. Use - for stdin."),
]


@dataclass(frozen=True, slots=True)
class RulebookFile:
    """A rulebook file that was read.

    Attributes:
        document: The file.
        authored: Its rulebook and annotations.
    """

    document: DocumentFile
    authored: Authored

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.document.name

    @property
    def annotations(self) -> Annotations:
        """Its annotations."""
        return self.authored.annotations

    def tell(self, errors: Sequence[FieldError], warnings: Sequence[FieldError]) -> None:
        """Prints errors and warnings for people, with file and line."""
        for kind, style, faults in (("error", "red", errors), ("warning", "yellow", warnings)):
            for finding in self.document.findings(faults):
                fault = finding.fault
                say(
                    f"{self.name}:{finding.line}: {kind}: {fault.field or 'the rulebook'}: {fault.message}", style=style
                )

    def valid(self, *, as_json: bool) -> Rulebook:
        """Returns the rulebook. If it is not valid, prints the errors and exits with 1."""
        errors = self.authored.errors
        if not errors:
            return load(self.authored.body)
        if as_json:
            print_json({"valid": False, "errors": [finding.to_dict() for finding in self.document.findings(errors)]})
        else:
            self.tell(errors, [])
        raise typer.Exit(1)


def read_rulebook(path: Path) -> RulebookFile:
    """Reads a rulebook file, or stdin for `-`.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID` or `YAML_INVALID`: a request could not contain it.
    """
    # A request holds the rulebook one level deep.
    document = read_document(path, max_depth=MAX_REQUEST_DEPTH - 1, max_values=MAX_REQUEST_VALUES)
    return RulebookFile(document, read_authored(document.value))
