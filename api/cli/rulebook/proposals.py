"""`gate rulebook cases`: write boundary cases with today's answers, for a person to confirm."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import orjson
import typer

from api.cli.options import DEFAULT_HOME, DatabaseUrl, Home, Json
from api.cli.output import counted, note, print_json, print_text
from api.cli.rulebook.documents import YAML_SUFFIXES
from api.cli.rulebook.files import File, read_rulebook
from gate.errors import OperatorError
from gate.rulebooks.analysis import NotDecided
from gate.rulebooks.testing.cases import Case
from gate.rulebooks.testing.proposals import boundary_cases, document_of


def propose_cases(
    file: File,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The new file. Its name selects YAML or JSON. Default: stdout, as YAML."),
    ] = Path("-"),
    home: Home = DEFAULT_HOME,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Write boundary cases of a rulebook: at, below and above thresholds; listed and unlisted; absent, null, another
    type.

    Each case expects the answer that the rulebook gives now. Check the cases, and correct wrong answers.
    """
    if str(file) == "-":
        raise OperatorError("USAGE_INVALID", "Cases state the file of their rulebook; give a file instead of stdin.")
    rulebook = read_rulebook(file).valid(as_json=as_json)
    try:
        cases = boundary_cases(rulebook)
    except NotDecided as error:
        raise OperatorError("RULEBOOK_TOO_LARGE", f"No facts can be found for {file}: {error}.") from error
    about = "Boundary cases with the answers of the rulebook. Confirm that each answer is right."
    if as_json:
        print_json(document_of(str(file), cases, about))
    else:
        write_cases(output, str(file), cases, about)


def write_cases(path: Path, rulebook: str, cases: Sequence[Case], about: str) -> None:
    """Writes cases to a new file, or to stdout for `-`.

    Args:
        path: The file: YAML if its name ends in `.yaml` or `.yml`, else JSON.
        rulebook: The file of the rulebook.
        cases: The cases.
        about: A comment for readers.

    Raises:
        OperatorError: `FILE_UNWRITABLE`.
    """
    # Loaded where it is used, as when reading.
    from gate.encoding.yaml_text import write_yaml

    if str(path) == "-":
        print_text(write_yaml(document_of(rulebook, cases, about)))
        return
    document = document_of(Path(os.path.relpath(rulebook, path.parent)).as_posix(), cases, about)
    text = write_yaml(document)
    if path.suffix not in YAML_SUFFIXES:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    try:
        with path.open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} already exists; choose a new file.") from error
    except OSError as error:
        raise OperatorError("FILE_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error
    note(f"Wrote {counted(len(cases), 'case')} to {path}.")
