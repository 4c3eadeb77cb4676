"""What fits where an author types: the members that an object may have, and the values that a member may have.

    [proposal.label for proposal in proposals(text, offset)]      # ["eq", "exists", "gt", ...] behind `operator: `

The text may be broken, since it is being typed; so places are found by brackets and indentation, and not by reading it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_PROPOSALS: Final = 200
"""How many proposals are made at most."""

_OUTCOME: Final = ("decision", "verdict", "action", "reason_code", "description")
# The members of each object of a rulebook in the order in which authors write them; schemas/rulebook-v1.schema.json.
_MEMBERS: Final = {
    "rulebook": ("schema_version", "rulebook_id", "version", "description", "input_schema", "rules", "default_outcome"),
    "input_schema": ("required", "properties"),
    "property": ("type",),
    "rule": ("rule_id", "description", "priority", "condition", "outcome"),
    "condition": ("field", "operator", "value", "all", "any", "not"),
    "outcome": _OUTCOME,
}
_VALUES: Final = {
    "schema_version": ("rulebook_v1",),
    "operator": (
        "exists", "not_exists", "eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "not_contains",
    ),
    "type": ("number", "integer", "string", "boolean", "array", "object", "null"),
    "decision": ("yes", "no", "review"),
}  # fmt: skip
# Members whose values an author often repeats, and those that are the names of declared fields.
_REPEATED: Final = ("verdict", "action", "reason_code")
_FIELDS: Final = ("field", "required")

_KEY: Final = re.compile(r"""(?:^|[\s{,-])["']?([A-Za-z_$][\w.$-]*)["']?\s*:""")
_ENTRY: Final = re.compile(r"""^(\s*)((?:-\s+)*)["']?([A-Za-z_$][\w.$-]*)?["']?\s*(:)?""")
_BEFORE_A_VALUE: Final = re.compile(
    r"""["']?([A-Za-z_$][\w.$-]*)["']?\s*:\s+["']?[^\s"']*$|["']([\w.$-]+)["']\s*:\s*["']?[^\s"']*$"""
)
_DECLARED: Final = re.compile(r"""["']?([A-Za-z_][\w.-]{0,159})["']?\s*:\s*\{\s*["']?type["']?\s*:""")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that fits.

    Attributes:
        label: The text that is shown and inserted.
        detail: Its kind: `member`, `field`, or `value`.
        apply: The text that is inserted.
    """

    label: str
    detail: str
    apply: str

    def to_dict(self) -> dict[str, str]:
        """The proposal as a JSON object."""
        return {"label": self.label, "detail": self.detail, "apply": self.apply}


def proposals(text: str, offset: int) -> list[Proposal]:
    """What fits at a place of a text, in the order of an author's writing.

    Args:
        text: The text of a rulebook, in JSON or YAML, which may be broken.
        offset: The place, in characters.
    """
    is_json = text.lstrip("\ufeff \t\r\n").startswith("{")
    before = text[:offset]
    keys, at_value = _around(before)
    is_opened = re.search(r"""["'][\w.-]*$""", before) is not None
    is_closed = text[offset : offset + 1] in ('"', "'")
    if at_value is not None:
        found = list(_values(text, at_value))[:MAX_PROPOSALS]
        return [Proposal(value, kind, value if is_opened else _quoted(value, is_json)) for value, kind in found]
    kind = _kind(keys)
    if kind is None:
        return []
    start, end = '"' * (is_json and not is_opened), '"' * (is_json and not is_closed)
    colon = "" if is_closed else ": "
    return [Proposal(name, "member", f"{start}{name}{end}{colon}") for name in _MEMBERS[kind]]


def _values(text: str, key: str) -> Iterator[tuple[str, str]]:
    if key in _FIELDS:
        yield from ((name, "field") for name in _declared(text))
    elif key in _VALUES:
        yield from ((value, "value") for value in _VALUES[key])
    elif key in _REPEATED:
        used = re.findall(rf"""["']?{key}["']?\s*:\s*["']?([^\s"',}}]+)""", text)
        yield from ((value, "value") for value in dict.fromkeys(used))


def _declared(text: str) -> list[str]:
    """The names that look declared, wherever they stand."""
    block = re.findall(r"""^\s+["']?([A-Za-z_][\w.-]{0,159})["']?\s*:\s*\n\s+["']?type["']?\s*:""", text, re.MULTILINE)
    return list(dict.fromkeys([*_DECLARED.findall(text), *block]))


def _quoted(value: str, is_json: bool) -> str:
    # yes and no are texts in YAML 1.2, and truths to readers of 1.1.
    return f'"{value}"' if is_json or value in ("yes", "no", "null") else value


def _around(before: str) -> tuple[list[str], str | None]:
    """The keys of the objects around the end of a text, from the outermost on; and the key whose value stands there."""
    flow = _open_brackets(before)
    line = before[before.rfind("\n") + 1 :]
    if flow:
        inside = before[flow[-1] + 1 :]
        key = _pending(re.split(r"[,{\[]", inside)[-1]) if before[flow[-1]] == "{" else None
        within = (_key_before(before, at) for at in flow)
        names = [*_block_keys(before[: flow[0]]), *(name for name in within if name is not None)]
        if before[flow[-1]] == "[":
            # The items of a list: texts, or objects that begin with a brace.
            return names, names[-1] if names and names[-1] in (*_FIELDS, "value") else None
        return names, key
    key = _pending(line)
    if key is not None:
        return [], key
    match = re.match(r"^\s*-\s*[\w.-]*$", line)
    keys = _block_keys(before)
    if match and keys and keys[-1] == "required":
        return keys, "required"
    return keys, None


def _pending(piece: str) -> str | None:
    """The key at the end of a piece of a line whose value is not complete yet."""
    found = re.search(
        r"""["']?([A-Za-z_$][\w.$-]*)["']?\s*:\s+["']?[^\s"']*$|["']([\w.$-]+)["']\s*:\s*["']?[^\s"']*$""", piece
    )
    return None if found is None else found[1] or found[2]


def _open_brackets(text: str) -> list[int]:
    """Where the brackets stand that are open at the end of a text, outside of quotes and comments."""
    found: list[int] = []
    quote = ""
    for at, sign in enumerate(text):
        if quote:
            if (sign == quote and text[at - 1 : at] != "\\") or (sign == "\n" and quote == "'"):
                quote = ""
        elif sign == "#" and (at == 0 or text[at - 1] in " \t\n"):
            quote = "\n"
        elif sign in "\"'" and (at == 0 or text[at - 1] in " \t\n,:[{("):
            quote = sign
        elif sign in "{[":
            found.append(at)
        elif sign in "}]" and found:
            found.pop()
    return found


def _key_before(text: str, at: int) -> str | None:
    """The key whose value begins with the bracket at a place; None where it is an item of a list."""
    head = text[max(0, at - 200) : at].rstrip()
    if not head.endswith(":"):
        return None
    found = re.search(r"""["']?([A-Za-z_$][\w.$-]*)["']?\s*:$""", head)
    return None if found is None else found[1]


def _block_keys(before: str) -> list[str]:
    """The keys that stand above the last line by indentation, the outermost first."""
    lines = before.split("\n")
    indent = _indent(lines[-1])
    keys: list[str] = []
    for line in reversed(lines[:-1]):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ENTRY.match(line)
        if match is None:
            continue
        at = len(match[1])
        if at < indent and match[4] and match[3]:
            inner = line[match.end() :].split(" #")[0].strip()
            # A key with a value on its line holds nothing below it; the dash before it may.
            if not inner or match[2] == "":
                keys.append(match[3])
            indent = at
        elif at < indent and match[2]:
            indent = at
    keys.reverse()
    return keys


def _indent(line: str) -> int:
    match = re.match(r"^(\s*)((?:-\s+)*)", line)
    return len(match[0]) if match is not None else 0


def _kind(keys: list[str]) -> str | None:
    """Which object of a rulebook stands below some keys."""
    if not keys:
        return "rulebook"
    last = keys[-1]
    if last in ("outcome", "default_outcome"):
        return "outcome"
    if last in ("condition", "all", "any", "not"):
        return "condition"
    if last in ("rules", "input_schema"):
        return {"rules": "rule", "input_schema": "input_schema"}[last]
    if len(keys) > 1 and keys[-2] == "properties":
        return "property"
    return None
