"""The options that all subcommands share, and the functions that read their files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.output import note
from gate.encoding.strict_json import Json as JsonValue
from gate.encoding.strict_json import parse_document
from gate.errors import MaterialRefused, OperatorError

# The verifier is installed without what an instance needs.
if TYPE_CHECKING:
    from gate.instance.instance import Instance

Home = Annotated[
    Path, typer.Option("--home", envvar="GATE_HOME", help="The home directory of the instance.", show_default="var")
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        envvar="GATE_DATABASE_URL",
        help="The ledger's database. Default: the setting database_url, or ledger.db in the home directory.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_HOME = Path("var")

_MAX_FILE = 16 * 1024 * 1024


@contextmanager
def instance_at(
    home: Path, database_url: str | None, *, create: bool = False, base_url: str | None = None
) -> Iterator[Instance]:
    """The instance in a directory, open while the block runs.

    Args:
        home: The directory.
        database_url: A ledger to use instead of the configured one.
        base_url: Where callers reach a newly created instance.
        create: Whether to create a missing instance, with a note on stderr.

    Raises:
        OperatorError: There is no such instance, or it cannot be opened.
    """
    from gate.instance.instance import create_instance, open_instance
    from gate.instance.settings import DEFAULT_BASE_URL, load_settings

    if create and create_instance(home, base_url=base_url or DEFAULT_BASE_URL, database_url=database_url):
        note(f"Created a new instance in {home.absolute()}.")
    instance = open_instance(load_settings(home, database_url=database_url))
    try:
        yield instance
    finally:
        instance.close()


def read_file(path: Path) -> bytes:
    """The bytes of a file, or of stdin for `-`.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
    """
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(_MAX_FILE + 1)
        else:
            # No more than that: some files have no end.
            with path.open("rb") as file:
                content = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise OperatorError("FILE_UNREADABLE", f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise OperatorError("FILE_UNREADABLE", f"{path} cannot be read: it is not a valid file name.") from error
    if len(content) > _MAX_FILE:
        raise OperatorError("FILE_UNREADABLE", f"{path} is larger than {_MAX_FILE} bytes.")
    return content


def read_json(path: Path) -> JsonValue:
    """The JSON value in a file, or on stdin for `-`.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID`.
    """
    try:
        value: JsonValue = parse_document(read_file(path))
        return value
    except MaterialRefused as error:
        message = error.message.replace("The body", "It", 1)
        raise MaterialRefused(error.code, f"{path} does not contain usable JSON. {message}") from error
