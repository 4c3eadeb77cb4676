"""JSON and YAML files, and the lines of their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from api.cli.options import read_file
from gate.encoding.positions import line_of_refusal, lines_of, outwards
from gate.encoding.strict_json import Json, parse
from gate.errors import FieldError, MaterialRefused

# The line of what is refused is looked for in texts up to this size: in larger ones it takes seconds.
_SEARCHED: Final = 1024 * 1024

YAML_SUFFIXES: Final = (".yaml", ".yml")
"""The file name endings of YAML files."""


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
class DocumentFile:
    """A JSON or YAML file that was read.

    Attributes:
        name: Its name in messages.
        text: Its text.
        value: Its JSON value.
        yaml_lines: The line of every field and item of YAML; None for JSON, whose lines are found when needed.
        comments: The comments of YAML by their lines.
    """

    name: str
    text: str
    value: Json
    yaml_lines: Mapping[str, int] | None = None
    comments: Mapping[int, str] = field(default_factory=dict)

    def to_yaml(self) -> str:
        """Its value as YAML, with the comments of a YAML file.

        Raises:
            MaterialRefused: `YAML_INVALID`: the YAML would be too large, or lose a comment.
        """
        from gate.encoding.yaml_text import rewrite_yaml, write_yaml

        try:
            return rewrite_yaml(self.text) if self.is_yaml else write_yaml(self.value)
        except MaterialRefused as error:
            raise MaterialRefused(
                error.code, f"{_place(self.name, error)} cannot be written as YAML. {error.message}"
            ) from error

    @property
    def is_yaml(self) -> bool:
        """Whether the file is YAML."""
        return self.yaml_lines is not None

    def lines(self, paths: Sequence[str]) -> dict[str, int]:
        """The line of each path, from 1. A path that does not exist has the line of the nearest object around it."""
        lines = self.yaml_lines
        if lines is None:
            return lines_of(self.text, paths)
        return {path: next(lines[one] for one in (*outwards(path), "") if one in lines) for path in paths}

    def findings(self, faults: Sequence[FieldError]) -> list[Finding]:
        """Errors or warnings with their lines, sorted by line."""
        # Finding lines reads the whole text.
        lines = self.lines([fault.field for fault in faults]) if faults else {}
        return sorted((Finding(lines[fault.field], fault) for fault in faults), key=lambda finding: finding.line)


def read_document(path: Path, *, max_depth: int, max_values: int) -> DocumentFile:
    """Reads a JSON or YAML file, or stdin for `-`.

    A name with the ending `.yaml` or `.yml` means YAML, and `.json` means JSON. Other files and stdin are JSON if they
    start with a brace.

    Args:
        path: The file.
        max_depth: The maximum depth of arrays and objects.
        max_values: The maximum number of values.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID` or `YAML_INVALID`: the content is unusable.
    """
    content = read_file(path)
    name = "stdin" if str(path) == "-" else str(path)
    as_yaml = path.suffix in YAML_SUFFIXES or (path.suffix != ".json" and not content.lstrip().startswith(b"{"))
    read = _read_yaml if as_yaml else _read_json
    return read(name, content, max_depth, max_values)


def _read_json(name: str, content: bytes, max_depth: int, max_values: int) -> DocumentFile:
    try:
        value: Json = parse(content, max_depth=max_depth, max_values=max_values)
    except MaterialRefused as error:
        message = error.message.replace("The body", "It", 1)
        searched = " at line " not in message and len(content) <= _SEARCHED
        line = line_of_refusal(content.decode(errors="replace")) if searched else None
        at = name if line is None else f"{name}:{line}"
        raise MaterialRefused(error.code, f"{at} is not valid JSON. {message}") from error
    return DocumentFile(name, content.decode(), value)


def _read_yaml(name: str, content: bytes, max_depth: int, max_values: int) -> DocumentFile:
    # Loaded where it is used: reading JSON does not wait for the reader of YAML.
    from gate.encoding.yaml_text import read_yaml

    try:
        read = read_yaml(content, max_depth=max_depth, max_values=max_values)
    except MaterialRefused as error:
        raise MaterialRefused(error.code, f"{_place(name, error)} is not valid YAML. {error.message}") from error
    return DocumentFile(name, content.decode(), read.value, read.lines, read.comments)


def _place(name: str, error: MaterialRefused) -> str:
    """A file, and the line in it that an error is about."""
    return f"{name}:{error.details['line']}" if "line" in error.details else name
