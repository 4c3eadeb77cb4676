"""Changes of one value in a JSON or YAML text that leave all else as its author wrote it: comments, order, indentation.

    text = replace(text, ("rules", 0, "priority"), 20)
    text = remove(text, ("rules",), 2)

Each change is made on the text and on its value. The new text must read as the new value, and must not lose a comment
outside the removed part. Otherwise, nothing is changed, and the author edits the text.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gate.encoding.canonical import canonical
from gate.encoding.positions import Span, Steps, spans_of
from gate.encoding.strict_json import Json, parse
from gate.encoding.yaml_text import inline, read_yaml, write_yaml
from gate.errors import MaterialRefused

_INDENT: Final = 2


@dataclass(frozen=True, slots=True)
class Text:
    """A text that was read.

    Attributes:
        text: The text; its lines end in line feeds.
        value: Its value.
        spans: Where each value stands.
        is_yaml: Whether it is YAML.
        comments: How often each comment stands in it.
    """

    text: str
    value: Json
    spans: Mapping[Steps, Span]
    is_yaml: bool
    comments: Counter[str]


def is_json(text: str) -> bool:
    """Whether a text is JSON rather than YAML: it begins with a brace, as `gate rulebook` tells them apart."""
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def read(text: str) -> Text:
    """Reads a text. The last line of YAML gets an end where it has none.

    Raises:
        MaterialRefused: `SVC_API_JSON_INVALID` or `YAML_INVALID`.
    """
    if is_json(text):
        return Text(text, parse(text.encode()), spans_of(text), False, Counter())
    text = text if text.endswith("\n") else f"{text}\n"
    document = read_yaml(text.encode())
    return Text(text, document.value, document.spans, True, Counter(document.comments.values()))


def replace(text: str, steps: Steps, value: Json) -> str:
    """The text with another value in the place of one that is there.

    Raises:
        MaterialRefused: The text is none, or `DRAFT_EDIT_REFUSED`.
    """
    return _replace(read(text), steps, value, emptied=False)


def _replace(before: Text, steps: Steps, value: Json, *, emptied: bool) -> str:
    """As `replace`; what is emptied goes with the comments in it."""
    text, span = before.text, _span(before, steps)
    gone = span if emptied else None
    changed = _replaced(before.value, steps, value)
    if before.is_yaml and span.begin < span.start and not _in_flow(before, steps[:-1]):
        # The value of a member may have to begin on a line of its own, or no longer.
        colon = _colon(text, span.begin)
        made = _after_key(value, _column(text, span.begin))
        end = text[span.start : span.end].rstrip("\n")
        return _checked(before, text[: colon + 1] + made + text[span.start + len(end) :], changed, gone)
    flow = before.is_yaml and bool(steps) and _in_flow(before, steps[:-1])
    written = inline(value) if flow else _written(before, value, _column(text, span.begin))
    return _checked(before, text[: span.start] + written + text[span.end :], changed, gone)


def gather(text: str, steps: Steps, name: str, added: Json) -> str:
    """The text with a value and another one in an array, which is the only member of an object in the value's place.

    Args:
        text: The text.
        steps: The value.
        name: The member.
        added: The other value.

    Raises:
        MaterialRefused: As `replace`.
    """
    before = read(text)
    text, span = before.text, _span(before, steps)
    gathered: Json = {name: [_at(before.value, steps), added]}
    changed = _replaced(before.value, steps, gathered)
    if not before.is_yaml:
        return replace(text, steps, gathered)
    stands = text[span.start : span.end].rstrip("\n")
    if steps and _in_flow(before, steps[:-1]):
        made = f"{{{name}: [{stands}, {inline(added)}]}}"
        return _checked(before, text[: span.start] + made + text[span.end :], changed, None)
    on_its_key = "\n" not in text[span.begin : span.start] and span.begin < span.start
    column = _column(text, span.begin) + _INDENT if on_its_key else _column(text, span.start)
    end = _line_end(text, span.end)
    start = len(text[: span.start].rstrip(" ")) if on_its_key else span.start
    head = f"\n{' ' * column}{name}:" if on_its_key else f"{name}:"
    dash = f"\n{' ' * (column + _INDENT)}- "
    lines = text[span.start : end].split("\n")
    moved = "\n".join([lines[0], *(f"{' ' * 2 * _INDENT}{line}" if line else "" for line in lines[1:])])
    other = _written(before, added, column + 2 * _INDENT)
    return _checked(before, f"{text[:start]}{head}{dash}{moved}{dash}{other}{text[end:]}", changed, None)


def set_member(text: str, steps: Steps, name: str, value: Json) -> str:
    """The text with a member of an object: in its place where it is there, else behind the last one.

    Args:
        text: The text.
        steps: The object.
        name: The member.
        value: Its value.

    Raises:
        MaterialRefused: As `replace`.
    """
    before = read(text)
    text = before.text
    holder = _at(before.value, steps)
    if name in holder:
        return replace(text, (*steps, name), value)
    if not holder:
        return replace(text, steps, {name: value})
    last = _span(before, (*steps, list(holder)[-1]))
    changed = copy.deepcopy(before.value)
    _at(changed, steps)[name] = value
    column = _column(text, last.begin)
    if before.is_yaml and not _in_flow(before, steps):
        end = _line_end(text, last.end)
        made = f"\n{' ' * column}{inline(name)}:{_after_key(value, column)}"
    else:
        end = last.end
        key = inline(name) if before.is_yaml else json.dumps(name, ensure_ascii=False)
        body = inline(value) if before.is_yaml else _written(before, value, column)
        made = f",{_separator(text, last.begin)}{key}: {body}"
    return _checked(before, text[:end] + made + text[end:], changed, None)


def remove_member(text: str, steps: Steps) -> str:
    """The text without a member of an object, which has others.

    Raises:
        MaterialRefused: As `replace`.
    """
    before = read(text)
    text = before.text
    above, name = steps[:-1], steps[-1]
    names = list(_at(before.value, above))
    if names == [name]:
        return _replace(before, above, {}, emptied=True)
    changed = copy.deepcopy(before.value)
    del _at(changed, above)[name]
    span = _span(before, steps)
    beside = [_span(before, (*above, other)) for other in names]
    start, end = _cut(before, beside, names.index(name), _in_flow(before, above))
    return _checked(before, text[:start] + text[end:], changed, Span(start, start, max(end, span.end)))


def insert(text: str, steps: Steps, index: int, value: Json) -> str:
    """The text with an item in an array, before the one at an index, or behind the last one.

    Raises:
        MaterialRefused: As `replace`.
    """
    before = read(text)
    text = before.text
    items = _items(before, steps)
    changed = copy.deepcopy(before.value)
    _at(changed, steps).insert(index, value)
    if not items:
        return replace(text, steps, [value])
    in_block = before.is_yaml and not _in_flow(before, steps)
    if in_block:
        dash = _column(text, items[0].start) - _dash(text, items[0].start)
        body = _written(before, value, dash + _INDENT)
        made = f"{' ' * dash}- {body.lstrip()}"
        start = _chunk(text, items, index)[0] if index < len(items) else _chunk(text, items, index - 1)[1]
        return _checked(before, f"{text[:start]}{made}\n{text[start:]}", changed, None)
    separator = _separator(text, items[0].start)
    body = _written(before, value, _column(text, items[0].start))
    if index < len(items):
        start = items[index].start
        return _checked(before, f"{text[:start]}{body},{separator}{text[start:]}", changed, None)
    end = items[-1].end
    return _checked(before, f"{text[:end]},{separator}{body}{text[end:]}", changed, None)


def remove(text: str, steps: Steps, index: int) -> str:
    """The text without an item of an array.

    Raises:
        MaterialRefused: As `replace`.
    """
    before = read(text)
    text = before.text
    items = _items(before, steps)
    changed = copy.deepcopy(before.value)
    del _at(changed, steps)[index]
    if len(items) == 1:
        return _replace(before, steps, [], emptied=True)
    start, end = _cut(before, items, index, _in_flow(before, steps))
    return _checked(before, text[:start] + text[end:], changed, Span(start, start, end))


def one_line(value: Json) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _checked(before: Text, text: str, value: Json, gone: Span | None) -> str:
    """The new text, if it reads as the new value and has every comment that stood outside of what is gone."""
    try:
        after = read(text)
    except MaterialRefused as error:
        raise _refused() from error
    lost = before.comments - after.comments
    inside = "" if gone is None else before.text[gone.start : gone.end]
    if canonical(after.value) != canonical(value) or any(comment not in inside for comment in lost):
        raise _refused()
    return text


def _refused() -> MaterialRefused:
    return MaterialRefused(
        "DRAFT_EDIT_REFUSED",
        "The table cannot change this without losing a comment or moving something else. Change it in the text.",
    )


def _written(of: Text, value: Json, column: int) -> str:
    """A value as it stands in a text whose lines go on at a column."""
    if of.is_yaml:
        return ("\n" + " " * column).join(_yaml_lines(value))
    written = json.dumps(value, ensure_ascii=False, indent=_INDENT if isinstance(value, dict | list) else None)
    return written.replace("\n", "\n" + " " * column)


def _after_key(value: Json, column: int) -> str:
    """What stands behind the colon of a key, in YAML's block style, that stands at a column."""
    lines = _yaml_lines(value)
    if len(lines) == 1 and not _is_block(value):
        return f" {lines[0]}"
    return "".join(f"\n{' ' * (column + _INDENT)}{line}" for line in lines)


def _yaml_lines(value: Json) -> list[str]:
    return write_yaml(value).rstrip("\n").split("\n") if _is_block(value) else [inline(value)]


def _is_block(value: Json) -> bool:
    """Whether a value takes lines of its own in YAML."""
    return isinstance(value, dict | list) and bool(value) and write_yaml(value)[:1] not in ("{", "[")


def _colon(text: str, begin: int) -> int:
    """Where the colon of a key stands."""
    quote = text[begin : begin + 1]
    after = text.index(quote, begin + 1) if quote in ("'", '"') else begin
    return text.index(":", after)


def _span(of: Text, steps: Steps) -> Span:
    try:
        return of.spans[steps]
    except KeyError:
        raise _refused() from None


def _items(of: Text, steps: Steps) -> list[Span]:
    return [_span(of, (*steps, index)) for index in range(len(_at(of.value, steps)))]


def _cut(of: Text, beside: Sequence[Span], index: int, in_flow: bool) -> tuple[int, int]:
    """What to take out of a text so that one of several values is gone."""
    if of.is_yaml and not in_flow:
        return _chunk(of.text, beside, index)
    if index + 1 < len(beside):
        return beside[index].begin, beside[index + 1].begin
    return beside[index - 1].end, beside[index].end


def _chunk(text: str, beside: Sequence[Span], index: int) -> tuple[int, int]:
    """The whole lines of a value in block style, with the comments right above it."""
    start = text.rfind("\n", 0, beside[index].begin) + 1
    earliest = 0 if index == 0 else _line_end(text, beside[index - 1].end)
    while start > earliest:
        above = text.rfind("\n", 0, start - 1) + 1
        if above < earliest or not text[above:start].lstrip(" ").startswith("#"):
            break
        start = above
    end = beside[index].end
    # A block of text ends with its line already.
    end = end if text[end - 1 : end] == "\n" else min(_line_end(text, end) + 1, len(text))
    return start, end


def _in_flow(of: Text, steps: Steps) -> bool:
    span = _span(of, steps)
    return of.text[span.start : span.start + 1] in ("{", "[")


def _dash(text: str, start: int) -> int:
    """How many characters before an item its dash stands."""
    return start - text.rindex("-", 0, start)


def _separator(text: str, start: int) -> str:
    """The white space before a value."""
    end = start
    while text[start - 1 : start] in (" ", "\n", "\t"):
        start -= 1
    return text[start:end] or " "


def _column(text: str, at: int) -> int:
    return at - (text.rfind("\n", 0, at) + 1)


def _line_end(text: str, at: int) -> int:
    if at and text[at - 1] == "\n":
        return at - 1
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _at(value: Json, steps: Steps) -> Any:
    found: Any = value
    for step in steps:
        found = found[step]
    return found


def _replaced(value: Json, steps: Steps, new: Json) -> Json:
    if not steps:
        return new
    changed = copy.deepcopy(value)
    _at(changed, steps[:-1])[steps[-1]] = new
    return changed
