"""Reads and writes the YAML 1.2 of authors: every JSON value, in a form that every reader understands alike.

    read_yaml(b"decision: no").value        # {"decision": "no"}: a string, not the false of YAML 1.1

It reads plain scalars by the core schema of YAML 1.2. It refuses everything that JSON does not have, instead of
reading it as a string:

- tags, anchors, aliases, and merge keys
- `.inf`, `.nan`, hexadecimal and octal numbers, and numbers in a form that JSON does not allow
- keys that are not strings, and repeated keys
- characters that only some versions of YAML read as line breaks

The rules of `strict_json` for numbers and strings apply, too.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.reader import ReaderError

from gate.encoding.canonical import canonical
from gate.encoding.positions import Span, Steps
from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES, Json, JsonObject, parse
from gate.errors import MaterialRefused, member

MAX_YAML: Final = 128 * 1024
"""The size limit of a YAML text, in bytes. The slowest text of this size takes a second to read, and ten to rewrite."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The content of a YAML text.

    Attributes:
        value: Its JSON value.
        lines: The line, from 1, of each field and item, by its path in the form of `shapes.dotted`.
        comments: The text of each comment, with its `#`, by its line.
        spans: The place of each value by its path, in the text without a byte order mark and with line feeds.
    """

    value: Json
    lines: Mapping[str, int]
    comments: Mapping[int, str]
    spans: Mapping[Steps, Span]


def read_yaml(body: bytes, *, max_depth: int = MAX_REQUEST_DEPTH, max_values: int = MAX_REQUEST_VALUES) -> YamlDocument:
    """Reads one YAML text strictly.

    Args:
        body: The bytes of the text, UTF-8.
        max_depth: The maximum number of levels of lists and mappings.
        max_values: The maximum number of scalars, lists, and mappings.

    Raises:
        MaterialRefused: `YAML_INVALID`. The message says what to write instead, and `details["line"]` is the line.
    """
    if len(body) > MAX_YAML:
        raise _refused(f"It has {len(body)} bytes, and a YAML file may have {MAX_YAML}. Write a larger one in JSON.")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused("It is not valid UTF-8.", body.count(b"\n", 0, error.start) + 1) from error
    text = _unix(text)
    if (doubtful := _DOUBTFUL.search(text)) is not None:
        raise _not_allowed(text, doubtful.start())
    reader = _Reader(max_depth, max_values)
    try:
        for event in yaml.parse(text, Loader=yaml.CLoader):
            reader.take(event)
    except ReaderError as error:
        # The compiled reader counts bytes.
        raise _not_allowed(text, len(text.encode()[: error.position].decode(errors="ignore"))) from error
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text) from error
    except yaml.YAMLError as error:
        raise _refused("It is not YAML.", reader.line) from error
    if not reader.done:
        raise _refused("It is empty.")
    return YamlDocument(reader.value, reader.lines, dict(_comments(text, reader.scalars)), reader.spans)


def write_yaml(value: Json) -> str:
    """Writes a JSON value as YAML that every reader of YAML 1.1 or 1.2 reads as the same value.

    It writes unprintable characters as escapes.

    Raises:
        MaterialRefused: `YAML_INVALID`: it is too large for `read_yaml`.
    """
    written = _written(_styled(value))
    if (size := len(written.encode())) > MAX_YAML:
        raise _refused(f"In YAML it would have {size} bytes, and a YAML file may have {MAX_YAML}. Keep it in JSON.")
    return written


def inline(value: Json) -> str:
    """Writes a JSON value for a line of YAML, also within braces and brackets."""
    return _written(_in_line(value)).rstrip("\n").removesuffix("\n...")


def rewrite_yaml(text: str) -> str:
    """Rewrites a text that `read_yaml` accepts, with the indentation of `write_yaml`, its comments, and its quotes.

    It writes unprintable characters as escapes.

    Raises:
        MaterialRefused: `YAML_INVALID`: a comment would be lost, or a value would change.
    """
    before = read_yaml(text.encode())
    found = _written(_quoted(_round_trip().load(_unix(text.removeprefix("\ufeff")))))
    after = read_yaml(found.encode())
    kept = list(after.comments.values())
    for place, (line, comment) in enumerate(before.comments.items()):
        if kept[place : place + 1] != [_shown(comment)]:
            raise _refused("The comment would be lost; move it above the field, out of braces and brackets.", line)
    if canonical(after.value) != canonical(before.value):
        raise _refused("It cannot be rewritten without changing a value; write its texts in double quotes.")
    return found


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _written(value: Any) -> str:
    written = io.StringIO()
    _round_trip().dump(value, written)
    return _shown(written.getvalue())


class _AsWritten(VersionedResolver):
    """Reads every plain scalar as text, so that numbers and similar values are written unchanged."""

    @property
    def versioned_resolver(self) -> Any:
        """The patterns of other types: none."""
        return {}


def _round_trip() -> Any:
    yaml = YAML(typ="rt", pure=True)
    yaml.Resolver = _AsWritten
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.preserve_quotes = True
    yaml.width = _UNFOLDED
    return yaml


# Longer than any line of a text, so that the writer breaks none.
_UNFOLDED: Final = 2**31


@dataclass(slots=True)
class _Open:
    """A list or a mapping that is not closed yet."""

    path: str
    steps: Steps
    value: list[Json] | JsonObject
    # The offsets of its field, of itself, and of the end of its last read part.
    begin: int
    start: int
    end: int
    # Of a mapping: the key whose value comes next, and its offset; None if a key comes next.
    key: str | None = None
    key_start: int = 0

    def next_path(self) -> str:
        if isinstance(self.value, list):
            return f"{self.path}[{len(self.value)}]"
        return member(self.path, self.key or "")

    def next_steps(self) -> Steps:
        return (*self.steps, len(self.value) if isinstance(self.value, list) else self.key or "")


@dataclass(slots=True)
class _Reader:
    """Builds a JSON value from the parser's events, without recursion."""

    max_depth: int
    max_values: int
    value: Json = None
    done: bool = False
    line: int = 1
    lines: dict[str, int] = field(default_factory=lambda: {"": 1})
    scalars: list[tuple[int, int]] = field(default_factory=list)
    spans: dict[Steps, Span] = field(default_factory=dict)
    _open: list[_Open] = field(default_factory=list)
    _values: int = 0

    def take(self, event: Any) -> None:
        """Takes the next event of the parser."""
        self.line, ends = event.start_mark.line + 1, (event.start_mark.index, event.end_mark.index)
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _refused(
                "It has an anchor or an alias (& or *); write the value out, or quote it if it is text.", self.line
            )
        if isinstance(event, DocumentStartEvent):
            self._begin(event)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._close(event)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent | ScalarEvent):
            self._count()
            if event.tag is not None:
                raise _refused(f"It has the tag {event.tag}; leave tags out.", self.line)
            if isinstance(event, ScalarEvent):
                self.scalars.append(ends)
            inner = self._open[-1] if self._open else None
            if inner is not None and isinstance(inner.value, dict) and inner.key is None:
                self._take_key(inner, event)
            else:
                self._take_value(inner, event)

    def _begin(self, event: Any) -> None:
        if self.done:
            raise _refused("It has more than one document; write one, without `---` after the first.", self.line)
        if event.tags or (event.version is not None and tuple(event.version) != (1, 2)):
            raise _refused("It has a directive; only %YAML 1.2 is read.", self.line)

    def _close(self, event: Any) -> None:
        done = self._open.pop()
        # One in block style ends with what is in it: the reader notices where the next thing begins.
        is_block = event.start_mark.index == event.end_mark.index
        self._end(done.steps, Span(done.begin, done.start, done.end if is_block else event.end_mark.index))

    def _end(self, steps: Steps, span: Span) -> None:
        self.spans[steps] = span
        if self._open:
            self._open[-1].end = span.end

    def _count(self) -> None:
        self._values += 1
        if self._values > self.max_values:
            raise _refused(f"It contains more than {self.max_values} values; remove some.", self.line)

    def _take_key(self, inner: _Open, event: Any) -> None:
        key = _scalar(event, self.line) if isinstance(event, ScalarEvent) else None
        if not isinstance(key, str):
            raise _refused("A key is not a string; write it in quotes.", self.line)
        if key == "<<" and not event.style:
            raise _refused("It has the merge key <<; write the fields out.", self.line)
        if isinstance(inner.value, dict) and key in inner.value:
            raise _refused(f"The field {key[:40]!r} appears twice in one object; remove one of the two.", self.line)
        inner.key, inner.key_start = key, event.start_mark.index
        self.lines.setdefault(inner.next_path(), self.line)

    def _take_value(self, inner: _Open | None, event: Any) -> None:
        path, steps = ("", ()) if inner is None else (inner.next_path(), inner.next_steps())
        self.lines.setdefault(path, self.line)
        value: Json = {} if isinstance(event, MappingStartEvent) else []
        if isinstance(event, ScalarEvent):
            # A missing value is noticed where the next one begins.
            value = _scalar(event, self.line if event.value else self.lines[path])
        elif len(self._open) == self.max_depth:
            raise _refused(
                f"It nests deeper than {self.max_depth} levels of lists and mappings; flatten it.", self.line
            )
        start = event.start_mark.index
        begin = inner.key_start if inner is not None and inner.key is not None else start
        if inner is None:
            self.value, self.done = value, True
        elif isinstance(inner.value, list):
            inner.value.append(value)
        else:
            inner.value[inner.key or ""] = value
            inner.key = None
        if isinstance(value, list | dict):
            self._open.append(_Open(path, steps, value, begin, start, start))
        else:
            self._end(steps, Span(begin, start, event.end_mark.index))


_NULL: Final = ("~", "null", "Null", "NULL")
_TRUTHS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_JSON_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# What the core schema reads as a number: https://yaml.org/spec/1.2.2/#1032-tag-resolution
_CORE_NUMBER: Final = re.compile(
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


def _scalar(event: Any, line: int) -> Json:
    text: str = event.value
    if event.style:
        return _string(text, line)
    if not text:
        # The core schema reads null here, and an author may have forgotten the value.
        raise _refused("A value is missing; write null if you mean that.", line)
    if text in _NULL:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _JSON_NUMBER.fullmatch(text):
        try:
            number: Json = parse(text.encode())
        except MaterialRefused as error:
            raise _refused(error.message, line) from error
        return number
    if _CORE_NUMBER.fullmatch(text):
        raise _refused(f"{text[:40]} is not a JSON number; write it in JSON's form, or in quotes.", line)
    return _string(text, line)


def _string(text: str, line: int) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _refused("A string contains half of a surrogate pair; write the whole character.", line) from error
    return text


_COMMENT: Final = re.compile(r"(?:^|(?<=[ \t]))#", re.MULTILINE)


def _comments(text: str, scalars: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """The lines and texts of the comments: a # outside scalars, and the rest of its line."""
    # The first line of a block scalar, its header, may end in a comment.
    starts = [_end_of_line(text, start) if text[start : start + 1] in ("|", ">") else start for start, _ in scalars]
    line, at, ended = 1, 0, 0
    for match in _COMMENT.finditer(text):
        start = match.start()
        before = bisect_right(starts, start) - 1
        if start >= ended and (before < 0 or start >= scalars[before][1]):
            line, at = line + text.count("\n", at, start), start
            ended = _end_of_line(text, start)
            yield line, text[start:ended].rstrip()


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


# Strings that every reader reads as strings without quotes: words that have no other meaning in any version of YAML.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*([ ./-][A-Za-z0-9_]+)*")
_OTHERWISE: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_POINTLESS: Final = re.compile(r"-?[0-9]e[+-][0-9]+")
# A list or mapping of scalars of up to this many characters is written on one line.
_SHORT: Final = 100


def _shown(text: str) -> str:
    """A text with unprintable characters as escapes, which have a meaning in double quotes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else character.encode("unicode_escape").decode()
        for character in text
    )


def _quoted(value: Any) -> Any:
    """A value of the round-trip reader, with strings that have unprintable characters in double quotes."""
    if isinstance(value, str) and _shown(value) != value:
        return DoubleQuotedScalarString(value)
    places = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for place in places:
        value[place] = _quoted(value[place])
    return value


def _styled(value: Json) -> Any:
    """A value for the writer: strings in quotes if necessary, and short parts on one line."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _OTHERWISE
        return value if plain else DoubleQuotedScalarString(value)
    if isinstance(value, dict):
        made = CommentedMap((_styled(name), _styled(item)) for name, item in value.items())
        if not value or "operator" in value or "type" in value:
            _set_short(made, value)
        return made
    if isinstance(value, list):
        items = CommentedSeq(_styled(item) for item in value)
        _set_short(items, value)
        return items
    text = canonical(value).decode()
    # YAML 1.1 reads 5e-324, which has no point, as text.
    return text.replace("e", ".0e") if _POINTLESS.fullmatch(text) else text


def _in_line(value: Json) -> Any:
    styled = _styled(value)
    if isinstance(styled, CommentedMap | CommentedSeq):
        styled.fa.set_flow_style()
    return styled


def _set_short(made: Any, value: list[Json] | JsonObject) -> None:
    items = value.values() if isinstance(value, dict) else value
    flat = not any(isinstance(item, dict) or (isinstance(item, list) and isinstance(value, list)) for item in items)
    if flat and len(canonical(value)) <= _SHORT:
        made.fa.set_flow_style()


# Characters that YAML 1.1 reads as line breaks and YAML 1.2 as text, and the byte order mark within a text.
_DOUBTFUL: Final = re.compile("[\x85\u2028\u2029\ufeff]")


def _not_allowed(text: str, position: int) -> MaterialRefused:
    shown = f"U+{ord(text[position]):04X}"
    return _refused(
        f"It has the character {shown}; write it as an escape in double quotes.", text.count("\n", 0, position) + 1
    )


def _malformed(error: yaml.MarkedYAMLError, text: str) -> MaterialRefused:
    """The refusal for an error of the library."""
    began, found = error.context_mark, error.problem_mark
    # If an end or a colon is missing, the reader notices it further down.
    late = found is None or found.index >= len(text) or "simple key" in (error.context or "")
    mark = began if began is not None and late else found
    words = (error.problem or error.context or "it cannot be read").replace("\n", " ").strip().removesuffix(".")
    hint = next((hint for part, hint in _HINTS.items() if part in words), f"The parser says: {words}.")
    if "cannot start any token" in words and found is not None and text[found.index : found.index + 1] == "\t":
        hint = _TAB
    if "expected node content" in words and late:
        hint = _OPEN
    # The end of a text may be the line after its last one.
    return _refused(hint, None if mark is None else min(mark.line, text.rstrip("\n").count("\n")) + 1)


_TAB: Final = "This line is indented with a tab; use spaces."
_OPEN: Final = "A bracket or brace is not closed."
# The library's messages, and hints for authors.
_HINTS: Final = {
    "tab character": _TAB,
    "mapping values are not allowed": "A second colon, or a wrong indentation; put text that has ': ' in quotes.",
    "expected <block end>": "The indentation does not match the lines above.",
    "did not find expected key": "The indentation does not match the lines above, or a quote is not closed.",
    "could not find expected ':'": "A colon is missing after a key, or the indentation is wrong.",
    "unexpected end of stream": "A quote is not closed.",
    "expected ',' or": "A bracket or brace is not closed, or a comma is missing in it.",
    "expected node content": "A value is missing before this; write it, or null.",
    "expected <document start>": "There is a value after the end of the text; check the indentation and the quotes.",
    "cannot start any token": "A text cannot begin with this character; put it in quotes.",
    "Unicode character escape code": "An escape is half of a surrogate pair, or beyond Unicode; write the character.",
    "block sequence entries are not allowed": "A list cannot begin here; put its first dash on a line of its own.",
}


def _refused(message: str, line: int | None = None) -> MaterialRefused:
    return MaterialRefused("YAML_INVALID", message, details={} if line is None else {"line": line})
